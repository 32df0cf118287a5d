//===- Forward.cpp - Outputs of a model on data ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An input whose tensor in the file has the input's own shape gets it as it is;
// one with more rows is cut: by runs, then by ranks. Outputs are put together
// in the same order.
//
//===----------------------------------------------------------------------===//

#include "Forward.h"

#include "InitialValues.h"
#include "Training.h"

#include "runtime/io/Json.h"
#include "runtime/io/SafeTensors.h"

using namespace zero_tools;

Forward::Forward(const RunOptions &options, const zrt::Program &program,
                 const std::string &initFolder,
                 std::function<void(const std::string &)> warn, RunGroup *group)
    : options(options), program(program), info(program.info()), group(group) {
  openData();
  zrt_session_options sessionOptions = {};
  sessionOptions.threads_per_rank = uint32_t(options.threads.value_or(1));
  sessionOptions.check_finite = options.checkFinite;
  sessionOptions.group = group ? group->get() : nullptr;
  sessionOptions.device = group ? -1 : 0;
  sessionOptions.timeout_factor = options.timeoutFactor.value_or(0);
  sessionOptions.timeout_min_s = options.timeoutSeconds.value_or(0);
  require(session.create(program, &sessionOptions));
  InitialValues(program, session, std::move(warn))
      .set(options.weights, initFolder);
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

void Forward::openData() {
  for (uint32_t i = 0; i < info.num_inputs; ++i) {
    zrt_input_role role = program.input(i).role;
    if (role == ZRT_INPUT_LEARNING_RATE || *info.optimizer)
      throw std::runtime_error(options.model +
                               ": is a training step, and --forward takes what "
                               "zero-compile --forward makes");
    if (role != ZRT_INPUT_DATA)
      continue;
    if (!data && options.data.empty())
      throw std::runtime_error(options.model + ": has the input " +
                               zrt::jsonQuote(program.input(i).name) +
                               "; give --data, the file with its values");
    if (!data)
      data = zrt::openTensorFile(options.data);
    sources.push_back(openInput(i));
  }
  if (!runs)
    runs = 1;
}

/// The tensor of an input, and how many runs it is for.
Forward::Source Forward::openInput(uint32_t index) {
  zrt_input_info input = program.input(index);
  std::vector<int64_t> shape(input.shape, input.shape + input.rank);
  auto type = zrt::DataType(input.dtype);
  std::string wanted = "the model's input " + zrt::jsonQuote(input.name) +
                       " is " + zrt::describe(type, shape);
  const zrt::TensorInfo *tensor = data->find(input.name);
  if (!tensor)
    throw zrt::IoError(options.data, "has no tensor of that name: " + wanted);
  std::string found = "tensor " + zrt::jsonQuote(input.name) + " is " +
                      zrt::describe(tensor->type, tensor->shape);
  if (!zrt::converts(tensor->type, type))
    throw zrt::IoError(options.data, found + ", " + wanted);
  uint64_t elements = input.bytes / (zrt::bitWidth(type) / 8);
  Source source{index,    tensor->type, type, data->data(input.name),
                elements, false};
  int64_t ranks = info.ranks;
  if (tensor->shape == shape && (ranks == 1 || shape.empty()))
    return source;
  source.cut = true;
  std::vector<int64_t> whole = tensor->shape;
  bool fits = !shape.empty() && whole.size() == shape.size() && shape[0] > 0 &&
              whole[0] > 0 && whole[0] % (ranks * shape[0]) == 0;
  int64_t count = fits ? whole[0] / (ranks * shape[0]) : 0;
  if (fits)
    whole[0] = shape[0];
  if (!fits || whole != shape)
    throw zrt::IoError(options.data,
                       found + ", " + wanted + " on each of " +
                           std::to_string(ranks) +
                           (ranks == 1 ? " rank" : " ranks") +
                           ": it has to be a whole number of times as long");
  if (runs && runs != count)
    throw zrt::IoError(options.data,
                       found + ", for " + std::to_string(count) +
                           " batches, but " + zrt::jsonQuote(runsSource) +
                           " has values for " + std::to_string(runs));
  runs = count;
  runsSource = input.name;
  return source;
}

/// What random numbers are keyed by.
void Forward::setKeys(int64_t run) {
  int64_t seed = options.seed.value_or(0), step = 1;
  for (uint32_t i = 0; i < info.num_inputs; ++i)
    for (uint32_t rank = 0; rank < info.ranks; ++rank) {
      zrt_input_role role = program.input(i).role;
      int64_t sample = (run * info.ranks + rank) * info.samples_per_rank;
      if (group && group->rank() != rank)
        continue;
      if (role == ZRT_INPUT_SEED)
        require(session.setInput(i, int(rank), &seed, sizeof(seed)));
      else if (role == ZRT_INPUT_STEP)
        require(session.setInput(i, int(rank), &step, sizeof(step)));
      else if (role == ZRT_INPUT_FIRST_SAMPLE)
        require(session.setInput(i, int(rank), &sample, sizeof(sample)));
    }
}

void Forward::setInputs(int64_t run) {
  std::vector<uint8_t> scratch;
  setKeys(run);
  for (const Source &source : sources) {
    size_t from = zrt::bitWidth(source.type) / 8;
    scratch.resize(program.input(source.input).bytes);
    for (uint32_t rank = 0; rank < info.ranks; ++rank) {
      if (group && group->rank() != rank)
        continue;
      uint64_t part =
          source.cut ? uint64_t(run) * info.ranks + rank : uint64_t(0);
      zrt::convert(source.type, source.data + part * source.elements * from,
                   source.inputType, scratch.data(), source.elements);
      require(session.setInput(source.input, int(rank), scratch.data(),
                               scratch.size()));
    }
  }
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

/// Whether an output has a row for each sample: then the ranks' parts are put
/// together; else they have to be equal.
bool Forward::isCut(const zrt_output_info &output) const {
  for (const Source &source : sources) {
    zrt_input_info input = program.input(source.input);
    if (source.cut)
      return output.rank > 0 && output.shape[0] == input.shape[0];
  }
  return false;
}

void Forward::readOutputs(int64_t run) {
  values.resize(info.num_outputs);
  for (uint32_t i = 0; i < info.num_outputs; ++i) {
    zrt_output_info output = program.output(i);
    for (uint32_t rank = 0; rank < info.ranks; ++rank) {
      std::string part(output.bytes, '\0');
      require(session.readOutputOfRank(i, rank, part.data(), part.size()));
      if (isCut(output) || (run == 0 && rank == 0))
        values[i] += part;
      else if (part != values[i])
        throw std::runtime_error(
            options.model + ": output " + zrt::jsonQuote(output.name) +
            " has no dimension of samples and is not the same for all parts of "
            "the batch");
    }
  }
}

void Forward::write() {
  std::vector<zrt::SafeTensorsWriter::Tensor> tensors;
  for (uint32_t i = 0; i < info.num_outputs; ++i) {
    zrt_output_info output = program.output(i);
    std::vector<int64_t> shape(output.shape, output.shape + output.rank);
    if (isCut(output))
      shape[0] *= runs * int64_t(info.ranks);
    tensors.push_back({output.name, zrt::DataType(output.dtype), shape});
  }
  zrt::SafeTensorsWriter writer(options.saveOutputs, tensors);
  for (const std::string &value : values)
    writer.write(value.data(), value.size());
  writer.commit();
}

void Forward::run() {
  for (int64_t run = 0; run < runs; ++run) {
    setInputs(run);
    require(session.step());
    readOutputs(run);
  }
  if ((!group || group->rank() == 0) && !options.saveOutputs.empty())
    write();
}
