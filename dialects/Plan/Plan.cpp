//===- Plan.cpp - The plan dialect ----------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registration and verifiers of the plan dialect.
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/Plan.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;
using namespace mlir::plan;

#include "dialects/Plan/PlanDialect.cpp.inc"
#include "dialects/Plan/PlanEnums.cpp.inc"
#include "dialects/Plan/PlanInterfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/PlanAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Plan/PlanTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Plan/PlanOps.cpp.inc"

void PlanDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Plan/PlanAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Plan/PlanTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Plan/PlanOps.cpp.inc"
      >();
}

int64_t mlir::plan::elementBytes(Type type) {
  // Types that no runtime has are refused when the program is written.
  if (auto complex = dyn_cast<ComplexType>(type))
    return 2 * elementBytes(complex.getElementType());
  return type.isIntOrFloat() ? llvm::divideCeil(type.getIntOrFloatBitWidth(), 8)
                             : 8;
}

int64_t mlir::plan::sizeInBytes(ShapedType type) {
  return type.getNumElements() * elementBytes(type.getElementType());
}

//===----------------------------------------------------------------------===//
// Dispatch
//===----------------------------------------------------------------------===//

LogicalResult DispatchOp::verify() {
  if (getTied().size() != getNumResults())
    return emitOpError() << "has " << getTied().size()
                         << " entries in 'tied' for " << getNumResults()
                         << " results";
  llvm::SmallDenseSet<int64_t> seen;
  for (auto [i, tied] : llvm::enumerate(getTied())) {
    if (tied == -1)
      continue;
    if (tied < 0 || tied >= static_cast<int64_t>(getInputs().size()))
      return emitOpError() << "ties result " << i << " to operand " << tied
                           << ", but has " << getInputs().size() << " operands";
    if (getInputs()[tied].getType() != getResult(i).getType())
      return emitOpError() << "ties result " << i << " of type "
                           << getResult(i).getType() << " to operand " << tied
                           << " of type " << getInputs()[tied].getType();
    if (!seen.insert(tied).second)
      return emitOpError() << "ties operand " << tied << " to two results";
  }
  return success();
}

/// The kernel `name` refers to, or null after an error.
static FunctionOpInterface lookupKernel(Operation *op, FlatSymbolRefAttr name,
                                        SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(op, name);
  if (!kernel) {
    op->emitOpError() << "calls kernel " << name << ", which does not exist";
    return nullptr;
  }
  if (!kernel->hasAttr(kKernelAttr)) {
    op->emitOpError() << "calls " << name << ", which is not marked '"
                      << kKernelAttr << "'";
    return nullptr;
  }
  return kernel;
}

LogicalResult DispatchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = lookupKernel(*this, getKernelAttr(), symbols);
  if (!kernel)
    return failure();
  if (TypeRange(kernel.getArgumentTypes()) != getInputs().getTypes() ||
      TypeRange(kernel.getResultTypes()) != getResultTypes())
    return emitOpError() << "does not have the type of its kernel, "
                         << kernel.getFunctionType();
  return success();
}

//===----------------------------------------------------------------------===//
// Program and memory
//===----------------------------------------------------------------------===//

SmallVector<int64_t> ProgramOp::getGridShape() {
  if (std::optional<ArrayRef<int64_t>> grid = getGrid())
    return SmallVector<int64_t>(*grid);
  return {static_cast<int64_t>(getRanks())};
}

int64_t ProgramOp::getGroupSize(ArrayRef<int64_t> axes) {
  if (axes.empty())
    return getRanks();
  SmallVector<int64_t> shape = getGridShape();
  int64_t size = 1;
  for (int64_t axis : axes)
    size *= shape[axis];
  return size;
}

/// One arena per space: the runtime holds one block of memory of each.
static LogicalResult verifyArenas(ProgramOp program) {
  std::map<Space, ArenaOp> arenas;
  for (auto arena : program.getBody().getOps<ArenaOp>()) {
    auto [entry, isNew] = arenas.try_emplace(arena.getSpace(), arena);
    if (!isNew)
      return arena.emitOpError()
                 .append("is the second in ", stringifySpace(arena.getSpace()),
                         " memory; expects one arena per space")
                 .attachNote(entry->second.getLoc())
             << "the first";
  }
  return success();
}

