//===- TrainToLinalgRandom.cpp - Random numbers ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The ops of TrainOpsRandom.td: each element computes its own counter, and
// Philox4x32-10 of it.
//
//===----------------------------------------------------------------------===//

#include "TrainToLinalg.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <array>

using namespace mlir;
using namespace mlir::zero;

namespace {
using Words = std::array<Value, 4>;

/// Arithmetic of unsigned integers at one place; a number takes the type of
/// the other operand.
struct IntegerMath {
  OpBuilder &b;
  Location loc;

  Value constant(Type type, uint64_t value) const {
    auto bits = APInt(type.getIntOrFloatBitWidth(), value,
                      /*isSigned=*/false, /*implicitTrunc=*/true);
    return arith::ConstantOp::create(b, loc, type, IntegerAttr::get(type, bits));
  }
  Value like(Value x, uint64_t value) const {
    return constant(x.getType(), value);
  }
  template <typename Op>
  Value make(Value x, Value y) const {
    return Op::create(b, loc, x, y);
  }
  template <typename Op>
  Value make(Value x, uint64_t y) const {
    return Op::create(b, loc, x, like(x, y));
  }
  /// Bits 32 * `word` and above of a 64-bit number.
  Value word(Value x, int word) const {
    Value shifted = word ? make<arith::ShRUIOp>(x, uint64_t(32)) : x;
    return arith::TruncIOp::create(b, loc, b.getI32Type(), shifted);
  }
  /// The 64-bit number of two words.
  Value join(Value low, Value high) const {
    Type wide = b.getI64Type();
    Value upper = arith::ExtUIOp::create(b, loc, wide, high);
    Value lower = arith::ExtUIOp::create(b, loc, wide, low);
    return make<arith::OrIOp>(make<arith::ShLIOp>(upper, uint64_t(32)), lower);
  }
};

/// Where an element lies: the number of its sample and its offset inside.
struct Drawn {
  Value sample, offset;
};
} // namespace

/// The ten rounds of Philox4x32 (Random123, philox.h).
static Words philox(const IntegerMath &m, Words counter, Value key) {
  Value key0 = m.word(key, 0), key1 = m.word(key, 1);
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key0 = m.make<arith::AddIOp>(key0, 0x9E3779B9);
      key1 = m.make<arith::AddIOp>(key1, 0xBB67AE85);
    }
    auto first = arith::MulUIExtendedOp::create(
        m.b, m.loc, counter[0], m.like(counter[0], 0xD2511F53));
    auto second = arith::MulUIExtendedOp::create(
        m.b, m.loc, counter[2], m.like(counter[2], 0xCD9E8D57));
    Value mixed0 = m.make<arith::XOrIOp>(second.getHigh(), counter[1]);
    Value mixed2 = m.make<arith::XOrIOp>(first.getHigh(), counter[3]);
    counter = {m.make<arith::XOrIOp>(mixed0, key0), second.getLow(),
               m.make<arith::XOrIOp>(mixed2, key1), first.getLow()};
  }
  return counter;
}

/// The four words that `drawn.sample` draws in block `block`.
static Words drawBlock(const IntegerMath &m, Value key, const Drawn &drawn,
                       Value block) {
  return philox(m,
                {m.word(block, 0), m.word(block, 1), m.word(drawn.sample, 0),
                 m.word(drawn.sample, 1)},
                key);
}

/// One of `words` by the number of it, from 0.
static Value select(const IntegerMath &m, ArrayRef<Value> words, Value index) {
  Value chosen = words.back();
  for (size_t i = words.size() - 1; i-- > 0;) {
    Value here = arith::CmpIOp::create(m.b, m.loc, arith::CmpIPredicate::eq,
                                       index, m.like(index, i));
    chosen = arith::SelectOp::create(m.b, m.loc, here, words[i], chosen);
  }
  return chosen;
}

/// The loop indices of the body that is being built, as i64.
static Drawn locate(const IntegerMath &m, ArrayRef<int64_t> shape,
                    std::optional<uint64_t> samples,
                    std::optional<uint64_t> along, Value firstSample) {
  Type wide = m.b.getI64Type();
  Drawn drawn{m.constant(wide, 0), m.constant(wide, 0)};
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    int64_t size = extent;
    Value index = arith::IndexCastOp::create(
        m.b, m.loc, wide, linalg::IndexOp::create(m.b, m.loc, dim));
    if (along && *along == dim) {
      size = extent / int64_t(*samples);
      Value sample = size == 1 ? index : m.make<arith::DivUIOp>(index, size);
      drawn.sample = m.make<arith::AddIOp>(firstSample, sample);
      if (size == 1)
        continue;
      index = m.make<arith::RemUIOp>(index, size);
    }
    drawn.offset = m.make<arith::AddIOp>(
        m.make<arith::MulIOp>(drawn.offset, size), index);
  }
  return drawn;
}

