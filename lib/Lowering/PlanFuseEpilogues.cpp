//===- PlanFuseEpilogues.cpp - What a product computes besides ------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches that read a product, or an operand of one, become epilogues of the
// product (cuBLASLt's): its elements are then read where they are computed. The
// fused command stands where the product stood, so what else the launch needs
// has to be there by then, and nobody may use its result before.
//
//===----------------------------------------------------------------------===//

#include "zero/Lowering/Passes.h"
#include "zero/Transforms/PlanOrder.h"

#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::zero {
#define GEN_PASS_DEF_PLANFUSEEPILOGUES
#include "zero/Lowering/Passes.h.inc"
} // namespace mlir::zero

using namespace mlir;
using namespace mlir::zero;

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

/// Whether `value` is all of a buffer, row-major.
static bool isWhole(Value value) {
  auto type = cast<MemRefType>(value.getType());
  if (!type.getLayout().isIdentity())
    return false;
  auto view = value.getDefiningOp<plan::ViewOp>();
  if (!view)
    return true;
  return view.getOffset() == 0 && view.getRankStride() == 0 &&
         isWhole(view.getSource()) &&
         cast<MemRefType>(view.getSource().getType()).getNumElements() ==
             type.getNumElements();
}

static bool isSame(Value lhs, Value rhs) {
  return isWhole(lhs) && isWhole(rhs) &&
         getUnderlyingBuffer(lhs) == getUnderlyingBuffer(rhs);
}

/// Whether `value` is a whole matrix, or (`transposed`) the transpose of one,
/// with the contents of `matrix`.
static bool isMatrix(Value value, Value matrix, bool transposed) {
  auto type = cast<MemRefType>(value.getType());
  if (type.getRank() != 2 || !isWhole(matrix) ||
      getUnderlyingBuffer(value) != getUnderlyingBuffer(matrix))
    return false;
  if (!transposed)
    return isWhole(value) &&
           type.getShape() == cast<MemRefType>(matrix.getType()).getShape();
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || offset != 0)
    return false;
  auto shape = cast<MemRefType>(matrix.getType()).getShape();
  auto view = value.getDefiningOp<plan::ViewOp>();
  return view && view.getOffset() == 0 && view.getRankStride() == 0 &&
         shape.size() == 2 && type.getDimSize(0) == shape[1] &&
         type.getDimSize(1) == shape[0] && strides[0] == 1 &&
         strides[1] == shape[1];
}

//===----------------------------------------------------------------------===//
// Users of buffers
//===----------------------------------------------------------------------===//

namespace {
/// The commands of a program by the buffers that they use, in order.
class BufferUsers {
public:
  explicit BufferUsers(plan::ProgramOp program)
      : lasting(findLastingBuffers(program)) {
    for (auto command : program.getBody().getOps<plan::CommandOpInterface>())
      for (Value value : getUsed(command)) {
        auto &list = users[getUnderlyingBuffer(value)];
        if (list.empty() || list.back() != command)
          list.push_back(command);
      }
    for (auto output : program.getBody().getOps<plan::OutputOp>())
      outputs.insert(getUnderlyingBuffer(output.getBuffer()));
    ends = llvm::to_vector(program.getBody().getOps<plan::MicroBatchEndOp>());
  }

  ArrayRef<plan::CommandOpInterface> of(Value value) const {
    auto found = users.find(getUnderlyingBuffer(value));
    return found == users.end() ? ArrayRef<plan::CommandOpInterface>()
                                : ArrayRef(found->second);
  }

  /// Whether only commands know the buffer.
  bool isTemporary(Value value) const {
    plan::BufferOp buffer = getUnderlyingBuffer(value);
    return !lasting.contains(buffer) && !outputs.contains(buffer);
  }

  /// The only command that writes the buffer of `value`, or null.
  Operation *getWriter(Value value) const {
    Operation *writer = nullptr;
    for (plan::CommandOpInterface user : of(value)) {
      if (!writes(user, value))
        continue;
      if (writer)
        return nullptr;
      writer = user;
    }
    return writer;
  }

  /// Whether all that writes the buffer of `value` stands before `op`.
  bool isWrittenBefore(Value value, Operation *op) const {
    return llvm::all_of(of(value), [&](plan::CommandOpInterface user) {
      return !writes(user, value) || user->isBeforeInBlock(op);
    });
  }