LogicalResult ProgramOp::verify() {
  int64_t ranks = getRanks();
  if (ranks < 1)
    return emitOpError() << "has " << ranks << " ranks, but needs at least one";
  SmallVector<int64_t> grid = getGridShape();
  if (grid.empty() || llvm::any_of(grid, [](int64_t n) { return n < 1; }) ||
      ShapedType::getNumElements(grid) != ranks)
    return emitOpError() << "has a grid of [" << grid << "] for " << ranks
                         << " ranks; its axes must multiply to them";
  for (Operation &op : getBody().front())
    if (!isa<PlanDialect>(op.getDialect()))
      return emitOpError() << "holds '" << op.getName()
                           << "', but may hold only plan ops";
  int64_t microBatches = getMicroBatches();
  int64_t ends = llvm::range_size(getBody().getOps<MicroBatchEndOp>());
  if (microBatches < 1 || ends != (microBatches > 1))
    return emitOpError() << "has " << microBatches << " micro-batches and "
                         << ends
                         << " 'plan.micro_batch_end'; expects one of these "
                            "exactly where there are several micro-batches";
  return verifyArenas(*this);
}

LogicalResult ArenaOp::verify() {
  int64_t bytes = getBytes().value_or(0);
  if (bytes < 0)
    return emitOpError() << "has " << bytes << " bytes";
  return success();
}

int64_t BufferOp::getBytes() {
  return getCapacity().value_or(sizeInBytes(getBuffer().getType()));
}

Space BufferOp::getSpace() {
  return getArena().getDefiningOp<ArenaOp>().getSpace();
}

/// Sums of sizes up to this stay far from the end of 64 bits.
static bool isSizeAllowed(MemRefType type) {
  constexpr int64_t most = int64_t(1) << 48;
  int64_t bytes = elementBytes(type.getElementType());
  for (int64_t size : type.getShape())
    if (llvm::MulOverflow(bytes, size, bytes) || bytes > most)
      return llvm::is_contained(type.getShape(), 0);
  return true;
}

LogicalResult BufferOp::verify() {
  MemRefType type = getBuffer().getType();
  if (!type.getLayout().isIdentity())
    return emitOpError() << "has type " << type << ", which is not contiguous";
  if (!isSizeAllowed(type))
    return emitOpError() << "has type " << type << " of more than 2^48 bytes";
  if (getBytes() < sizeInBytes(type))
    return emitOpError() << "has a capacity of " << getBytes()
                         << " bytes, but its type needs " << sizeInBytes(type);
  if (!getOffset())
    return success();
  int64_t offset = *getOffset();
  auto arena = getArena().getDefiningOp<ArenaOp>();
  if (!arena || !arena.getBytes())
    return emitOpError("has an offset in an arena without a size");
  if (offset < 0 ||
      offset > static_cast<int64_t>(*arena.getBytes()) - getBytes())
    return emitOpError() << "takes bytes [" << offset << ", "
                         << offset + getBytes() << ") of an arena of "
                         << *arena.getBytes() << " bytes";
  return success();
}

/// Elements between the first and one past the last that `type` touches.
static int64_t extent(MemRefType type, ArrayRef<int64_t> strides) {
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides)) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return last + 1;
}

/// Elements that the storage behind `buffer` holds, or -1 if it is unknown.
static int64_t storageElements(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  if (auto op = buffer.getDefiningOp<BufferOp>())
    return op.getBytes() / elementBytes(type.getElementType());
  return type.getLayout().isIdentity() ? type.getNumElements() : -1;
}

/// Checks the number of parts that `op` names, and returns it.
template <typename OpTy>
static FailureOr<int64_t> verifyShards(OpTy op) {
  auto program = cast<ProgramOp>(op->getParentOp());
  int64_t shards = op.getShards().value_or(program.getShards());
  if (!program.hasShards(shards))
    return op.emitOpError()
           << "has " << shards << " shards; expects " << program.getShards()
           << ", the last axis of the grid, or all " << program.getRanks()
           << " ranks";
  return shards;
}

LogicalResult ViewOp::verify() {
  MemRefType source = getSource().getType(), result = getResult().getType();
  if (source.getElementType() != result.getElementType())
    return emitOpError() << "views " << source.getElementType() << " as "
                         << result.getElementType();
  SmallVector<int64_t> strides;
  int64_t layoutOffset = 0;
  // Upstream knows no strides of a tensor without elements, and none matter.
  bool isEmpty = llvm::is_contained(result.getShape(), 0);
  if (!isEmpty && (failed(result.getStridesAndOffset(strides, layoutOffset)) ||
                   layoutOffset != 0 ||
                   llvm::any_of(strides, [](int64_t s) { return s < 0; })))
    return emitOpError() << "has result type " << result
                         << ", which is not strided from offset 0";
  int64_t offset = getOffset(), rankStride = getRankStride();
  if (offset < 0 || rankStride < 0)
    return emitOpError("has a negative offset");
  FailureOr<int64_t> shards = verifyShards(*this);
  if (failed(shards))
    return failure();
  if (isEmpty)
    return success();
  int64_t end = offset + (*shards - 1) * rankStride + extent(result, strides);
  int64_t available = storageElements(getSource());
  if (available >= 0 && end > available)
    return emitOpError() << "reaches element " << end << " of " << available;
  return success();
}

