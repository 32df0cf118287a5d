//===- Attention.cpp - Attention on the host ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library functions "attention" (query, key, value, perhaps a mask; result,
// logsumexp) and "attention_grad" (gradient by the result, query, key, value,
// result, logsumexp, perhaps the mask; gradients by query, key and value), as
// the operations of the same names in the train dialect. With the attribute
// "ratio", the key of dropout and the number of the first sample stand in front
// of the results.
//
// A task has the scores of one block of queries of one head in scratch memory,
// so that memory grows with the length and not with its square. The gradient
// computes them again, from the operands: its numbers are those of the forward
// pass also where a mask hides all keys. A task of the gradient has all blocks
// of the heads that share keys, in order: the sums by keys and values have one
// order for any number of threads.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Error.h"
#include "runtime/core/NarrowFloat.h"
#include "runtime/host/AttentionRows.h"
#include "runtime/host/LibraryCall.h"
#include "runtime/host/LibraryThreads.h"

#include <algorithm>
#include <cmath>

using namespace zrt;

namespace {
/// An operand of up to four dimensions, strides in elements; sizes of 1 have
/// stride 0.
struct Array {
  size_t operand = 0;
  fb::DType type = fb::DType_F32;
  int64_t sizes[4] = {1, 1, 1, 1}, strides[4] = {0, 0, 0, 0};

  uint8_t *at(uint8_t *const *operands, int64_t batch, int64_t head,
              int64_t row) const {
    int64_t offset =
        batch * strides[0] + head * strides[1] + row * strides[2];
    return operands[operand] + offset * int64_t(elementBytes(type));
  }
  /// Whether its rows are what products read.
  bool isPlain() const {
    return type == fb::DType_F32 && (sizes[3] == 1 || strides[3] == 1) &&
           (sizes[2] == 1 || strides[2] >= sizes[3]);
  }
};

/// Rows of floats.
struct Rows {
  float *data;
  int64_t stride;
};

/// Dropout of the probabilities: operands, which are scalars, and settings.
struct Dropout {
  size_t key, firstSample;
  double ratio;
  int64_t samples; ///< in the batch; 0: all draw as sample 0
};

/// Scratch memory of one worker, by offset in floats.
struct Room {
  uint64_t query, key, value, result, grad, scores, scoreGrads, keyGrad,
      valueGrad, floats;
};

class AttentionCall {
public:
  AttentionCall(const Command &command, const std::vector<fb::DType> &types);
  void prepare(LibraryCall &call);

private:
  Array arrayOf(const Command &command, const std::vector<fb::DType> &types,
                size_t index) const;
  void readDropout(const Command &command);
  void takeOperands(const Command &command,
                    const std::vector<fb::DType> &types);
  void checkShapes() const;
  void placeScratch();
  void forward(uint8_t *const *operands, float *scratch, int64_t task) const;
  void backward(uint8_t *const *operands, float *scratch, int64_t task) const;
  void gradBlock(uint8_t *const *operands, float *scratch, int64_t batch,
                 int64_t head, int64_t begin) const;
  Rows load(const Array &array, uint8_t *const *operands, float *room,
            int64_t batch, int64_t head, int64_t begin, int64_t count) const;
  void store(const float *rows, const Array &array, uint8_t *const *operands,
             int64_t batch, int64_t head, int64_t begin, int64_t count) const;
  void fillScores(uint8_t *const *operands, Rows queries, Rows keys,
                  float *scores, int64_t batch, int64_t head, int64_t begin,
                  int64_t rows, int64_t seen) const;
  void addMask(uint8_t *const *operands, float *scores, int64_t batch,
               int64_t head, int64_t row, int64_t count) const;
  Draw drawOf(uint8_t *const *operands, int64_t batch) const;
  void dropRows(const Draw &draw, float *probabilities, float *dropped,
                int64_t batch, int64_t head, int64_t begin, int64_t rows,
                int64_t seen) const;
  void gradRow(const Draw &draw, const float *probabilities, float *grad,
               int64_t seen, float mean) const;
  int64_t countSeen(int64_t end) const {
    return causal ? std::min(end, lengthK) : lengthK;
  }
  int64_t rowsFrom(int64_t begin) const {
    return std::min(blockRows, lengthQ - begin);
  }
  float *logsumexpAt(uint8_t *const *operands, int64_t batch, int64_t head,
                     int64_t row) const {
    return reinterpret_cast<float *>(
        logsumexp.at(operands, batch, head, row));
  }