  /// Whether `launch` may write `result` already where `product` stands: it is
  /// the first to use it.
  bool mayMove(Operation *launch, Value result, Operation *product) const {
    return !lasting.contains(getUnderlyingBuffer(result)) && isWhole(result) &&
           getWriter(result) == launch && isSamePart(launch, product) &&
           llvm::all_of(of(result), [&](plan::CommandOpInterface user) {
             return user == launch || (launch->isBeforeInBlock(user) &&
                                       product->isBeforeInBlock(user));
           });
  }

  /// Whether both are commands of the same micro-batches.
  bool isSamePart(Operation *lhs, Operation *rhs) const {
    return llvm::all_of(ends, [&](plan::MicroBatchEndOp end) {
      return end->isBeforeInBlock(lhs) == end->isBeforeInBlock(rhs);
    });
  }

private:
  static SmallVector<Value> getUsed(plan::CommandOpInterface command) {
    SmallVector<Value> used = command.getReadBuffers();
    llvm::append_range(used, command.getWrittenBuffers());
    return used;
  }
  static bool writes(plan::CommandOpInterface command, Value value) {
    return llvm::any_of(command.getWrittenBuffers(), [&](Value written) {
      return getUnderlyingBuffer(written) == getUnderlyingBuffer(value);
    });
  }

  llvm::DenseMap<Operation *, SmallVector<plan::CommandOpInterface, 4>> users;
  llvm::DenseSet<Operation *> lasting, outputs;
  SmallVector<plan::MicroBatchEndOp> ends;
};
} // namespace

//===----------------------------------------------------------------------===//
// Launches and products
//===----------------------------------------------------------------------===//

static bool isOnCompute(plan::CommandOpInterface command) {
  return command.getStreamName() == plan::kComputeStream;
}

/// The only operation of the kernel of `launch`, if its operands are the
/// kernel's in order and its result is not in place.
static Operation *getOnlyOp(plan::LaunchOp launch) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
      launch, launch.getCalleeAttr());
  bool onCompute =
      !launch.getHost() && launch.getWait().empty() && isOnCompute(launch);
  if (!kernel || !onCompute || !kernel.getBody().hasOneBlock())
    return nullptr;
  Block &body = kernel.getBody().front();
  Operation *op = &body.front();
  bool isOnly = op->getNextNode() == body.getTerminator() &&
                op->getNumResults() == 1 &&
                llvm::equal(op->getOperands(), body.getArguments()) &&
                body.getTerminator()->getOperands() == op->getResults();
  return isOnly && launch.getWrites() == ArrayRef<int64_t>(op->getNumOperands())
             ? op
             : nullptr;
}

/// A product of two matrices without an epilogue, on the compute stream.
static plan::CallOp getProduct(Operation *op) {
  auto call = dyn_cast_or_null<plan::CallOp>(op);
  if (!call || call.getCallee() != "matmul" || !isOnCompute(call) ||
      !call->getDiscardableAttrs().empty() || call.getWrites().size() != 1)
    return {};
  auto type = cast<MemRefType>(call.getBuffers().back().getType());
  return type.getRank() == 2 && isWhole(call.getBuffers().back())
             ? call
             : plan::CallOp();
}

/// Whether the product has no bias, or one row of it.
static bool hasPlainBias(plan::CallOp product) {
  if (product.getBuffers().size() == 3)
    return true;
  SmallVector<int64_t> strides;
  int64_t offset;
  auto type = cast<MemRefType>(product.getBuffers()[2].getType());
  return succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides[0] == 0 && strides[1] == 1;
}

/// The library reads and writes pre-activations by 8 columns.
static bool hasWideColumns(plan::CallOp product) {
  auto type = cast<MemRefType>(product.getBuffers().back().getType());
  return type.getDimSize(1) % 8 == 0;
}

static bool isTanh(Operation *op) {
  auto how = op->getAttrOfType<StringAttr>("approximate");
  return how && how.getValue() == "tanh";
}

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

/// Moves what defines `value` before `op`; declarations depend on nothing but
/// declarations.
static void moveBefore(Value value, Operation *op) {
  Operation *definition = value.getDefiningOp();
  if (definition->isBeforeInBlock(op))
    return;
  for (Value operand : definition->getOperands())
    moveBefore(operand, op);
  definition->moveBefore(op);
}

/// The last command of the compute stream before `launch`, which has one: the
/// fused product.
static plan::CommandOpInterface getComputeBefore(plan::LaunchOp launch) {
  Operation *op = launch->getPrevNode();
  for (;; op = op->getPrevNode())
    if (auto command = dyn_cast<plan::CommandOpInterface>(op);
        command && isOnCompute(command) && !isa<plan::ReleaseOp>(op))
      return command;
}