LogicalResult ConstantOp::verify() {
  ShapedType value = getValue().getShapedType();
  MemRefType buffer = getBuffer().getType();
  if (value.getShape() != buffer.getShape() ||
      value.getElementType() != buffer.getElementType())
    return emitOpError() << "writes a value of type " << value << " to "
                         << buffer;
  return success();
}

LogicalResult ParameterOp::verify() {
  bool accumulates = getRole() == ParamRole::Accumulator;
  if (getOf() && !accumulates && getRole() != ParamRole::State)
    return emitOpError("has 'of', which only state and accumulators have");
  if (accumulates && (getInitFile() || getOnes() || getValue()))
    return emitOpError("is an accumulator, which starts as zeros");
  if (bool(getInitFile()) + getOnes() + bool(getValue()) > 1)
    return emitOpError("has more than one of init, ones and value");
  if (getValue()) {
    MemRefType held = getBuffer().getType();
    auto type = cast<ShapedType>(getValue()->getType());
    if (type.getElementType() != held.getElementType() ||
        type.getShape() != getShape().value_or(held.getShape()))
      return emitOpError() << "has a value of type " << type
                           << " for a buffer of type " << held;
  }
  if (!getShape())
    return success();
  MemRefType type = getBuffer().getType();
  ArrayRef<int64_t> shape = *getShape();
  if (static_cast<int64_t>(shape.size()) != type.getRank() || shape.empty() ||
      shape.drop_front() != type.getShape().drop_front())
    return emitOpError() << "holds shards of type " << type
                         << " of another shape than the logical one";
  FailureOr<int64_t> shards = verifyShards(*this);
  if (failed(shards))
    return failure();
  if (type.getDimSize(0) * *shards < shape[0])
    return emitOpError() << "has shards of " << type.getDimSize(0)
                         << " rows on " << *shards
                         << " ranks, which do not cover " << shape[0];
  return success();
}