  bool isGrad;
  float scale = 1;
  bool causal = false, masked = false;
  std::optional<Dropout> dropout;
  Array grad, query, key, value, result, logsumexp, mask;
  Array queryGrad, keyGrad, valueGrad;
  int64_t batches, heads, groups, lengthQ, lengthK, sizeQ, sizeV;
  int64_t blockRows = 0;
  Room room{};
};
} // namespace

//===----------------------------------------------------------------------===//
// What a call is
//===----------------------------------------------------------------------===//

Array AttentionCall::arrayOf(const Command &command,
                             const std::vector<fb::DType> &types,
                             size_t index) const {
  const View &view = command.operands[index].view;
  if (view.sizes.size() > 4)
    fail(ZRT_ERROR_FORMAT, "operand ", index, " of ", command.callee, " has ",
         view.sizes.size(), " dimensions; at most 4 are expected");
  checkLibraryType(types[index]);
  Array array;
  array.operand = index;
  array.type = types[index];
  for (size_t dim = 0; dim < view.sizes.size(); ++dim) {
    array.sizes[dim] = view.sizes[dim];
    array.strides[dim] = view.sizes[dim] == 1 ? 0 : view.strides[dim];
    // Keeps products of a few sizes inside 64 bits.
    if (view.sizes[dim] >= int64_t(1) << 31)
      fail(ZRT_ERROR_FORMAT, "operand ", index, " of ", command.callee,
           " has a size of ", view.sizes[dim], ", at most 2^31 - 1 is expected");
  }
  return array;
}

/// The number of an attribute, if it has one.
static std::optional<double> numberOf(const Command &command,
                                      std::string_view name) {
  for (const Attr &attr : command.attrs)
    if (attr.name == name && attr.floats.size() == 1)
      return attr.floats.front();
  return std::nullopt;
}

static double readScale(const Command &command) {
  if (std::optional<double> scale = numberOf(command, "scale"))
    return *scale;
  fail(ZRT_ERROR_FORMAT, "an ", command.callee, " has no attribute scale");
}

/// `index`, of an operand that must be one integer.
static size_t scalarAt(const Command &command,
                       const std::vector<fb::DType> &types, size_t index) {
  if (types[index] != fb::DType_I64 ||
      elementCount(command.operands[index].view.sizes) != 1)
    fail(ZRT_ERROR_FORMAT, "operand ", index, " of ", command.callee,
         " is no scalar of i64, which its dropout takes");
  return index;
}

void AttentionCall::readDropout(const Command &command) {
  std::optional<double> ratio = numberOf(command, "ratio");
  if (!ratio)
    return;
  if (!(*ratio >= 0 && *ratio < 1))
    fail(ZRT_ERROR_FORMAT, "an ", command.callee, " has a ratio of ", *ratio,
         ", expected one in [0, 1)");
  dropout = Dropout{0, 0, *ratio, 0};
  std::vector<int64_t> samples = command.ints("samples");
  if (samples.empty())
    return;
  dropout->samples = samples.front();
  if (samples.front() <= 0 || batches % samples.front() != 0)
    fail(ZRT_ERROR_FORMAT, "an ", command.callee, " has ", samples.front(),
         " samples in a batch of ", batches);
}

AttentionCall::AttentionCall(const Command &command,
                             const std::vector<fb::DType> &types)
    : isGrad(command.callee == "attention_grad"),
      scale(float(readScale(command))) {
  bool drops = numberOf(command, "ratio").has_value();
  size_t plain = (isGrad ? 9 : 5) + (drops ? 2 : 0);
  size_t count = command.operands.size();
  if (count != plain && count != plain + 1)
    fail(ZRT_ERROR_FORMAT, "an ", command.callee, " has ", plain,
         " operands (", plain + 1, " with a mask), not ", count);
  masked = count > plain;
  for (const Attr &attr : command.attrs)
    causal = causal || (attr.name == "causal" && !attr.ints.empty() &&
                        attr.ints.front() != 0);
  takeOperands(command, types);
  checkShapes();
  for (size_t i = isGrad ? count - 3 : count - 2; i < count; ++i)
    if (overlapsItself(command.operands[i].view))
      fail(ZRT_ERROR_FORMAT, "an output has two indices for one element");
  heads = query.sizes[1];
  groups = key.sizes[1];
  lengthQ = query.sizes[2];
  lengthK = key.sizes[2];
  sizeQ = query.sizes[3];
  sizeV = value.sizes[3];
  placeScratch();
}