/// Makes who waits for `event` wait for `other`.
static void replaceWaits(Value event, Value other) {
  llvm::SmallSetVector<Operation *, 4> users(event.user_begin(),
                                             event.user_end());
  for (Operation *user : users) {
    auto waiting = cast<plan::CommandOpInterface>(user);
    bool waits = llvm::is_contained(waiting.getWaitEvents(), other);
    for (unsigned i = waiting.getWaitEvents().size(); i-- > 0;)
      if (waiting.getWaitEvents()[i] == event)
        waiting.eraseWaitEvent(i);
    if (!waits)
      waiting.addWaitEvent(other);
  }
}

/// Gives the event of `launch` to the compute command before it: that is where
/// compute then is. The product's end would be too early, as who waits for the
/// launch waits for all that compute does before it.
static void passSignalOn(plan::LaunchOp launch) {
  Value event = launch.getSignal();
  if (!event)
    return;
  launch.getSignalMutable().clear();
  plan::CommandOpInterface before = getComputeBefore(launch);
  if (Value own = before.getSignalEvent()) {
    replaceWaits(event, own);
    event.getDefiningOp()->erase();
    return;
  }
  moveBefore(event, before);
  before.setSignalEvent(event);
}

/// Replaces `product` and `launch` by a product on `buffers`, the last
/// `written` of which it writes, with the epilogue `names`.
static void fuse(plan::CallOp product, plan::LaunchOp launch,
                 ArrayRef<Value> buffers, int64_t written,
                 ArrayRef<StringRef> names) {
  OpBuilder b(product);
  int64_t count = buffers.size();
  for (Value buffer : buffers)
    moveBefore(buffer, product);
  SmallVector<int64_t> writes =
      llvm::to_vector(llvm::seq<int64_t>(count - written, count));
  auto fused = plan::CallOp::create(
      b, b.getFusedLoc({product.getLoc(), launch.getLoc()}),
      product.getCalleeAttr(), buffers, b.getDenseI64ArrayAttr(writes),
      product.getStreamAttr(), product.getWait(), product.getSignal());
  for (StringRef name : names)
    fused->setAttr(name, b.getUnitAttr());
  product.erase();
  passSignalOn(launch);
  launch.erase();
}

/// y = gelu(a b + bias) or relu(...); the sum stays where it is used again.
static bool fuseActivation(plan::LaunchOp launch, const BufferUsers &users) {
  Operation *op = getOnlyOp(launch);
  bool isGelu = isa_and_nonnull<train::GeluOp>(op) && isTanh(op);
  if (!isGelu && !isa_and_nonnull<train::ReluOp>(op))
    return false;
  Value sum = launch.getBuffers()[0], result = launch.getBuffers()[1];
  plan::CallOp product = getProduct(users.getWriter(sum));
  if (!product || !isSame(sum, product.getBuffers().back()) ||
      !hasPlainBias(product) || !users.mayMove(launch, result, product))
    return false;
  bool isKept = users.of(sum).size() > 2 || !users.isTemporary(sum);
  if (isKept && (!isGelu || !hasWideColumns(product)))
    return false;
  SmallVector<Value> buffers(product.getBuffers());
  if (!isKept)
    buffers.pop_back();
  OpBuilder b(launch);
  auto type = cast<MemRefType>(product.getBuffers().back().getType());
  buffers.push_back(plan::ViewOp::create(b, launch.getLoc(), type, result));
  SmallVector<StringRef> names = {isGelu ? "gelu" : "relu"};
  if (isKept)
    names.push_back("aux");
  fuse(product, launch, buffers, isKept ? 2 : 1, names);
  return true;
}

/// dx = gelu'(x) * (a b)
static bool fuseGeluGrad(plan::LaunchOp launch, const BufferUsers &users) {
  Operation *op = getOnlyOp(launch);
  if (!isa_and_nonnull<train::GeluGradOp>(op) || !isTanh(op))
    return false;
  Value grad = launch.getBuffers()[0], input = launch.getBuffers()[1],
        result = launch.getBuffers()[2];
  plan::CallOp product = getProduct(users.getWriter(grad));
  if (!product || product.getBuffers().size() != 3 ||
      !isSame(grad, product.getBuffers().back()) || !hasWideColumns(product) ||
      users.of(grad).size() != 2 || !users.isTemporary(grad) ||
      !isWhole(input) || !users.mayMove(launch, result, product))
    return false;
  // What was saved for it is older; what came from elsewhere was waited for by
  // who knows whom.
  Operation *saved = users.getWriter(input);
  if (!saved || !saved->isBeforeInBlock(product) ||
      !isOnCompute(cast<plan::CommandOpInterface>(saved)))
    return false;
  OpBuilder b(launch);
  auto type = cast<MemRefType>(product.getBuffers().back().getType());
  SmallVector<Value> buffers(product.getBuffers().drop_back());
  for (Value value : {input, result})
    buffers.push_back(plan::ViewOp::create(b, launch.getLoc(), type, value));
  fuse(product, launch, buffers, 1, {"gelu_grad"});
  return true;
}

