//===- GpuMapper.cpp - A kernel as launches ----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps of a kernel, their order, and what all kinds of steps need.
//
//===----------------------------------------------------------------------===//

#include "GpuMapper.h"
#include "GpuMapping.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::zero;

/// Where buffers in scratch memory begin.
static constexpr int64_t kScratchAlignment = 256;

GpuMapper::GpuMapper(func::FuncOp func)
    : func(func), body(func.getBody().front()), host(body.getTerminator()) {}

//===----------------------------------------------------------------------===//
// Scratch memory
//===----------------------------------------------------------------------===//

int64_t GpuMapper::addScratchBytes(int64_t bytes) {
  int64_t begin = scratchBytes;
  scratchBytes += llvm::alignTo(bytes, kScratchAlignment);
  return begin;
}

Value GpuMapper::getScratch() {
  if (!scratch)
    scratch = body.addArgument(MemRefType::get({1}, host.getI8Type()),
                               func.getLoc());
  return scratch;
}

Value GpuMapper::addScratch(Type element, ArrayRef<int64_t> shape) {
  Location loc = func.getLoc();
  auto type = MemRefType::get(shape, element);
  int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  int64_t bytes = std::max<int64_t>(1, bits / 8) * type.getNumElements();
  OpBuilder b = OpBuilder::atBlockBegin(&body);
  Value offset = arith::ConstantIndexOp::create(b, loc, addScratchBytes(bytes));
  return memref::ViewOp::create(b, loc, type, getScratch(), offset,
                                ValueRange());
}

std::unique_ptr<LaunchCode> GpuMapper::makeLaunch(Location loc,
                                                  GpuShape shape) {
  return std::make_unique<LaunchCode>(host, loc, shape, [this](Value alloca) {
    Value &view = placed[alloca];
    if (!view) {
      auto type = cast<MemRefType>(alloca.getType());
      view = addScratch(type.getElementType(), type.getShape());
    }
    return view;
  });
}

void GpuMapper::cleanUp() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (!isa<gpu::LaunchOp, func::ReturnOp, arith::ConstantOp>(op)) {
      op.dropAllUses();
      op.erase();
    }
  if (!scratch)
    return;
  if (scratch.use_empty()) {
    body.eraseArgument(body.getNumArguments() - 1);
  } else {
    scratch.setType(MemRefType::get({scratchBytes}, host.getI8Type()));
  }
  func.setType(host.getFunctionType(body.getArgumentTypes(), {}));
  if (!scratch.use_empty())
    func.setArgAttr(func.getNumArguments() - 1, kScratchAttr,
                    host.getUnitAttr());
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

static bool isParallel(linalg::GenericOp op) {
  return op.getNumParallelLoops() == op.getNumLoops();
}

LogicalResult GpuMapper::collectSteps() {
  for (Operation &op : body) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      bool reduces = results.count(generic);
      Kind kind = Kind::Map;
      if (reduces)
        kind = Kind::Sum;
      else if (!isParallel(generic))
        kind = generic.getIteratorTypesArray().back() ==
                       utils::IteratorType::parallel
                   ? Kind::Columns
                   : Kind::Rows;
      steps.push_back({kind, &op});
    } else if (isa<scf::ForOp>(op)) {
      steps.push_back({Kind::Loop, &op});
    } else if (isa<memref::StoreOp>(op)) {
      steps.push_back({Kind::Effect, &op});
    } else if (!isPure(&op) && !isa<memref::LoadOp, memref::AllocaOp,
                                    func::ReturnOp>(op)) {
      return op.emitOpError("cannot be mapped to a GPU");
    }
  }
  return success();
}

