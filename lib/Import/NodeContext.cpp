//===- NodeContext.cpp - What handlers see of a node ----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The services that the walk over the graph offers to the handlers.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Bindings.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace mlir::zero;
using namespace mlir::zero::onnx_import;

// Float initializers above this stay in the weights file.
static constexpr int64_t maxInlineElements = 1024;

bool zero::onnx_import::staysInFile(const Param &param, int64_t elements) {
  return param.role == Role::Constant && isFloat(param.data->type) &&
         elements > maxInlineElements;
}

std::optional<SmallVector<int64_t>>
zero::onnx_import::shapeOfBinding(Binding &binding) {
  if (binding.value)
    return llvm::to_vector(shapeOf(binding.value));
  if (binding.host)
    return SmallVector<int64_t>(ArrayRef<int64_t>(binding.host->shape));
  if (binding.param)
    return SmallVector<int64_t>(ArrayRef<int64_t>(binding.param->data->shape));
  return std::nullopt;
}

static std::optional<DType> dtypeOfBinding(Binding &binding) {
  if (binding.value)
    return dtypeFromType(typeOf(binding.value).getElementType());
  if (binding.host)
    return binding.host->type;
  if (binding.param)
    return binding.param->data->type;
  return std::nullopt;
}

Value NodeContext::value(unsigned i) {
  if (!has(i)) {
    node.error() << "input " << i << " is missing";
    return {};
  }
  return node.failed() ? Value() : importer.valueOf(*inputs[i], loc());
}

/// Operators that may know how many rows a list has: what they make has as
/// many.
static bool keepsRows(NodeReader &node) {
  return node.isOfDefaultDomain() &&
         (node.op() == "Reshape" || node.op() == "Expand");
}

const HostTensor *NodeContext::host(unsigned i) {
  return has(i) ? hostOf(*inputs[i]) : nullptr;
}

const HostTensor *NodeContext::hostOf(Binding &binding) {
  if (binding.countsRows && !keepsRows(node))
    return nullptr;
  return importer.hostOf(binding);
}

std::optional<SmallVector<int64_t>> NodeContext::shape(unsigned i) {
  return shapeOfBinding(*inputs[i]);
}

std::optional<SmallVector<int64_t>>
NodeContext::bindingShape(Binding &binding) {
  return shapeOfBinding(binding);
}

std::optional<DType> NodeContext::dtype(unsigned i) {
  return dtypeOfBinding(*inputs[i]);
}

std::optional<SmallVector<int64_t>> NodeContext::ints(unsigned i,
                                                      StringRef what) {
  const HostTensor *tensor = host(i);
  if (has(i) && inputs[i]->countsRows && !tensor) {
    node.error() << "its " << what
                 << " is the number of rows that the data select (NonZero), "
                    "which is known when it runs only";
    return std::nullopt;
  }
  if (tensor && !isFloat(tensor->type))
    return SmallVector<int64_t>(tensor->ints.begin(), tensor->ints.end());
  node.error() << "its " << what
               << " must be integers that are known at import; they depend on "
                  "the data";
  return std::nullopt;
}

bool NodeContext::staysInFile(unsigned i, int64_t elements) const {
  return inputs[i]->param &&
         onnx_import::staysInFile(*inputs[i]->param, elements);
}

bool NodeContext::isUsed(unsigned i) const {
  return i < numResults() &&
         importer.scope->uses->lookup(node.message().output(i)) > 0;
}

unsigned NodeContext::usesOfInput(unsigned i) const {
  StringRef name = node.message().input(i);
  Scope *owner = importer.scope;
  importer.scope->find(name, &owner);
  unsigned uses = owner->uses->lookup(name);
  return owner == importer.scope ? uses : std::max(uses, 2u);
}

LogicalResult NodeContext::result(Value value) {
  if (!value)
    return failure();
  if (results.empty())
    return fail("has no output");
  set(0, value);
  return success();
}

LogicalResult NodeContext::fail(const Twine &message) {
  node.error() << message;
  return failure();
}

bool NodeContext::check(Operation *op) {
  // Inference does not look at element types; the verifier does.
  return succeeded(verify(op, /*verifyRecursively=*/false));
}

Value NodeContext::reshape(Value value, ArrayRef<int64_t> shape) {
  if (!value || shapeOf(value) == shape)
    return value;
  return emit<train::ReshapeOp>(value, list("shape", shape));
}

Value NodeContext::transpose(Value value, ArrayRef<int64_t> permutation) {
  return emit<train::TransposeOp>(value, list("permutation", permutation));
}

Value NodeContext::broadcast(Value value, ArrayRef<int64_t> shape) {
  if (!value || shapeOf(value) == shape)
    return value;
  return emit<train::BroadcastOp>(value, list("shape", shape));
}

Value NodeContext::scalar(Value like, double value) {
  if (!like)
    return {};
  std::optional<DType> type = dtypeFromType(typeOf(like).getElementType());
  HostTensor tensor(*type, {});
  tensor.setNumber(0, value);
  return constant(tensor);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Whether `block` can be the body of a loop: no effects, nothing empty.
static bool canRepeat(Block &block) {
  auto isEmpty = [](Value value) {
    return typeOf(value).getNumElements() == 0;
  };
  return llvm::none_of(block.getArguments(), isEmpty) &&
         llvm::all_of(block, [&](Operation &op) {
           return isPure(&op) && llvm::none_of(op.getResults(), isEmpty);
         });
}

/// Whether what all steps stack can be counted.
static bool canStack(ArrayRef<Value> values, int64_t steps) {
  return llvm::all_of(values, [&](Value value) {
    SmallVector<int64_t> shape{steps};
    llvm::append_range(shape, shapeOf(value));
    return countElements(shape).has_value();
  });
}

/// Whether `scan` computes something that is not known at import, of tensors
/// in which every row counts.
bool NodeContext::isLoop(train::ScanOp scan) {
  auto isConstant = [](Value value) {
    Operation *op = value.getDefiningOp();
    return op && op->hasTrait<OpTrait::ConstantLike>();
  };
  return !llvm::all_of(scan.getOperands(), isConstant) &&
         llvm::none_of(scan.getOperands(), [&](Value value) {
           return importer.rowLists.find(value);
         });
}

train::ScanOp NodeContext::tryLoop(int64_t steps, bool reverse, const void *key,
                                   StepFn step) {
  if (!mayLoop(steps, key))
    return {};
  // What is wrong is said when the body is imported for each step.
  ScopedDiagnosticHandler quiet(b.getContext(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() == DiagnosticSeverity::Error);
  });
  llvm::SaveAndRestore<int64_t> trained(importer.trainedNorms),
      traced(importer.tracedNorms), sites(importer.randomSites);
  LoopImport loop{b.saveInsertionPoint()};
  llvm::SaveAndRestore<LoopImport *> enter(importer.loop);
  if (!importer.loop)
    importer.loop = &loop;
  bool refusedBefore = std::exchange(importer.loop->refused, false);
  train::ScanOp scan;
  {
    SmallVector<Value> carried, stacked;
    train::ScanBuilder builder(b, loc(), steps, reverse);
    if (succeeded(step(builder, carried, stacked)) && !node.failed() &&
        !importer.loop->refused && canRepeat(*builder.getBlock()) &&
        canStack(stacked, steps))
      scan = builder.finish(carried, stacked);
  }
  bool isRefused = std::exchange(importer.loop->refused, refusedBefore);
  if (scan && !isRefused && succeeded(verify(scan)) && isLoop(scan))
    return scan;
  if (scan)
    scan.erase();
  node.startAgain();
  importer.unrolledBodies.insert(key);
  return {};
}