/// A word without its last bits as a float of `type` in [0, 1): exact.
static Value toUnit(const IntegerMath &m, Value word, FloatType type) {
  unsigned bits = std::min(24u, type.getFPMantissaWidth());
  FloatMath f{m.b, m.loc};
  auto compute = cast<FloatType>(getComputeType(type));
  Value kept = m.make<arith::ShRUIOp>(word, uint64_t(32 - bits));
  Value number = arith::UIToFPOp::create(m.b, m.loc, compute, kept);
  return f.mul(number, std::ldexp(1.0, -int(bits)));
}

/// The word of an element of which each takes one.
static Value drawWord(const IntegerMath &m, Value key, const Drawn &drawn) {
  Value block = m.make<arith::ShRUIOp>(drawn.offset, uint64_t(2));
  Words words = drawBlock(m, key, drawn, block);
  Value place = m.word(m.make<arith::AndIOp>(drawn.offset, uint64_t(3)), 0);
  return select(m, words, place);
}

template <typename Op>
static Drawn locate(const IntegerMath &m, Op op, Value firstSample) {
  return locate(m, getTensorType(op.getResult()).getShape(), op.getSamples(),
                op.getAlong(), firstSample);
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static SmallVector<Value> lowerKey(OpBuilder &b, train::RandomKeyOp op) {
  Location loc = op.getLoc();
  IntegerMath m{b, loc};
  Value seed = extractScalar(b, loc, op.getSeed());
  Value step = extractScalar(b, loc, op.getStep());
  Type word = b.getI32Type();
  Words words = philox(m,
                       {m.word(step, 0), m.word(step, 1),
                        m.constant(word, op.getSite()), m.constant(word, 0)},
                       seed);
  return {scalarTensor(b, loc, m.join(words[0], words[1]), op.getType())};
}

static SmallVector<Value> lowerUniform(OpBuilder &b,
                                       train::RandomUniformOp op) {
  auto element = cast<FloatType>(op.getElement());
  return mapElements(
      b, op.getLoc(), emptyTensor(b, op.getLoc(), op.getType()),
      {op.getKey(), op.getFirstSample()},
      [&](OpBuilder &n, Location at, ValueRange args) {
        IntegerMath m{n, at};
        Value word = drawWord(m, args[0], locate(m, op, args[1]));
        return SmallVector<Value>{
            convertScalar(n, at, toUnit(m, word, element), element)};
      });
}

static SmallVector<Value> lowerNormal(OpBuilder &b, train::RandomNormalOp op) {
  auto element = cast<FloatType>(op.getElement());
  auto compute = cast<FloatType>(getComputeType(element));
  return mapElements(
      b, op.getLoc(), emptyTensor(b, op.getLoc(), op.getType()),
      {op.getKey(), op.getFirstSample()},
      [&](OpBuilder &n, Location at, ValueRange args) {
        IntegerMath m{n, at};
        FloatMath f{n, at};
        Drawn drawn = locate(m, op, args[1]);
        Value block = m.make<arith::ShRUIOp>(drawn.offset, uint64_t(1));
        Words words = drawBlock(m, args[0], drawn, block);
        Value half =
            m.word(m.make<arith::AndIOp>(drawn.offset, uint64_t(1)), 0);
        Value u = toUnit(m, select(m, {words[0], words[2]}, half), compute);
        Value v = toUnit(m, select(m, {words[1], words[3]}, half), compute);
        Value log = math::LogOp::create(n, at, f.subFrom(1.0, u));
        Value radius = f.sqrt(f.mul(log, -2.0));
        Value cosine =
            math::CosOp::create(n, at, f.mul(v, 2 * 3.14159265358979323846));
        return SmallVector<Value>{
            convertScalar(n, at, f.mul(radius, cosine), element)};
      });
}

static SmallVector<Value> lowerDropout(OpBuilder &b, train::DropoutOp op) {
  Type element = getTensorType(op.getInput()).getElementType();
  Type compute = getComputeType(element);
  double ratio = op.getRatio().convertToDouble();
  // word / 2^32 without its last bits >= ratio, in integers.
  auto bound = uint64_t(std::ceil(std::ldexp(ratio, 24)));
  return mapElements(
      b, op.getLoc(), emptyTensor(b, op.getLoc(), op.getType()),
      op->getOperands(), [&](OpBuilder &n, Location at, ValueRange args) {
        IntegerMath m{n, at};
        FloatMath f{n, at};
        Value word = drawWord(m, args[1], locate(m, op, args[2]));
        Value number = m.make<arith::ShRUIOp>(word, uint64_t(8));
        Value stays =
            arith::CmpIOp::create(n, at, arith::CmpIPredicate::uge, number,
                                  m.like(number, bound));
        Value scaled = f.mul(f.cast(args[0], compute), 1 / (1 - ratio));
        Value zero = f.constant(compute, 0.0);
        Value chosen = arith::SelectOp::create(n, at, stays, scaled, zero);
        return SmallVector<Value>{f.cast(chosen, element)};
      });
}

void zero::populateTrainRandomToLinalg(RewritePatternSet &patterns) {
  addLowering(patterns, lowerKey);
  addLowering(patterns, lowerUniform);
  addLowering(patterns, lowerNormal);
  addLowering(patterns, lowerDropout);
}
