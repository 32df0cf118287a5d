//===- CheckpointingRestore.cpp - State out of a checkpoint ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// First every tensor of the program gets its source, or there is an error. Then
// the checkpoint streams once, and each piece goes to the ranks that hold its
// rows, in the type they have.
//
//===----------------------------------------------------------------------===//

#include "CheckpointingState.h"
#include "Training.h"

#include "runtime/io/Files.h"
#include "runtime/io/Json.h"

#include <algorithm>
#include <cstring>
#include <set>

using namespace zero_tools;
using zrt::jsonQuote;
using zrt::StateLayout;
using zrt::StateTensor;

/// The count of updates that an optimizer with skipped steps keeps itself;
/// without it the number of the step is that count.
static constexpr const char *updateCount = "optimizer_step";

namespace {

/// A parameter of the program that a tensor of the checkpoint is for.
struct Target {
  uint32_t parameter;
  StateTensor tensor; // as the program has it
};

class Restorer {
public:
  Restorer(const zrt::Checkpoint &checkpoint, const zrt::Program &program,
           zrt::Session &session,
           const std::function<void(const std::string &)> &note);

  void run();

private:
  const StateTensor &source(size_t index) const {
    return checkpoint.tensors()[index];
  }
  std::optional<size_t> find(const StateTensor &tensor) const;
  std::optional<size_t> findName(const std::string &name) const;
  [[noreturn]] void fail(const std::string &what) const {
    throw zrt::IoError(checkpoint.path(), what);
  }

  void plan(uint32_t parameter);
  std::optional<size_t> chooseParameter(const StateTensor &tensor) const;
  std::optional<size_t> chooseState(const StateTensor &tensor) const;
  void startFresh(uint32_t parameter, const StateTensor &tensor);
  void checkTypes(size_t from, const StateTensor &tensor) const;
  void checkUnused();

  void deliver(size_t from, uint32_t part, uint64_t offset, const void *data,
               size_t bytes);
  void convertTo(const Target &target, zrt::DataType from, uint64_t element,
                 const void *data, size_t count);
  void deliverOfRank(const Target &target, size_t from, uint32_t part,
                     uint64_t element, const void *data, size_t count);

  const zrt::Checkpoint &checkpoint;
  const zrt::Program &program;
  zrt::Session &session;
  const std::function<void(const std::string &)> &note;
  std::map<std::string, size_t> names; // also tied ones
  std::set<size_t> known;              // the program has a tensor of that name
  std::map<size_t, std::vector<Target>> targets; // by tensor of the checkpoint
  /// Sums over ranks of what each had for itself, by parameter.
  std::map<uint32_t, std::vector<double>> sums;
  std::vector<uint8_t> converted;
};

} // namespace

Restorer::Restorer(const zrt::Checkpoint &checkpoint,
                   const zrt::Program &program, zrt::Session &session,
                   const std::function<void(const std::string &)> &note)
    : checkpoint(checkpoint), program(program), session(session), note(note) {
  for (size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    names.emplace(source(i).name, i);
    for (const std::string &tied : source(i).tied)
      names.emplace(tied, i);
  }
}

std::optional<size_t> Restorer::findName(const std::string &name) const {
  auto found = names.find(name);
  if (found == names.end())
    return std::nullopt;
  return found->second;
}

std::optional<size_t> Restorer::find(const StateTensor &tensor) const {
  std::optional<size_t> found = findName(tensor.name);
  for (const std::string &tied : tensor.tied)
    if (!found)
      found = findName(tied);
  return found;
}

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

/// Values in another type come from the copy that nothing was rounded in.
std::optional<size_t>
Restorer::chooseParameter(const StateTensor &tensor) const {
  std::optional<size_t> found = find(tensor);
  if (!found || source(*found).type == tensor.type)
    return found;
  std::optional<size_t> master = findName(masterName(source(*found).name));
  return master ? master : found;
}

/// The master copy of a run that had none is the parameter itself.
std::optional<size_t> Restorer::chooseState(const StateTensor &tensor) const {
  std::optional<size_t> found = find(tensor);
  if (!found && tensor.name == masterName(tensor.of))
    found = findName(tensor.of);
  return found;
}

void Restorer::checkTypes(size_t from, const StateTensor &tensor) const {
  const StateTensor &saved = source(from);
  if (saved.shape != tensor.shape || !zrt::converts(saved.type, tensor.type))
    fail("tensor " + jsonQuote(saved.name) + " is " +
         zrt::describe(saved.type, saved.shape) + ", the model's " +
         jsonQuote(tensor.name) + " is " +
         zrt::describe(tensor.type, tensor.shape));
}

/// State of the step itself that the saved run did not have.
void Restorer::startFresh(uint32_t parameter, const StateTensor &tensor) {
  if (tensor.name == updateCount && tensor.type == zrt::DataType::I64 &&
      tensor.shape.empty()) {
    int64_t steps = checkpoint.facts().step;
    writeLogical(program, session, parameter, 0, &steps, sizeof(steps));
    return note(jsonQuote(tensor.name) + " is not in the checkpoint: it " +
                "starts at " + std::to_string(steps) + ", the step");
  }
  note(jsonQuote(tensor.name) +
       " is not in the checkpoint: it starts with its initial value");
}