/// Finds the fills that sums start from: they take no launch.
void GpuMapper::takeFills() {
  for (size_t i = 0; i < steps.size(); ++i) {
    Operation *op = steps[i].op;
    auto take = [&](OpOperand &out) {
      Value base = getBase(out.get());
      if (!isLinear(out) || base.getParentBlock() != &body ||
          fills.contains({op, base}))
        return;
      if (Value fill = takeFill(base, i))
        fills[{op, base}] = fill;
    };
    if (steps[i].kind == Kind::Columns || steps[i].kind == Kind::Rows)
      for (OpOperand &init : cast<linalg::GenericOp>(op).getDpsInitsMutable())
        take(init);
    if (steps[i].kind == Kind::Loop)
      op->walk([&](linalg::GenericOp generic) {
        for (OpOperand &init : generic.getDpsInitsMutable())
          if (generic.payloadUsesValueFromOperand(&init))
            take(init);
      });
  }
}

LogicalResult GpuMapper::run() {
  normalize();
  if (failed(collectSteps()))
    return failure();
  takeFills();
  dropUnread();
  bool stores = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].done)
      continue;
    if (steps[i].kind == Kind::Effect) {
      stores = true;
      continue;
    }
    // A step may read what was stored before it.
    if (stores)
      emitEffects();
    stores = false;
    if (failed(emit(i)))
      return failure();
  }
  emitEffects();
  tail.reset();
  cleanUp();
  return success();
}

LogicalResult GpuMapper::emit(size_t i) {
  Step &step = steps[i];
  step.done = true;
  tail.reset();
  switch (step.kind) {
  case Kind::Map:
    emitMaps(i);
    return success();
  case Kind::Sum:
    emitSums(i);
    return success();
  case Kind::Columns:
    emitColumns(i);
    return success();
  case Kind::Rows:
    emitRows(i);
    return success();
  case Kind::Loop:
    return emitLoop(i);
  case Kind::Effect:
    return success();
  }
  return failure();
}

//===----------------------------------------------------------------------===//
// Buffers of steps
//===----------------------------------------------------------------------===//

/// The buffers that `op` reads or writes, and among them those it writes.
static void getTouched(Operation *op, llvm::SetVector<Value> &touched,
                       llvm::SetVector<Value> &written) {
  op->walk([&](Operation *inner) {
    if (auto store = dyn_cast<memref::StoreOp>(inner))
      written.insert(getBase(store.getMemRef()));
    if (auto generic = dyn_cast<linalg::GenericOp>(inner))
      for (Value out : generic.getOutputs())
        written.insert(getBase(out));
    for (Value operand : inner->getOperands())
      if (isa<MemRefType>(operand.getType()))
        touched.insert(getBase(operand));
  });
}

/// Whether two views are of different elements of one buffer, as the parts of
/// a concatenation are.
static bool areDisjoint(Value first, Value second) {
  auto a = first.getDefiningOp<memref::SubViewOp>();
  auto b = second.getDefiningOp<memref::SubViewOp>();
  if (!a || !b || a.getSource() != b.getSource())
    return false;
  for (auto [low, size, stride, otherLow, otherSize, otherStride] : llvm::zip(
           a.getStaticOffsets(), a.getStaticSizes(), a.getStaticStrides(),
           b.getStaticOffsets(), b.getStaticSizes(), b.getStaticStrides())) {
    if (ShapedType::isDynamic(low) || ShapedType::isDynamic(otherLow) ||
        stride != 1 || otherStride != 1)
      continue;
    if (low + size <= otherLow || otherLow + otherSize <= low)
      return true;
  }
  return false;
}

bool GpuMapper::touchesConflict(Operation *first, Operation *second,
                                Value except) {
  llvm::SetVector<Value> a, aWritten, b, bWritten;
  getTouched(first, a, aWritten);
  getTouched(second, b, bWritten);
  auto x = dyn_cast<linalg::GenericOp>(first);
  auto y = dyn_cast<linalg::GenericOp>(second);
  auto conflicts = [&](Value base) {
    if (!aWritten.contains(base) && !bWritten.contains(base))
      return false;
    // Writers of different parts do not meet.
    if (x && y && x.getNumDpsInits() == 1 && y.getNumDpsInits() == 1 &&
        getBase(x.getOutputs()[0]) == base &&
        getBase(y.getOutputs()[0]) == base &&
        areDisjoint(x.getOutputs()[0], y.getOutputs()[0]))
      return false;
    return true;
  };
  return llvm::any_of(a, [&](Value base) {
    return base != except && b.contains(base) && conflicts(base);
  });
}

