//===- PlanOutlineKernels.cpp - Compute of a step into kernels ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves every group of compute ops (KernelGroups.h) into a function of its own
// and calls it by plan.dispatch. Equal kernels share one function.
//
//===----------------------------------------------------------------------===//

#include "HostKernelGroups.h"
#include "JoinPads.h"
#include "LibraryCalls.h"
#include "MovedValues.h"
#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Passes.h"
#include "zero/Transforms/StepUtils.h"

#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"
#include "dialects/Zero/Zero.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace mlir::zero {
#define GEN_PASS_DEF_PLANOUTLINEKERNELS
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// What goes in and out
//===----------------------------------------------------------------------===//

namespace {
/// The interface of a group: its ops with what they rematerialize, the tensors
/// they read, and the values that others read.
struct Interface {
  llvm::SetVector<Operation *> body;
  llvm::SetVector<Value> inputs;
  SmallVector<Value> outputs;
  SmallVector<int64_t> tied;
  /// Bytes of one more output that holds temporaries, or 0.
  int64_t scratchBytes = 0;
};
} // namespace

static void collectInputs(Operation *op, const KernelGroup &group,
                          Interface &interface) {
  llvm::SetVector<Value> used(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  for (Value value : used) {
    Operation *producer = value.getDefiningOp();
    if (producer && llvm::is_contained(group.ops, producer))
      continue;
    if (producer && isRematerialized(producer))
      collectInputs(producer, group, interface);
    else
      interface.inputs.insert(value);
  }
  interface.body.insert(op);
}

/// The root's results are all computed; others' where somebody reads them.
static void collectOutputs(const KernelGroup &group, Interface &interface) {
  for (Operation *op : group.ops)
    for (Value result : op->getResults())
      if (op == group.root() ||
          llvm::any_of(result.getUsers(), [&](Operation *user) {
            return llvm::none_of(group.ops, [&](Operation *member) {
              return member->isAncestor(user);
            });
          }))
        interface.outputs.push_back(result);
}

/// The operand that a `zero.assign` of `output` replaces; only for a group of
/// elementwise ops, which can run in place.
static int64_t findAssigned(const KernelGroup &group,
                            const Interface &interface, Value output) {
  if (!llvm::all_of(group.ops, isElementwise))
    return -1;
  StringRef symbol = getAssignedSymbol(output);
  if (symbol.empty())
    return -1;
  for (auto [index, input] : llvm::enumerate(interface.inputs)) {
    auto read = getUnmoved(input).getDefiningOp<ReadOp>();
    if (read && read.getSymbol() == symbol &&
        input.getType() == output.getType())
      return index;
  }
  return -1;
}

/// The operand that is the accumulator to which the root adds.
static int64_t findAccumulator(const KernelGroup &group,
                               const Interface &interface,
                               SymbolTable &symbols) {
  StateOp accumulator;
  for (Value operand : group.root()->getOperands())
    if (!accumulator)
      accumulator = getReadAccumulator(getUnmoved(operand), symbols);
  if (!accumulator || !llvm::all_of(group.ops, isElementwise))
    return -1;
  for (auto [index, input] : llvm::enumerate(interface.inputs))
    if (getReadAccumulator(getUnmoved(input), symbols) == accumulator &&
        input.getType() == group.root()->getResult(0).getType())
      return index;
  return -1;
}

static void findTies(const KernelGroup &group, Interface &interface,
                     SymbolTable &symbols) {
  for (Value output : interface.outputs) {
    int64_t tied = -1;
    if (auto update = output.getDefiningOp<OptimizerUpdate>()) {
      unsigned number = cast<OpResult>(output).getResultNumber();
      Value replaced = update.getReplacedOperand(number).get();
      auto at = llvm::find(interface.inputs, replaced);
      if (at != interface.inputs.end())
        tied = std::distance(interface.inputs.begin(), at);
    } else if (output.getDefiningOp() == group.root() &&
               findAccumulator(group, interface, symbols) >= 0) {
      tied = findAccumulator(group, interface, symbols);
    } else {
      tied = findAssigned(group, interface, output);
    }
    if (llvm::is_contained(interface.tied, tied))
      tied = -1;
    interface.tied.push_back(tied);
  }
}

/// What the steps of a loop may need for temporaries: twice what a step makes,
/// since the order in which operations are fused is not known here, and what is
/// the same in all of them once more, transposed.
static int64_t getScratchBytes(train::ScanOp root) {
  int64_t bytes = 0;
  for (Value value : root.getCaptured())
    bytes += getTensorBytes(value.getType());
  root->walk([&](Operation *op) {
    if (op != root)
      for (Type type : op->getResultTypes())
        bytes += 2 * getTensorBytes(type);
  });
  return bytes;
}

static Interface getInterface(const KernelGroup &group, SymbolTable &symbols) {
  Interface interface;
  for (Operation *op : group.ops)
    collectInputs(op, group, interface);
  collectOutputs(group, interface);
  findTies(group, interface, symbols);
  if (auto scan = dyn_cast<train::ScanOp>(group.root())) {
    interface.scratchBytes = getScratchBytes(scan);
    interface.tied.push_back(-1);
  }
  return interface;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// "softmax" of train.softmax.
static StringRef getMnemonic(Operation *op) {
  return op->getName().stripDialect();
}

/// The ops' names and the shape of the root's first result: add_gelu_8x128.
static std::string getName(const KernelGroup &group) {
  SmallVector<StringRef> names;
  for (Operation *op : group.ops)
    if (names.empty() || names.back() != getMnemonic(op))
      names.push_back(getMnemonic(op));
  if (names.size() > 4)
    names.erase(names.begin() + 2, names.end() - 1);
  std::string name;
  llvm::raw_string_ostream os(name);
  llvm::interleave(names, os, "_");
  auto type = cast<RankedTensorType>(group.root()->getResult(0).getType());
  os << "_";
  if (type.getRank() == 0)
    os << "scalar";
  llvm::interleave(type.getShape(), os, "x");
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
class Outliner {
public:
  explicit Outliner(ModuleOp module) : symbols(module) {}

  LogicalResult run(func::FuncOp step);
  unsigned getNumKernels() const { return kernels.size(); }

private:
  LogicalResult runOn(Block &block);
  LogicalResult outline(const KernelGroup &group);
  func::FuncOp build(const KernelGroup &group, const Interface &interface);
  func::FuncOp share(func::FuncOp kernel, StringRef name);
  void keepAlive(plan::DispatchOp dispatch);

  SymbolTable symbols;
  llvm::StringMap<func::FuncOp> kernels;
};
} // namespace

func::FuncOp Outliner::build(const KernelGroup &group,
                             const Interface &interface) {
  OpBuilder b(group.root()->getContext());
  SmallVector<Type> inputs, outputs;
  for (Value input : interface.inputs)
    inputs.push_back(input.getType());
  for (Value output : interface.outputs)
    outputs.push_back(output.getType());
  RankedTensorType scratch;
  if (interface.scratchBytes) {
    scratch = RankedTensorType::get({interface.scratchBytes}, b.getI8Type());
    outputs.push_back(scratch);
  }
  Location loc = group.root()->getLoc();
  auto kernel = func::FuncOp::create(
      b, loc, "kernel", FunctionType::get(b.getContext(), inputs, outputs));
  kernel.setPrivate();
  kernel->setAttr(kKernelAttr, b.getUnitAttr());
  if (llvm::any_of(interface.tied, [](int64_t tied) { return tied >= 0; }))
    kernel->setAttr(kTiedAttr, b.getDenseI64ArrayAttr(interface.tied));
  if (isa<OnHostOp, OnHostStartOp>(group.root()->getParentOp()))
    kernel->setAttr(plan::kHostKernelAttr, b.getUnitAttr());

  b.setInsertionPointToStart(kernel.addEntryBlock());
  IRMapping map;
  for (auto [input, arg] : llvm::zip(interface.inputs, kernel.getArguments()))
    map.map(input, arg);
  for (Operation *op : interface.body) {
    Operation *clone = b.clone(*op, map);
    // Names of layers and the like would keep equal kernels apart.
    if (clone->getPropertiesStorageSize() != 0)
      clone->setDiscardableAttrs(DictionaryAttr::get(b.getContext()));
    clone->removeAttr(kRecomputedAttr);
  }
  SmallVector<Value> results;
  for (Value output : interface.outputs)
    results.push_back(map.lookup(output));
  if (scratch) {
    results.push_back(tensor::EmptyOp::create(b, loc, scratch.getShape(),
                                              scratch.getElementType()));
    kernel->setAttr(kScratchResultAttr, b.getUnitAttr());
  }
  func::ReturnOp::create(b, loc, results);
  return kernel;
}

/// The kernel of the step that equals `kernel`, or `kernel` under `name`.
func::FuncOp Outliner::share(func::FuncOp kernel, StringRef name) {
  std::string text;
  llvm::raw_string_ostream os(text);
  kernel->print(os, OpPrintingFlags().useLocalScope());
  auto [entry, isNew] = kernels.try_emplace(text, kernel);
  if (!isNew) {
    kernel.erase();
    return entry->second;
  }
  kernel.setName(name);
  symbols.insert(kernel);
  return kernel;
}

/// Moves what frees an operand behind the dispatch: producers have moved down
/// to their consumer.
void Outliner::keepAlive(plan::DispatchOp dispatch) {
  auto moveFrees = [&](Value value) {
    for (Operation *user : llvm::make_early_inc_range(value.getUsers()))
      if (user->getBlock() == dispatch->getBlock() &&
          user->isBeforeInBlock(dispatch) &&
          hasEffect<MemoryEffects::Free>(user, value))
        user->moveAfter(dispatch);
  };
  for (Value input : dispatch.getInputs()) {
    moveFrees(input);
    // What is freed may be what the operand is a view of.
    for (Operation *view = input.getDefiningOp(); view && isLayoutView(view);
         view = view->getOperand(0).getDefiningOp())
      moveFrees(view->getOperand(0));
  }
}

/// A kernel takes and returns tensors whose size the plan knows.
static LogicalResult verifyInterface(Operation *root,
                                     const Interface &interface) {
  for (ArrayRef<Value> values :
       {interface.inputs.getArrayRef(), ArrayRef(interface.outputs)})
    for (Value value : values) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type || !type.hasStaticShape())
        return root->emitOpError("cannot become a kernel: ")
               << value.getType() << " is no tensor of static shape";
    }
  return success();
}