void AttentionCall::takeOperands(const Command &command,
                                 const std::vector<fb::DType> &types) {
  size_t next = 0;
  auto take = [&](Array &array) { array = arrayOf(command, types, next++); };
  if (isGrad)
    take(grad);
  for (Array *array : {&query, &key, &value})
    take(*array);
  if (isGrad) {
    take(result);
    take(logsumexp);
  }
  if (masked)
    take(mask);
  batches = query.sizes[0];
  readDropout(command);
  if (dropout) {
    dropout->key = scalarAt(command, types, next++);
    dropout->firstSample = scalarAt(command, types, next++);
  }
  if (!isGrad) {
    take(result);
    take(logsumexp);
    return;
  }
  for (Array *array : {&queryGrad, &keyGrad, &valueGrad})
    take(*array);
}

/// Whether `array` has these sizes; what `broadcasts` may have 1 in their place.
static bool hasSizes(const Array &array, std::initializer_list<int64_t> sizes,
                     bool broadcasts = false) {
  size_t dim = 0;
  for (int64_t size : sizes) {
    int64_t own = array.sizes[dim++];
    if (own != size && !(broadcasts && own == 1))
      return false;
  }
  return true;
}

void AttentionCall::checkShapes() const {
  auto [b, h, s, d] = query.sizes;
  int64_t g = key.sizes[1], t = key.sizes[2], e = value.sizes[3];
  bool fits = hasSizes(key, {b, g, t, d}) && hasSizes(value, {b, g, t, e}) &&
              hasSizes(result, {b, h, s, e}) &&
              hasSizes(logsumexp, {b, h, s, 1}) && g > 0 && h % g == 0 &&
              logsumexp.type == fb::DType_F32 &&
              (!masked || hasSizes(mask, {b, h, s, t}, /*broadcasts=*/true));
  if (isGrad)
    fits = fits && hasSizes(grad, {b, h, s, e}) &&
           hasSizes(queryGrad, {b, h, s, d}) &&
           hasSizes(keyGrad, {b, g, t, d}) && hasSizes(valueGrad, {b, g, t, e});
  if (!fits)
    fail(ZRT_ERROR_FORMAT, "shapes do not fit: queries of ", b, "x", h, "x", s,
         "x", d, ", keys of ", key.sizes[0], "x", g, "x", t, "x", key.sizes[3],
         ", values of ", value.sizes[0], "x", value.sizes[1], "x",
         value.sizes[2], "x", e);
}

/// Scores of a block that stay in a processor's own cache.
static constexpr int64_t blockScores = 1 << 16;

void AttentionCall::placeScratch() {
  blockRows = std::min(
      lengthQ, std::clamp<int64_t>(blockScores / lengthK, 16, 64));
  uint64_t end = 0;
  auto take = [&](bool needed, int64_t rows, int64_t columns) {
    uint64_t begin = end;
    std::optional<uint64_t> floats =
        checkedMul(uint64_t(rows), uint64_t(columns));
    if (!floats || *floats > uint64_t(1) << 40)
      fail(ZRT_ERROR_FORMAT, "attention over ", lengthK,
           " keys needs too much scratch memory");
    if (needed)
      end += (*floats + 15) / 16 * 16;
    return begin;
  };
  room.query = take(!query.isPlain(), blockRows, sizeQ);
  room.key = take(!key.isPlain(), lengthK, sizeQ);
  room.value = take(!value.isPlain(), lengthK, sizeV);
  room.result = take(isGrad ? !result.isPlain() : true, blockRows, sizeV);
  room.scores =
      take(true, blockRows, isGrad ? std::max(lengthK, sizeQ) : lengthK);
  room.grad = take(isGrad && !grad.isPlain(), blockRows, sizeV);
  room.scoreGrads = take(isGrad, blockRows, lengthK);
  room.keyGrad = take(isGrad, lengthK, sizeQ);
  room.valueGrad = take(isGrad, lengthK, sizeV);
  room.floats = end;
}