LogicalResult InputOp::verify() {
  if (!getBounds())
    return success();
  if (!getBuffer().getType().getElementType().isInteger())
    return emitOpError("has bounds, but is not of integers");
  if (getBounds()->size() != 2 || (*getBounds())[0] > (*getBounds())[1])
    return emitOpError("needs two bounds, the smaller first");
  return success();
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

/// The command that signals `event`, or null if it is not exactly one.
static Operation *signaller(EventOp event) {
  Operation *found = nullptr;
  for (OpOperand &use : event.getEvent().getUses()) {
    Operation *user = use.getOwner();
    auto sizes = dyn_cast_or_null<DenseI32ArrayAttr>(
        user->getInherentAttr("operandSegmentSizes").value_or(Attribute()));
    // The signalled event is the last operand, where there is one.
    if (!sizes || sizes.asArrayRef().back() != 1 ||
        use.getOperandNumber() + 1 != user->getNumOperands())
      continue;
    if (found)
      return nullptr;
    found = user;
  }
  return found;
}

LogicalResult EventOp::verify() {
  Operation *signal = signaller(*this);
  if (!signal)
    return emitOpError("must be signalled by exactly one command");
  for (Operation *user : getEvent().getUsers())
    if (user != signal && user->isBeforeInBlock(signal))
      return emitOpError("is waited for before it is signalled")
                 .attachNote(user->getLoc())
             << "waited for here";
  return success();
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

template <typename OpTy>
static LogicalResult verifyWrites(OpTy op) {
  for (int64_t index : op.getWrites())
    if (index < 0 || index >= static_cast<int64_t>(op.getBuffers().size()))
      return op.emitOpError()
             << "writes buffer " << index << " of " << op.getBuffers().size();
  return success();
}

/// Buffers of `op` that its `writes` list.
template <typename OpTy>
static SmallVector<Value> writtenBuffers(OpTy op) {
  SmallVector<Value> written;
  for (int64_t index : op.getWritesAttr().asArrayRef())
    written.push_back(op.getBuffers()[index]);
  return written;
}

/// Where `value` lies; nothing where it is no buffer of an arena.
static std::optional<Space> spaceOf(Value value) {
  while (auto view = value.getDefiningOp<ViewOp>())
    value = view.getSource();
  auto buffer = value.getDefiningOp<BufferOp>();
  auto arena = buffer ? buffer.getArena().getDefiningOp<ArenaOp>() : ArenaOp();
  return arena ? std::optional(arena.getSpace()) : std::nullopt;
}

/// Checks that the processor or network that runs `op` reaches its buffers.
static LogicalResult verifySpace(CommandOpInterface op, Space expected) {
  SmallVector<Value> buffers = op.getReadBuffers();
  llvm::append_range(buffers, op.getWrittenBuffers());
  for (Value buffer : buffers)
    if (std::optional<Space> space = spaceOf(buffer);
        space && *space != expected)
      return op->emitOpError()
             << "runs on buffers in " << stringifySpace(expected)
             << " memory, but one of type " << buffer.getType() << " is in "
             << stringifySpace(*space) << " memory";
  return success();
}

template <typename OpTy>
static LogicalResult verifyCall(OpTy op, Space space) {
  return failure(failed(verifyWrites(op)) || failed(verifySpace(op, space)));
}

LogicalResult LaunchOp::verify() {
  return verifyCall(*this, getHost() ? Space::Host : Space::Device);
}
LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(lookupKernel(*this, getCalleeAttr(), symbols) != nullptr);
}
LogicalResult CallOp::verify() { return verifyCall(*this, Space::Device); }

template <typename OpTy>
static LogicalResult verifyCollective(OpTy op) {
  size_t n = op.getSources().size();
  if (op.getTargets().size() != n || op.getElements().size() != n ||
      op.getChunks().size() != n)
    return op.emitOpError()
           << "has " << n << " sources, " << op.getTargets().size()
           << " targets, " << op.getElements().size() << " element counts and "
           << op.getChunks().size() << " chunks";
  auto program = cast<ProgramOp>(op->getParentOp());
  ArrayRef<int64_t> axes = op.getAxes().value_or(ArrayRef<int64_t>());
  int64_t numAxes = program.getGridShape().size();
  for (auto [i, axis] : llvm::enumerate(axes))
    if (axis < 0 || axis >= numAxes || (i > 0 && axis <= axes[i - 1]))
      return op.emitOpError() << "spans axes [" << axes << "] of a grid of "
                              << numAxes << " axes; expected them ascending";
  int64_t ranks = program.getGroupSize(axes);
  for (auto [elements, chunk] : llvm::zip(op.getElements(), op.getChunks()))
    if (chunk < 0 || chunk * ranks < elements)
      return op.emitOpError()
             << "has chunks of " << chunk << " elements, which do not cover "
             << elements << " on " << ranks << " ranks";
  return verifySpace(op, Space::Device);
}
LogicalResult AllGatherOp::verify() { return verifyCollective(*this); }
LogicalResult ReduceScatterOp::verify() { return verifyCollective(*this); }
LogicalResult AllReduceOp::verify() { return verifyCollective(*this); }

//===----------------------------------------------------------------------===//
// What commands read and write
//===----------------------------------------------------------------------===//

// A kernel or library function is opaque: what it writes it may read as well.
SmallVector<Value> LaunchOp::getReadBuffers() { return getBuffers(); }
SmallVector<Value> LaunchOp::getWrittenBuffers() {
  return writtenBuffers(*this);
}
SmallVector<Value> CallOp::getReadBuffers() { return getBuffers(); }
SmallVector<Value> CallOp::getWrittenBuffers() { return writtenBuffers(*this); }
SmallVector<Value> AllGatherOp::getReadBuffers() { return getSources(); }
SmallVector<Value> AllGatherOp::getWrittenBuffers() { return getTargets(); }
SmallVector<Value> ReduceScatterOp::getReadBuffers() { return getSources(); }
SmallVector<Value> ReduceScatterOp::getWrittenBuffers() { return getTargets(); }
SmallVector<Value> AllReduceOp::getReadBuffers() { return getSources(); }
SmallVector<Value> AllReduceOp::getWrittenBuffers() { return getTargets(); }
SmallVector<Value> CopyOp::getReadBuffers() { return {getSource()}; }
SmallVector<Value> CopyOp::getWrittenBuffers() { return {getTarget()}; }
SmallVector<Value> FillOp::getReadBuffers() { return {}; }
SmallVector<Value> FillOp::getWrittenBuffers() { return {getTarget()}; }
SmallVector<Value> ReleaseOp::getReadBuffers() { return {getBuffer()}; }
SmallVector<Value> ReleaseOp::getWrittenBuffers() { return {}; }

LogicalResult CopyOp::verify() {
  MemRefType source = getSource().getType(), target = getTarget().getType();
  if (source.getElementType() != target.getElementType() ||
      source.getNumElements() != target.getNumElements())
    return emitOpError() << "copies " << source << " to " << target;
  std::optional<Space> from = spaceOf(getSource()), to = spaceOf(getTarget());
  bool isPath = from == to ? from != Space::Disk
                           : from == Space::Host || to == Space::Host;
  if (from && to && !isPath)
    return emitOpError() << "copies from " << stringifySpace(*from) << " to "
                         << stringifySpace(*to)
                         << " memory; what is on disk is read into and written "
                            "from host memory";
  return success();
}