bool zero::isLinear(OpOperand &operand) {
  auto op = cast<linalg::GenericOp>(operand.getOwner());
  Value buffer = operand.get();
  while (Operation *def = buffer.getDefiningOp()) {
    if (!isa<memref::CollapseShapeOp, memref::ExpandShapeOp>(def))
      break;
    buffer = def->getOperand(0);
  }
  auto type = dyn_cast<MemRefType>(buffer.getType());
  if (!type || !type.getLayout().isIdentity() ||
      isa_and_nonnull<memref::SubViewOp>(buffer.getDefiningOp()))
    return false;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  bool isSum = op.getNumParallelLoops() == 0;
  unsigned next = 0;
  auto skip = [&]() {
    while (next < extents.size() &&
           (extents[next] == 1 ||
            (!isSum && kinds[next] != utils::IteratorType::parallel)))
      ++next;
  };
  for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim && !isa<AffineConstantExpr>(expr))
      return false;
    if (!dim || extents[dim.getPosition()] == 1)
      continue;
    skip();
    if (next != dim.getPosition())
      return false;
    ++next;
  }
  skip();
  return next == extents.size() &&
         type.getNumElements() ==
             (isSum ? countLoops(op)
                    : countLoops(op, utils::IteratorType::parallel));
}

/// The one value that a whole buffer has before `step`, or null; `writer` gets
/// the step that has written it. Copies of such a buffer are such buffers.
Value GpuMapper::findFill(Value base, size_t step, size_t &writer) {
  for (size_t i = step; i-- > 0;) {
    llvm::SetVector<Value> touched, written;
    getTouched(steps[i].op, touched, written);
    if (!written.contains(base))
      continue;
    auto fill = dyn_cast<linalg::GenericOp>(steps[i].op);
    if (!fill || steps[i].done || fill.getNumDpsInits() != 1 ||
        !isParallel(fill) || !isLinear(*fill.getDpsInitOperand(0)))
      return Value();
    writer = i;
    Value filler = fill.getBody()->getTerminator()->getOperand(0);
    auto arg = dyn_cast<BlockArgument>(filler);
    if (arg && arg.getOwner() == fill.getBody())
      filler = fill->getOperand(arg.getArgNumber());
    size_t source;
    if (isa<MemRefType>(filler.getType()))
      return getBase(filler) == base ? Value()
                                     : findFill(getBase(filler), i, source);
    Operation *def = filler.getDefiningOp();
    return def && fill->isAncestor(def) ? Value() : filler;
  }
  return Value();
}

Value GpuMapper::takeFill(Value base, size_t step) {
  size_t writer;
  Value fill = findFill(base, step, writer);
  if (!fill)
    return Value();
  // Who reads it in between needs the buffer.
  for (size_t i = writer + 1; i < step; ++i) {
    llvm::SetVector<Value> touched, written;
    getTouched(steps[i].op, touched, written);
    if (touched.contains(base))
      return Value();
  }
  steps[writer].done = true;
  return fill;
}

/// Drops elementwise steps whose temporaries nobody reads any more.
void GpuMapper::dropUnread() {
  for (size_t i = steps.size(); i-- > 0;) {
    auto op = dyn_cast<linalg::GenericOp>(steps[i].op);
    if (!op || steps[i].done || steps[i].kind != Kind::Map)
      continue;
    auto isRead = [&](Value out) {
      Value base = getBase(out);
      if (!base.getDefiningOp<memref::AllocaOp>())
        return true;
      return llvm::any_of(steps, [&](const Step &other) {
        llvm::SetVector<Value> touched, written;
        getTouched(other.op, touched, written);
        return other.op != op && !other.done && touched.contains(base);
      });
    };
    steps[i].done = llvm::none_of(op.getOutputs(), isRead);
  }
}

