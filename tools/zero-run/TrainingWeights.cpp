//===- TrainingWeights.cpp - Saved values ---------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the values of parameters go, in pieces. Of a parameter that is computed
// with in a narrow type the master copy is what is saved.
//
//===----------------------------------------------------------------------===//

#include "CheckpointingState.h"
#include "InitialValues.h"
#include "Training.h"

#include "runtime/io/Files.h"
#include "runtime/io/HuggingFace.h"
#include "runtime/io/SafeTensors.h"

using namespace zero_tools;

static std::vector<int64_t> shapeOf(const zrt_parameter_info &parameter) {
  return {parameter.shape, parameter.shape + parameter.rank};
}

std::map<std::string, uint32_t>
zero_tools::savedWeights(const zrt::Program &program) {
  std::map<std::string, uint32_t> saved;
  for (uint32_t i = 0; i < program.info().num_parameters; ++i) {
    zrt_parameter_info parameter = program.parameter(i);
    if (parameter.role == ZRT_STATE || parameter.role == ZRT_ACCUMULATOR)
      continue;
    int64_t master = program.findParameter(masterName(parameter.name));
    saved[parameter.name] = master < 0 ? i : uint32_t(master);
  }
  return saved;
}

static std::vector<zrt::SafeTensorsWriter::Tensor>
declarations(const zrt::Program &program,
             const std::map<std::string, uint32_t> &saved) {
  std::vector<zrt::SafeTensorsWriter::Tensor> tensors;
  for (const auto &[name, index] : saved) {
    zrt_parameter_info parameter = program.parameter(index);
    tensors.push_back(
        {name, zrt::DataType(parameter.dtype), shapeOf(parameter)});
  }
  return tensors;
}

void Training::setInitialValues() {
  InitialValues(program, session, warn).set(options.weights, initFolder);
}

/// The part of the other processes in what process 0 saves: in its order.
void Training::giveWeights(const std::map<std::string, uint32_t> &saved) {
  for (const auto &[name, index] : saved)
    readLogical(program, session, index, [](const void *, size_t) {});
}

void Training::saveWeights(const std::string &path) {
  std::map<std::string, uint32_t> saved = savedWeights(program);
  if (!first())
    return giveWeights(saved);
  zrt::SafeTensorsWriter writer(path, declarations(program, saved),
                                {{"format", "pt"}});
  for (const auto &[name, index] : saved)
    readLogical(program, session, index, [&](const void *data, size_t bytes) {
      writer.write(data, bytes);
    });
  writer.commit();
}

void Training::saveHuggingFace(const std::string &folder, uint64_t shardBytes) {
  std::map<std::string, uint32_t> saved = savedWeights(program);
  if (!first())
    return giveWeights(saved);
  std::vector<uint32_t> parameters;
  for (const auto &[name, index] : saved)
    parameters.push_back(index);
  zrt::writeHuggingFace(
      folder, declarations(program, saved), shardBytes,
      [&](size_t tensor,
          const std::function<void(const void *, size_t)> &take) {
        readLogical(program, session, parameters[tensor], take);
      });
}