//===----------------------------------------------------------------------===//
// Rows in and out
//===----------------------------------------------------------------------===//

template <typename Narrow>
static void widen(const uint8_t *from, int64_t stride, float *to,
                  int64_t count) {
  auto *elements = reinterpret_cast<const Narrow *>(from);
  for (int64_t i = 0; i < count; ++i)
    to[i] = elements[i * stride].widen();
}

static void loadRow(const uint8_t *from, fb::DType type, int64_t stride,
                    float *to, int64_t count) {
  if (type == fb::DType_BF16)
    return widen<BFloat16>(from, stride, to, count);
  if (type == fb::DType_F16)
    return widen<Half>(from, stride, to, count);
  auto *elements = reinterpret_cast<const float *>(from);
  for (int64_t i = 0; i < count; ++i)
    to[i] = elements[i * stride];
}

template <typename Narrow>
static void round(const float *from, uint8_t *to, int64_t stride,
                  int64_t count) {
  auto *elements = reinterpret_cast<Narrow *>(to);
  for (int64_t i = 0; i < count; ++i)
    elements[i * stride] = Narrow::round(from[i]);
}

static void storeRow(const float *from, uint8_t *to, fb::DType type,
                     int64_t stride, int64_t count) {
  if (type == fb::DType_BF16)
    return round<BFloat16>(from, to, stride, count);
  if (type == fb::DType_F16)
    return round<Half>(from, to, stride, count);
  auto *elements = reinterpret_cast<float *>(to);
  for (int64_t i = 0; i < count; ++i)
    elements[i * stride] = from[i];
}

/// Rows of a head as floats: where they are, or in `room`.
Rows AttentionCall::load(const Array &array, uint8_t *const *operands,
                         float *room, int64_t batch, int64_t head,
                         int64_t begin, int64_t count) const {
  int64_t columns = array.sizes[3];
  if (array.isPlain())
    return {reinterpret_cast<float *>(array.at(operands, batch, head, begin)),
            std::max(array.strides[2], columns)};
  for (int64_t row = 0; row < count; ++row)
    loadRow(array.at(operands, batch, head, begin + row), array.type,
            array.strides[3], room + row * columns, columns);
  return {room, columns};
}

void AttentionCall::store(const float *rows, const Array &array,
                          uint8_t *const *operands, int64_t batch, int64_t head,
                          int64_t begin, int64_t count) const {
  int64_t columns = array.sizes[3];
  for (int64_t row = 0; row < count; ++row)
    storeRow(rows + row * columns,
             array.at(operands, batch, head, begin + row), array.type,
             array.strides[3], columns);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

/// `out` (rows x columns) = factor * `a` times `b`, plus itself with `add`.
static void multiply(char transA, char transB, int64_t rows, int64_t columns,
                     int64_t depth, float factor, Rows a, Rows b, bool add,
                     Rows out) {
  dnnl::sgemm(transA, transB, rows, columns, depth, factor, a.data, a.stride,
              b.data, b.stride, add ? 1.0f : 0.0f, out.data, out.stride);
}

void AttentionCall::addMask(uint8_t *const *operands, float *scores,
                            int64_t batch, int64_t head, int64_t row,
                            int64_t count) const {
  const uint8_t *from = mask.at(operands, mask.sizes[0] == 1 ? 0 : batch,
                                mask.sizes[1] == 1 ? 0 : head,
                                mask.sizes[2] == 1 ? 0 : row);
  int64_t stride = mask.strides[3];
  if (mask.type == fb::DType_F32) {
    auto *added = reinterpret_cast<const float *>(from);
    for (int64_t i = 0; i < count; ++i)
      scores[i] += added[i * stride];
    return;
  }
  bool brain = mask.type == fb::DType_BF16;
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = reinterpret_cast<const uint16_t *>(from)[i * stride];
    scores[i] += brain ? BFloat16{bits}.widen() : Half{bits}.widen();
  }
}

/// Scores of queries `begin` to `begin` + `rows` and the first `seen` keys, of
/// which a query's own last one is its number with `causal`.
void AttentionCall::fillScores(uint8_t *const *operands, Rows queries,
                               Rows keys, float *scores, int64_t batch,
                               int64_t head, int64_t begin, int64_t rows,
                               int64_t seen) const {
  multiply('N', 'T', rows, seen, sizeQ, scale, queries, keys, false,
           {scores, seen});
  for (int64_t row = 0; row < rows; ++row) {
    float *own = scores + row * seen;
    int64_t count = countSeen(begin + row + 1);
    if (masked)
      addMask(operands, own, batch, head, begin + row, count);
    std::fill(own + count, own + seen, -INFINITY);
  }
}