SmallVector<linalg::GenericOp> GpuMapper::takeReaders(Value base, size_t step) {
  SmallVector<size_t> readers;
  if (!base.getDefiningOp<memref::AllocaOp>())
    return {};
  for (size_t i = step + 1; i < steps.size(); ++i) {
    llvm::SetVector<Value> touched, written;
    getTouched(steps[i].op, touched, written);
    if (!touched.contains(base))
      continue;
    auto reader = dyn_cast<linalg::GenericOp>(steps[i].op);
    if (!reader || steps[i].done || written.contains(base) ||
        !isParallel(reader) || reader.hasIndexSemantics())
      return {};
    // It moves up to where its operand is computed.
    for (size_t between = step; between < i; ++between)
      if ((between == step || !steps[between].done) &&
          touchesConflict(steps[between].op, reader, base))
        return {};
    for (OpOperand &operand : reader->getOpOperands()) {
      bool isMemory = isa<MemRefType>(operand.get().getType());
      if (isMemory && getBase(operand.get()) == base && !isLinear(operand))
        return {};
    }
    readers.push_back(i);
  }
  SmallVector<linalg::GenericOp> ops;
  for (size_t i : readers) {
    steps[i].done = true;
    ops.push_back(cast<linalg::GenericOp>(steps[i].op));
  }
  return ops;
}

//===----------------------------------------------------------------------===//
// Code that all launches have
//===----------------------------------------------------------------------===//

/// Binds `value` and all it is computed from at the start of a launch.
static void bindSlice(LaunchCode &code, Value value) {
  Operation *def = value.getDefiningOp();
  if (!def || code.isBound(value) || code.launch->isAncestor(def))
    return;
  for (Value operand : def->getOperands())
    if (!isa<MemRefType>(operand.getType()))
      bindSlice(code, operand);
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(def->getRegions(), captured);
  for (Value operand : captured)
    if (!isa<MemRefType>(operand.getType()))
      bindSlice(code, operand);
  Operation *copy = code.clone(def);
  for (auto [from, to] : llvm::zip_equal(def->getResults(), copy->getResults()))
    code.bind(from, to);
}

void GpuMapper::bindScalars(LaunchCode &code, ArrayRef<Operation *> ops) {
  for (Operation *op : ops) {
    llvm::SetVector<Value> captured;
    captured.insert_range(op->getOperands());
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    for (const ScalarResult &result : results.lookup(op))
      captured.insert(result.init);
    for (Value value : captured)
      if (!isa<MemRefType>(value.getType()) && value.getParentBlock() == &body)
        bindSlice(code, value);
  }
}

void zero::buildIf(LaunchCode &code, Value condition,
                   llvm::function_ref<void()> build) {
  auto branch = scf::IfOp::create(code.b, code.loc, condition);
  OpBuilder::InsertionGuard guard(code.b);
  code.b.setInsertionPointToStart(branch.thenBlock());
  build();
}

SmallVector<Value>
zero::buildAligned(LaunchCode &code, ArrayRef<Value> bases, bool mayBeWide,
                   TypeRange types,
                   llvm::function_ref<SmallVector<Value>(bool wide)> build) {
  if (!mayBeWide || bases.empty())
    return build(mayBeWide);
  OpBuilder &b = code.b;
  auto branch = scf::IfOp::create(b, code.loc, types, areAligned(code, bases),
                                  /*withElseRegion=*/true);
  for (bool wide : {true, false}) {
    OpBuilder::InsertionGuard guard(b);
    Block *block = wide ? branch.thenBlock() : branch.elseBlock();
    b.setInsertionPointToStart(block);
    SmallVector<Value> values = build(wide);
    if (!types.empty())
      scf::YieldOp::create(b, code.loc, values);
  }
  return branch.getResults();
}

SmallVector<Value> zero::buildStrided(
    LaunchCode &code, Value first, int64_t count, int64_t stride,
    ValueRange inits,
    llvm::function_ref<SmallVector<Value>(Value at, ValueRange carried)>
        build) {
  OpBuilder &b = code.b;
  auto loop = scf::ForOp::create(b, code.loc, first, code.index(count),
                                 code.index(stride), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> values =
      build(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!inits.empty())
    scf::YieldOp::create(b, code.loc, values);
  return loop.getResults();
}
