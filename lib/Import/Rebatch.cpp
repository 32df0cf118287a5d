//===- Rebatch.cpp - A graph at another batch -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The corrections, and the proof that nothing else depends on the old size.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Rebatch.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <limits>

using namespace mlir;
using namespace mlir::zero::onnx_import;

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

void Rebatch::addInput(StringRef name, SmallVectorImpl<int64_t> &shape) {
  Known known;
  known.before.assign(shape.begin(), shape.end());
  known.after = known.before;
  if (!shape.empty() && shape.front() == from)
    known.after.front() = to;
  if (isNew)
    shape.assign(known.after.begin(), known.after.end());
  values[name] = std::move(known);
}

const Rebatch::Known *Rebatch::inputOf(NodeReader &node, int i) const {
  if (i >= node.message().input_size())
    return nullptr;
  auto it = values.find(node.message().input(i));
  return it == values.end() ? nullptr : &it->second;
}

/// The only dimension that differs.
std::optional<unsigned> Rebatch::batchDim(const Known &known) const {
  std::optional<unsigned> found;
  for (unsigned i = 0, e = known.before.size(); i != e; ++i) {
    if (known.before[i] == known.after[i])
      continue;
    if (found)
      return std::nullopt;
    found = i;
  }
  return found;
}

/// The shape that a Reshape to `wanted` has at the new batch. Rows of samples
/// stay together: what stands before the batch still does, and of what is there
/// one dimension takes the samples.
FailureOr<SmallVector<int64_t>>
Rebatch::reshape(NodeReader &node, const Known &data,
                 ArrayRef<int64_t> wanted) const {
  std::optional<unsigned> batch = batchDim(data);
  if (!batch) {
    node.error() << "two dimensions of its input are the batch";
    return failure();
  }
  int64_t before = product(ArrayRef(data.before).take_front(*batch));
  SmallVector<unsigned> fitting, kept;
  for (unsigned i = 0, e = wanted.size(); i != e; ++i) {
    if (product(wanted.take_front(i)) != before || wanted[i] % from != 0)
      continue;
    fitting.push_back(i);
    if (wanted[i] == data.before[*batch])
      kept.push_back(i);
  }
  ArrayRef<unsigned> places = kept.empty() ? fitting : kept;
  if (places.size() != 1) {
    node.error() << (places.empty() ? "no dimension of its shape ["
                                    : "several dimensions of its shape [")
                 << wanted << "] can be the batch, which was " << from;
    return failure();
  }
  SmallVector<int64_t> shape(wanted);
  shape[places.front()] = shape[places.front()] / from * to;
  return shape;
}

/// The shape of an Expand at the new batch. What has no batch yet and is
/// expanded to its size is taken to become the batch: the values that it meets
/// later have to confirm it.
std::optional<SmallVector<int64_t>> Rebatch::expand(NodeReader &node,
                                                    const Known *data,
                                                    ArrayRef<int64_t> wanted,
                                                    ArrayRef<int64_t> literal) {
  SmallVector<int64_t> shape(literal);
  bool changed = data && data->changed(), corrected = false;
  unsigned rank = data ? data->before.size() : 0;
  for (unsigned i = 0, e = literal.size(); i != e; ++i) {
    unsigned fromEnd = e - i; // shapes are aligned at their ends
    int64_t before = fromEnd <= rank ? data->before[rank - fromEnd] : 1;
    int64_t after = fromEnd <= rank ? data->after[rank - fromEnd] : 1;
    bool becomes = !changed && from > 1 && literal[i] == from && before == 1;
    if (before != after && literal[i] == before)
      shape[i] = after;
    else if (becomes && !corrected)
      shape[i] = to;
    else
      continue;
    corrected = true;
  }
  if (!corrected)
    return std::nullopt;
  if (!changed)
    open.emplace_back(std::in_place, node.location(), node.op().str());
  return shape;
}

/// Whether the dimensions of input `i` meet those of the others, aligned at
/// their ends.
static bool isAligned(StringRef op, int i) {
  static const llvm::StringSet<> elementwise{
      "Add",         "Sub",   "Mul",     "Div",           "Pow",
      "Mod",         "Max",   "Min",     "Sum",           "And",
      "Or",          "Xor",   "Mean",    "Where",         "Less",
      "LessOrEqual", "Equal", "Greater", "GreaterOrEqual"};
  return elementwise.contains(op) || (op == "Attention" && i == 3);
}

