//===- InitialValues.cpp - What parameters begin with ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the values of parameters come from, in pieces. A parameter that is
// computed with in a narrow type has a master copy: it is set from the same
// tensor.
//
//===----------------------------------------------------------------------===//

#include "InitialValues.h"

#include "CheckpointingState.h"
#include "Training.h"

#include "runtime/io/Files.h"
#include "runtime/io/HuggingFace.h"
#include "runtime/io/Json.h"

#include <algorithm>

using namespace zero_tools;

static bool isFloat(zrt::DataType type) {
  return type == zrt::DataType::F32 || type == zrt::DataType::F64 ||
         type == zrt::DataType::F16 || type == zrt::DataType::BF16;
}

/// The names under which weights have a parameter's value; none for state that
/// is only the optimizer's.
static std::vector<std::string> weightNames(const zrt::Program &program,
                                            uint32_t index) {
  zrt_parameter_info parameter = program.parameter(index);
  if (parameter.role == ZRT_ACCUMULATOR)
    return {};
  if (parameter.role == ZRT_STATE) {
    int64_t base = program.findParameter(parameter.of);
    if (base < 0 || parameter.name != masterName(parameter.of))
      return {};
    parameter = program.parameter(uint32_t(base));
  }
  std::vector<std::string> names = {parameter.name};
  names.insert(names.end(), parameter.tied,
               parameter.tied + parameter.num_tied);
  return names;
}

/// Sets a parameter from a file's tensor; false when the file has none of that
/// name.
bool InitialValues::setFrom(uint32_t index, zrt::TensorFile &file,
                            const std::string &name) {
  const zrt::TensorInfo *tensor = file.find(name);
  if (!tensor)
    return false;
  zrt::StateTensor wanted = stateTensor(program, index);
  if (tensor->shape != wanted.shape ||
      !zrt::converts(tensor->type, wanted.type))
    throw zrt::IoError(file.path(),
                       "tensor " + zrt::jsonQuote(name) + " is " +
                           zrt::describe(tensor->type, tensor->shape) +
                           ", the model's parameter is " +
                           zrt::describe(wanted.type, wanted.shape));
  const uint8_t *data = file.data(name);
  size_t from = zrt::bitWidth(tensor->type) / 8;
  size_t to = zrt::bitWidth(wanted.type) / 8;
  uint64_t count = wanted.bytes() / to;
  uint64_t pieces = zrt::checkpointBucketBytes / to;
  // Every rank gets something, also where there are no elements.
  for (uint64_t at = 0; at < count || !at; at += pieces) {
    size_t elements = size_t(std::min(pieces, count - at));
    scratch.resize(std::max<size_t>(elements * to, 1));
    zrt::convert(tensor->type, data + at * from, wanted.type, scratch.data(),
                 elements);
    setPiece(index, wanted, at * to, elements * to);
  }
  return true;
}

/// Sets bytes [offset, offset + bytes) of a logical tensor from `scratch`.
void InitialValues::setPiece(uint32_t index, const zrt::StateTensor &tensor,
                             uint64_t offset, size_t bytes) {
  if (!offset) // padding becomes zero
    require(session.writeChunk(index, 0, 0, scratch.data(), 0));
  if (tensor.layout == zrt::StateLayout::PerRank)
    for (uint32_t rank = 0; rank < program.info().ranks; ++rank)
      require(session.writeChunk(index, rank, offset, scratch.data(), bytes));
  else
    writeLogical(program, session, index, offset, scratch.data(), bytes);
}

namespace {
/// What a file of weights has of a model's parameters and buffers.
struct Coverage {
  size_t parameters = 0, missing = 0, narrowed = 0;
  std::string firstMissing, firstNarrowed; // as a message quotes them
};
} // namespace

/// A wider tensor of the file loses digits, unless a master copy keeps them.
static Coverage coverageOf(const zrt::Program &program,
                           const zrt::TensorFile &file) {
  Coverage coverage;
  for (const auto &[name, index] : savedWeights(program)) {
    ++coverage.parameters;
    const zrt::TensorInfo *tensor = nullptr;
    for (const std::string &candidate : weightNames(program, index))
      tensor = tensor ? tensor : file.find(candidate);
    zrt::DataType type = zrt::DataType(program.parameter(index).dtype);
    if (!tensor && !coverage.missing++)
      coverage.firstMissing = zrt::jsonQuote(name);
    else if (tensor && isFloat(type) &&
             zrt::bitWidth(tensor->type) > zrt::bitWidth(type) &&
             !coverage.narrowed++)
      coverage.firstNarrowed = zrt::jsonQuote(name) + " from " +
                               zrt::describe(tensor->type, tensor->shape) +
                               " to " + zrt::describe(type, tensor->shape);
  }
  return coverage;
}

void InitialValues::warnOfUnused(const zrt::TensorFile &file, size_t used) {
  if (!used)
    throw zrt::IoError(file.path(), "has no tensor with the name of one of the "
                                    "model's parameters");
  Coverage coverage = coverageOf(program, file);
  if (coverage.missing)
    warn(file.path() + ": has " +
         std::to_string(coverage.parameters - coverage.missing) + " of the " +
         std::to_string(coverage.parameters) +
         " parameters and buffers of the model; those without begin with the "
         "model's own values, first " +
         coverage.firstMissing);
  if (coverage.narrowed)
    warn(file.path() + ": " + std::to_string(coverage.narrowed) +
         " tensors are rounded to the model's type, first " +
         coverage.firstNarrowed);
  // Counters beside the weights (num_batches_tracked) are no loss.
  std::vector<std::string> unused;
  for (const auto &[name, tensor] : file.tensors())
    if (isFloat(tensor.type) && program.findParameter(name) < 0)
      unused.push_back(name);
  if (!unused.empty())
    warn(file.path() + ": " + std::to_string(unused.size()) +
         " tensors are in no parameter of the model, first " +
         zrt::jsonQuote(unused.front()));
}

void InitialValues::set(const std::string &weightsPath,
                        const std::string &initFolder) {
  std::unique_ptr<zrt::TensorFile> weights;
  if (!weightsPath.empty())
    weights = zrt::openWeights(weightsPath, warn);
  std::map<std::string, std::unique_ptr<zrt::TensorFile>> files;
  size_t overridden = 0;
  for (uint32_t i = 0; i < program.info().num_parameters; ++i) {
    zrt_parameter_info parameter = program.parameter(i);
    bool found = false;
    for (const std::string &name : weightNames(program, i))
      found = found || (weights && setFrom(i, *weights, name));
    overridden += found;
    if (found || parameter.init != ZRT_INIT_FILE)
      continue; // set, or filled by the runtime
    bool absolute = parameter.init_file[0] == '/';
    std::string path =
        absolute ? parameter.init_file : initFolder + "/" + parameter.init_file;
    auto &file = files[path];
    if (!file)
      file = zrt::openTensorFile(path);
    std::string name =
        *parameter.init_tensor ? parameter.init_tensor : parameter.name;
    if (!setFrom(i, *file, name))
      throw zrt::IoError(path, "has no tensor " + zrt::jsonQuote(name) +
                                   " for the parameter " +
                                   zrt::jsonQuote(parameter.name));
  }
  if (weights)
    warnOfUnused(*weights, overridden);
}