/// What the samples of a batch draw.
Draw AttentionCall::drawOf(uint8_t *const *operands, int64_t batch) const {
  auto read = [&](size_t operand) {
    return *reinterpret_cast<const uint64_t *>(operands[operand]);
  };
  Draw draw;
  draw.key = read(dropout->key);
  draw.sample = dropout->samples
                    ? read(dropout->firstSample) +
                          uint64_t(batch / (batches / dropout->samples))
                    : 0;
  draw.bound = uint32_t(std::ceil(std::ldexp(dropout->ratio, 24)));
  draw.factor = float(1 / (1 - dropout->ratio));
  return draw;
}

/// Dropout of the rows of a block of probabilities, of which the last ones are
/// 0 where queries do not see them.
void AttentionCall::dropRows(const Draw &draw, float *probabilities,
                             float *dropped, int64_t batch, int64_t head,
                             int64_t begin, int64_t rows, int64_t seen) const {
  int64_t perSample = dropout->samples ? batches / dropout->samples : batches;
  uint64_t firstRow =
      (uint64_t(batch % perSample) * uint64_t(heads) + uint64_t(head)) *
          uint64_t(lengthQ) +
      uint64_t(begin);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t count = countSeen(begin + row + 1);
    float *own = dropped + row * seen;
    dropRow(draw, (firstRow + uint64_t(row)) * uint64_t(lengthK),
            probabilities + row * seen, own, count);
    std::fill(own + count, own + seen, 0.0f);
  }
}

void AttentionCall::forward(uint8_t *const *operands, float *scratch,
                            int64_t task) const {
  int64_t blocks = (lengthQ + blockRows - 1) / blockRows;
  int64_t begin = task % blocks * blockRows, head = task / blocks % heads;
  int64_t batch = task / blocks / heads, rows = rowsFrom(begin);
  int64_t group = head / (heads / groups), seen = countSeen(begin + rows);
  float *scores = scratch + room.scores, *out = scratch + room.result;
  Rows queries = load(query, operands, scratch + room.query, batch, head,
                      begin, rows);
  Rows keys =
      load(key, operands, scratch + room.key, batch, group, 0, seen);
  Rows values =
      load(value, operands, scratch + room.value, batch, group, 0, seen);
  fillScores(operands, queries, keys, scores, batch, head, begin, rows, seen);
  for (int64_t row = 0; row < rows; ++row)
    *logsumexpAt(operands, batch, head, begin + row) =
        softmaxRow(scores + row * seen, seen);
  if (dropout)
    dropRows(drawOf(operands, batch), scores, scores, batch, head, begin, rows,
             seen);
  multiply('N', 'N', rows, sizeV, seen, 1.0f, {scores, seen}, values, false,
           {out, sizeV});
  store(out, result, operands, batch, head, begin, rows);
}

//===----------------------------------------------------------------------===//
// Gradient
//===----------------------------------------------------------------------===//

/// Replaces the gradient by the weights of one query, `grad`, by that by its
/// scores.
void AttentionCall::gradRow(const Draw &draw, const float *probabilities,
                            float *grad, int64_t seen, float mean) const {
  if (dropout)
    droppedGradRow(draw, probabilities, grad, seen, mean, scale);
  else
    softmaxGradRow(probabilities, grad, seen, mean, scale);
}