/// One sample of a constant that has the same for each sample of the input that
/// it meets.
std::optional<HostTensor> Rebatch::sampleOf(NodeReader &node, int i,
                                            const HostTensor &constant) const {
  if (from == 1 || constant.shape.empty() || constant.shape.front() != from ||
      !isAligned(node.op(), i))
    return std::nullopt;
  size_t rank = constant.shape.size();
  bool meets = false;
  for (int k = 0, e = node.message().input_size(); k != e; ++k) {
    const Known *input = inputOf(node, k);
    if (!input || k == i || input->before.size() < rank)
      continue;
    size_t dim = input->before.size() - rank;
    meets |= input->before[dim] == from && input->after[dim] == to;
  }
  if (!meets)
    return std::nullopt;
  HostTensor sample = constant;
  sample.shape.front() = 1;
  auto takeFirst = [&](auto &elements) {
    size_t size = elements.size() / from;
    for (size_t k = size; k < elements.size(); ++k)
      if (elements[k] != elements[k - size])
        return false;
    elements.resize(size);
    return true;
  };
  if (!takeFirst(sample.floats) || !takeFirst(sample.ints))
    return std::nullopt;
  return sample;
}

/// A table of indices that names the samples of input 0 in order, for the new
/// ones: its entry b has b where it indexes the batch and is else as entry 0.
std::optional<HostTensor>
Rebatch::rowsOf(NodeReader &node, const HostTensor &table, int64_t room) const {
  const Known *data = inputOf(node, 0);
  std::optional<unsigned> dim = data ? batchDim(*data) : std::nullopt;
  if (from == 1 || !dim || data->before[*dim] != from || isFloat(table.type) ||
      table.shape.empty() || table.shape.front() != from)
    return std::nullopt;
  // An index has `depth` coordinates, of which number `at` is that of a sample.
  int64_t batch = *dim, depth = 1, at = 0;
  if (node.op() == "GatherND") {
    depth = table.shape.back();
    at = batch;
    if (table.shape.size() < 2 || at >= depth ||
        node.intAttr("batch_dims", 0) != 0)
      return std::nullopt;
  } else {
    int64_t axis = node.intAttr("axis", 0);
    if (axis != batch && axis + int64_t(data->before.size()) != batch)
      return std::nullopt;
  }
  int64_t size = table.size() / from;
  SmallVector<int64_t, 4> shape = table.shape;
  shape.front() = to;
  if (size > room / to)
    return std::nullopt;
  auto entry = [&](int64_t b, int64_t k) {
    return k % depth == at ? b : table.ints[k];
  };
  for (int64_t b = 0; b < from; ++b)
    for (int64_t k = 0; k < size; ++k)
      if (table.ints[b * size + k] != entry(b, k))
        return std::nullopt;
  HostTensor rows(table.type, shape);
  for (int64_t b = 0; b < to; ++b)
    for (int64_t k = 0; k < size; ++k)
      rows.ints[b * size + k] = entry(b, k);
  return rows;
}

std::optional<HostTensor> Rebatch::constantFor(NodeReader &node, int i,
                                               const HostTensor &constant,
                                               int64_t room) const {
  bool indexes = node.op() == "Gather" || node.op() == "GatherND";
  return indexes && i == 1 ? rowsOf(node, constant, room)
                           : sampleOf(node, i, constant);
}