void Restorer::plan(uint32_t parameter) {
  StateTensor tensor = stateTensor(program, parameter);
  if (auto same = find(tensor))
    known.insert(*same);
  bool state = tensor.role == "state";
  std::optional<size_t> from =
      state ? chooseState(tensor) : chooseParameter(tensor);
  if (!from && state && tensor.of.empty())
    return startFresh(parameter, tensor);
  if (!from && state)
    fail("has no " + jsonQuote(tensor.name) + ", which the optimizer " +
         program.info().optimizer + " of this run keeps; it was saved with " +
         "the optimizer " + checkpoint.facts().optimizer);
  if (!from)
    fail("has no tensor " + jsonQuote(tensor.name) +
         ", which is a parameter of the model");
  checkTypes(*from, tensor);
  targets[*from].push_back({parameter, std::move(tensor)});
}

void Restorer::checkUnused() {
  std::vector<std::string> unused;
  for (size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    const StateTensor &saved = source(i);
    if (known.count(i) || targets.count(i))
      continue;
    if (saved.role != "state")
      fail("tensor " + jsonQuote(saved.name) + " is no parameter of the model");
    if (saved.of.empty() || saved.name != masterName(saved.of))
      unused.push_back(saved.name);
  }
  if (!unused.empty())
    note(std::to_string(unused.size()) +
         " states of the checkpoint are not used by this run, first " +
         jsonQuote(unused.front()));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void Restorer::convertTo(const Target &target, zrt::DataType from,
                         uint64_t element, const void *data, size_t count) {
  size_t size = zrt::bitWidth(target.tensor.type) / 8;
  if (from != target.tensor.type) {
    converted.resize(count * size);
    zrt::convert(from, data, target.tensor.type, converted.data(), count);
    data = converted.data();
  }
  if (target.tensor.layout != StateLayout::PerRank)
    return writeLogical(program, session, target.parameter, element * size,
                        data, count * size);
  for (uint32_t rank = 0; rank < target.tensor.parts; ++rank)
    require(session.writeChunk(target.parameter, rank, element * size, data,
                               count * size));
}

/// A value that each rank had for itself: on the same number of ranks each gets
/// its own back, else all get the mean, as where it is saved as a weight.
void Restorer::deliverOfRank(const Target &target, size_t from, uint32_t part,
                             uint64_t element, const void *data, size_t count) {
  const StateTensor &saved = source(from);
  size_t size = zrt::bitWidth(target.tensor.type) / 8;
  if (target.tensor.layout == StateLayout::PerRank &&
      target.tensor.parts == saved.parts && target.tensor.type == saved.type)
    return require(session.writeChunk(target.parameter, part, element * size,
                                      data, count * size));
  if (!zrt::converts(saved.type, zrt::DataType::F64) ||
      zrt::isInteger(saved.type) || saved.type == zrt::DataType::Bool) {
    if (!part)
      convertTo(target, saved.type, element, data, count);
    return;
  }
  std::vector<double> &sum = sums[target.parameter];
  std::vector<double> values(count);
  sum.resize(saved.bytes() / (zrt::bitWidth(saved.type) / 8));
  zrt::convert(saved.type, data, zrt::DataType::F64, values.data(), count);
  for (size_t i = 0; i < count; ++i)
    sum[element + i] += values[i];
  if (part + 1 < saved.parts)
    return;
  for (size_t i = 0; i < count; ++i)
    values[i] = sum[element + i] / saved.parts;
  convertTo(target, zrt::DataType::F64, element, values.data(), count);
}

void Restorer::deliver(size_t from, uint32_t part, uint64_t offset,
                       const void *data, size_t bytes) {
  auto wanted = targets.find(from);
  if (wanted == targets.end())
    return;
  const StateTensor &saved = source(from);
  size_t size = zrt::bitWidth(saved.type) / 8;
  uint64_t element = (saved.partBegin(part) + offset) / size;
  for (const Target &target : wanted->second)
    if (saved.layout == StateLayout::PerRank)
      deliverOfRank(target, from, part, element, data, bytes / size);
    else
      convertTo(target, saved.type, element, data, bytes / size);
}

void Restorer::run() {
  for (uint32_t i = 0; i < program.info().num_parameters; ++i)
    if (program.parameter(i).role != ZRT_ACCUMULATOR)
      plan(i);
  checkUnused();
  checkpoint.stream(
      [&](size_t tensor, uint32_t part, uint64_t offset, const void *data,
          size_t bytes) { deliver(tensor, part, offset, data, bytes); });
}

void zero_tools::restore(const zrt::Checkpoint &checkpoint,
                         const zrt::Program &program, zrt::Session &session,
                         const std::function<void(const std::string &)> &note) {
  Restorer(checkpoint, program, session, note).run();
}