/// Whether `launch` sums the rows of a matrix.
static bool isRowSum(plan::LaunchOp launch) {
  auto sum = dyn_cast_or_null<train::ReduceSumOp>(getOnlyOp(launch));
  auto type = cast<MemRefType>(launch.getBuffers().front().getType());
  return sum && !sum.getKeepdims() && type.getRank() == 2 &&
         sum.getAxes() == ArrayRef<int64_t>(0) && type.getDimSize(0) > 1 &&
         type.getDimSize(1) % 8 == 0;
}

/// A product with gelu_grad whose result is `matrix`.
static plan::CallOp getGeluGrad(Value matrix, const BufferUsers &users) {
  auto call = dyn_cast_or_null<plan::CallOp>(users.getWriter(matrix));
  bool is = call && call->hasAttr("gelu_grad") && !call->hasAttr("bias_grad") &&
            isMatrix(call.getBuffers().back(), matrix, /*transposed=*/false);
  return is ? call : plan::CallOp();
}

/// The gradient of a bias: the sum of the rows of what a product computes, or
/// of an operand of one before it.
static bool fuseBiasGrad(plan::LaunchOp launch, const BufferUsers &users) {
  if (!isRowSum(launch))
    return false;
  Value matrix = launch.getBuffers()[0], result = launch.getBuffers()[1];
  auto add = [&](plan::CallOp product, ArrayRef<StringRef> names) {
    SmallVector<Value> buffers(product.getBuffers());
    buffers.insert(buffers.end() - 1, result);
    fuse(product, launch, buffers, 2, names);
    return true;
  };
  if (plan::CallOp product = getGeluGrad(matrix, users);
      product && users.mayMove(launch, result, product))
    return add(product, {"gelu_grad", "bias_grad"});
  for (plan::CommandOpInterface user : users.of(matrix)) {
    plan::CallOp product = getProduct(user);
    if (!product || product.getBuffers().size() != 3 ||
        !product->isBeforeInBlock(launch) || !hasWideColumns(product) ||
        !users.isWrittenBefore(matrix, product) ||
        product.getBuffers().back().getType() !=
            MemRefType::get(
                cast<MemRefType>(product.getBuffers().back().getType())
                    .getShape(),
                cast<MemRefType>(result.getType()).getElementType()) ||
        !users.mayMove(launch, result, product))
      continue;
    if (isMatrix(product.getBuffers()[1], matrix, /*transposed=*/false))
      return add(product, {"bias_grad_b"});
    if (isMatrix(product.getBuffers()[0], matrix, /*transposed=*/true))
      return add(product, {"bias_grad_a"});
  }
  return false;
}

/// Fuses all that `fuseOne` can. Each fusion changes who uses what.
static unsigned
fuseAll(plan::ProgramOp program,
        llvm::function_ref<bool(plan::LaunchOp, const BufferUsers &)> fuseOne) {
  unsigned count = 0;
  BufferUsers users(program);
  for (auto launch :
       llvm::make_early_inc_range(program.getBody().getOps<plan::LaunchOp>())) {
    if (!fuseOne(launch, users))
      continue;
    users = BufferUsers(program);
    ++count;
  }
  return count;
}

/// Removes what nobody uses any more.
static void clean(ModuleOp module, plan::ProgramOp program) {
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(program.getBody().front())))
    if (isa<plan::ViewOp, plan::BufferOp>(op) && op.use_empty())
      op.erase();
  for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (kernel->hasAttr(plan::kKernelAttr) &&
        SymbolTable::symbolKnownUseEmpty(kernel, module))
      kernel.erase();
}

namespace {
struct PlanFuseEpilogues
    : zero::impl::PlanFuseEpiloguesBase<PlanFuseEpilogues> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<plan::ProgramOp>()) {
      unsigned count = fuseAll(program, fuseActivation);
      count += fuseAll(program, fuseGeluGrad);
      count += fuseAll(program, fuseBiasGrad);
      if (count == 0)
        continue;
      clean(getOperation(), program);
      if (program.getOrder())
        program.setOrder(fingerprintOrder(program, PlanOrder(program)));
      numFused += count;
    }
  }
};
} // namespace