LogicalResult Outliner::outline(const KernelGroup &group) {
  Operation *root = group.root();
  Interface interface = getInterface(group, symbols);
  if (interface.outputs.empty())
    return root->emitOpError("cannot become a kernel: it has no result");
  if (failed(verifyInterface(root, interface)))
    return failure();
  func::FuncOp kernel = share(build(group, interface), getName(group));
  OpBuilder b(root);
  auto dispatch = plan::DispatchOp::create(
      b, root->getLoc(), kernel.getFunctionType().getResults(),
      kernel.getName(), interface.inputs.getArrayRef(), interface.tied);
  for (auto [output, result] :
       llvm::zip(interface.outputs, dispatch.getOutputs()))
    output.replaceAllUsesWith(result);
  for (Operation *op : llvm::reverse(group.ops))
    op->erase();
  keepAlive(dispatch);
  return success();
}

LogicalResult Outliner::runOn(Block &block) {
  for (const KernelGroup &group : findKernelGroups(block))
    if (failed(outline(group)))
      return failure();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (op.use_empty() && isRematerialized(&op))
      op.erase();
  return success();
}

LogicalResult Outliner::run(func::FuncOp step) {
  Block &block = step.getBody().front();
  joinPads(block);
  for (Operation &op : block)
    if (isa<OnHostOp, OnHostStartOp>(op)) {
      Block &body = op.getRegion(0).front();
      for (const KernelGroup &group : findHostKernelGroups(body))
        if (failed(outline(group)))
          return failure();
      if (failed(runOn(body)))
        return failure();
    }
  return runOn(block);
}

namespace {
struct PlanOutlineKernels
    : zero::impl::PlanOutlineKernelsBase<PlanOutlineKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto step = module.lookupSymbol<func::FuncOp>("step");
    if (!step) {
      module.emitError("the module has no function @step; make one with "
                       "--train-step or zero-import --loss");
      return signalPassFailure();
    }
    Outliner outliner(module);
    // Both functions of a step of several micro-batches share their kernels.
    for (func::FuncOp part :
         {module.lookupSymbol<func::FuncOp>(kAccumulateName), step}) {
      if (!part)
        continue;
      if (!part.getBody().hasOneBlock()) {
        part.emitOpError("must have a body of one block to become a plan");
        return signalPassFailure();
      }
      if (failed(outliner.run(part)))
        return signalPassFailure();
    }
    numKernels += outliner.getNumKernels();
  }
};
} // namespace