/// Adds what one block of queries gives to the gradients by keys and values,
/// and stores that by the queries.
void AttentionCall::gradBlock(uint8_t *const *operands, float *scratch,
                              int64_t batch, int64_t head,
                              int64_t begin) const {
  int64_t rows = rowsFrom(begin), group = head / (heads / groups);
  int64_t seen = countSeen(begin + rows);
  auto ofQueries = [&](const Array &array, uint64_t place) {
    return load(array, operands, scratch + place, batch, head, begin, rows);
  };
  Rows queries = ofQueries(query, room.query), grads = ofQueries(grad, room.grad);
  Rows results = ofQueries(result, room.result);
  // In scratch memory since the first block of the task.
  auto ofKeys = [&](const Array &array, uint64_t place) {
    return array.isPlain() ? load(array, operands, nullptr, batch, group, 0, 0)
                           : Rows{scratch + place, array.sizes[3]};
  };
  Rows keys = ofKeys(key, room.key), values = ofKeys(value, room.value);
  Rows scores{scratch + room.scores, seen};
  Rows scoreGrads{scratch + room.scoreGrads, seen};
  fillScores(operands, queries, keys, scores.data, batch, head, begin, rows,
             seen);
  for (int64_t row = 0; row < rows; ++row)
    softmaxRow(scores.data + row * seen, seen);
  // What met the values; the memory of the score gradients is still free.
  Rows weights = dropout ? scoreGrads : scores;
  Draw draw = dropout ? drawOf(operands, batch) : Draw();
  if (dropout)
    dropRows(draw, scores.data, weights.data, batch, head, begin, rows, seen);
  multiply('T', 'N', seen, sizeV, rows, 1.0f, weights, grads, true,
           {scratch + room.valueGrad, sizeV});
  multiply('N', 'T', rows, seen, sizeV, 1.0f, grads, values, false, scoreGrads);
  for (int64_t row = 0; row < rows; ++row)
    gradRow(draw, scores.data + row * seen, scoreGrads.data + row * seen, seen,
            dotRow(grads.data + row * grads.stride,
                   results.data + row * results.stride, sizeV));
  multiply('T', 'N', seen, sizeQ, rows, 1.0f, scoreGrads, queries, true,
           {scratch + room.keyGrad, sizeQ});
  // The probabilities are needed no more.
  Rows byQueries{scores.data, sizeQ};
  multiply('N', 'N', rows, sizeQ, seen, 1.0f, scoreGrads, keys, false,
           byQueries);
  store(byQueries.data, queryGrad, operands, batch, head, begin, rows);
}

void AttentionCall::backward(uint8_t *const *operands, float *scratch,
                             int64_t task) const {
  int64_t group = task % groups, batch = task / groups;
  int64_t sharing = heads / groups;
  std::fill_n(scratch + room.keyGrad, lengthK * sizeQ, 0.0f);
  std::fill_n(scratch + room.valueGrad, lengthK * sizeV, 0.0f);
  for (auto [array, place] :
       {std::pair(&key, room.key), std::pair(&value, room.value)})
    load(*array, operands, scratch + place, batch, group, 0, lengthK);
  for (int64_t head = group * sharing; head < (group + 1) * sharing; ++head)
    for (int64_t begin = 0; begin < lengthQ; begin += blockRows)
      gradBlock(operands, scratch, batch, head, begin);
  store(scratch + room.keyGrad, keyGrad, operands, batch, group, 0, lengthK);
  store(scratch + room.valueGrad, valueGrad, operands, batch, group, 0,
        lengthK);
}

//===----------------------------------------------------------------------===//
// Entry
//===----------------------------------------------------------------------===//

void AttentionCall::prepare(LibraryCall &call) {
  int64_t blocks = (lengthQ + blockRows - 1) / blockRows;
  int64_t tasks = isGrad ? batches * groups : batches * heads * blocks;
  auto threads = uint32_t(
      std::min<int64_t>(countLibraryThreads(), std::max<int64_t>(tasks, 1)));
  std::optional<uint64_t> bytes =
      checkedMul(room.floats * sizeof(float), threads);
  if (!bytes)
    fail(ZRT_ERROR_FORMAT, "attention needs too much scratch memory");
  call.scratch(*bytes);
  LibraryStep step;
  step.function = [self = *this, threads, tasks](uint8_t *const *operands,
                                                 uint8_t *scratch) {
    auto *floats = reinterpret_cast<float *>(scratch);
    runOnLibraryThreads(threads, tasks, [&](uint32_t worker, int64_t task) {
      float *own = floats + worker * self.room.floats;
      if (self.isGrad)
        self.backward(operands, own, task);
      else
        self.forward(operands, own, task);
    });
  };
  call.steps.push_back(std::move(step));
}

LibraryCall zrt::makeAttention(const Command &command,
                               const std::vector<fb::DType> &types) {
  LibraryCall call;
  AttentionCall(command, types).prepare(call);
  return call;
}