FailureOr<std::optional<SmallVector<int64_t>>>
Rebatch::correct(NodeReader &node, const MaybeShape &data,
                 ArrayRef<int64_t> literal, ArrayRef<int64_t> axes) {
  const Known *known = inputOf(node, 0);
  Known constant;
  if (!known && data) {
    constant.before = constant.after = *data;
    known = &constant;
  }
  bool changed = known && known->changed();
  auto result = values.find(node.message().output(0));
  if (result == values.end())
    return std::optional<SmallVector<int64_t>>();
  ArrayRef<int64_t> wanted = result->second.before;
  if (node.op() == "Expand")
    return expand(node, known, wanted, literal);
  if (node.op() == "Range") {
    if (!counts || literal != ArrayRef(from) || wanted != ArrayRef(from))
      return std::optional<SmallVector<int64_t>>();
    open.emplace_back(std::in_place, node.location(), node.op().str());
    return std::optional(SmallVector<int64_t>{to});
  }
  if (!changed)
    return std::optional<SmallVector<int64_t>>();
  if (node.op() == "Reshape") {
    FailureOr<SmallVector<int64_t>> shape = reshape(node, *known, wanted);
    if (failed(shape))
      return failure();
    return std::optional(std::move(*shape));
  }
  // A slice of all samples stays one.
  SmallVector<int64_t> ends(literal);
  for (auto [end, axis] : llvm::zip(ends, axes)) {
    int64_t dim = axis < 0 ? axis + int64_t(known->before.size()) : axis;
    if (dim >= 0 && dim < int64_t(wanted.size()) &&
        known->before[dim] != known->after[dim] &&
        wanted[dim] == known->before[dim])
      end = std::numeric_limits<int64_t>::max();
  }
  return std::optional(std::move(ends));
}

/// On which assumptions the inputs of `node` rest; those of a node with an
/// input that has the batch without any are confirmed.
std::set<unsigned> Rebatch::assumptions(NodeReader &node) {
  std::set<unsigned> all;
  bool proved = false;
  for (int i = 0, e = node.message().input_size(); i != e; ++i) {
    const Known *known = inputOf(node, i);
    if (!known || !known->changed())
      continue;
    std::set<unsigned> own;
    for (unsigned number : known->assumed)
      if (open[number])
        own.insert(number);
    proved |= own.empty();
    all.insert(own.begin(), own.end());
  }
  if (!proved)
    return all;
  for (unsigned number : all)
    open[number].reset();
  return {};
}

LogicalResult Rebatch::compare(NodeReader &node, int i, Known &known) {
  auto error = [&]() -> InFlightDiagnostic {
    InFlightDiagnostic diag = node.error();
    diag << "cannot be given a batch of " << to << " instead of " << from
         << ": output " << i << " of shape [" << known.before << "] becomes ["
         << known.after << "]";
    return diag;
  };
  if (known.before.size() != known.after.size())
    return error();
  for (auto [before, after] : llvm::zip(known.before, known.after))
    if (before != after && (before % from != 0 || before / from * to != after))
      return error();
  // What has a row for each sample keeps one.
  for (int k = 0, e = node.message().input_size(); k != e; ++k) {
    const Known *input = inputOf(node, k);
    if (!input || !input->changed() || from == 1 ||
        input->before.size() != known.before.size())
      continue;
    for (auto [x, y, before, after] :
         llvm::zip(input->before, input->after, known.before, known.after))
      if (x != y && before == x && after == before)
        return error() << ", which keeps the old number of samples";
  }
  return success();
}

LogicalResult Rebatch::add(NodeReader &node, ArrayRef<MaybeShape> results) {
  unsigned opened = open.size();
  std::set<unsigned> assumed;
  if (isNew)
    assumed = assumptions(node);
  // The node itself may be one that was just taken to make the batch.
  bool makesBatch = (node.op() == "Expand" || node.op() == "Range") && opened &&
                    open.back() && open.back()->first == node.location();
  for (auto [i, shape] : llvm::enumerate(results)) {
    StringRef name = node.message().output(i);
    if (name.empty() || !shape)
      continue;
    if (!isNew) {
      metCounts |= node.op() == "Range" && *shape == ArrayRef(from) && from > 1;
      values[name] = {*shape, *shape, {}};
      continue;
    }
    auto it = values.find(name);
    if (it == values.end())
      continue;
    Known &known = it->second;
    known.after = *shape;
    if (failed(compare(node, i, known)))
      return failure();
    if (!known.changed())
      continue;
    known.assumed = assumed;
    if (makesBatch)
      known.assumed.insert(opened - 1);
  }
  return success();
}

LogicalResult Rebatch::finish() const {
  for (const auto &each : open)
    if (each)
      return emitError(each->first)
             << each->second << ": expands to " << from
             << ", which may be the batch or not: nothing that it meets has "
                "the batch; export the model with a symbolic batch";
  return success();
}
