//===- TrainingWeights.cpp - Initial and saved values ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where the values of parameters come from and where they go.
//
//===----------------------------------------------------------------------===//

#include "Training.h"

#include "runtime/io/Files.h"
#include "runtime/io/Json.h"
#include "runtime/io/SafeTensors.h"

#include <algorithm>
#include <set>

using namespace zero_tools;

static_assert(int(ZRT_F32) == int(zrt::DataType::F32) &&
                  int(ZRT_BF16) == int(zrt::DataType::BF16) &&
                  int(ZRT_I64) == int(zrt::DataType::I64) &&
                  int(ZRT_BOOL) == int(zrt::DataType::Bool),
              "element types are numbered alike");

static std::vector<int64_t> shapeOf(const zrt_parameter_info &parameter) {
  return {parameter.shape, parameter.shape + parameter.rank};
}

static bool isFloat(zrt::DataType type) {
  return type == zrt::DataType::F32 || type == zrt::DataType::F64 ||
         type == zrt::DataType::F16 || type == zrt::DataType::BF16;
}

/// Sets a parameter from a file's tensor; false when the file has none of that
/// name.
bool Training::setFrom(uint32_t index, zrt::TensorFile &file,
                       const std::string &name) {
  const zrt::TensorInfo *tensor = file.find(name);
  if (!tensor)
    return false;
  zrt_parameter_info parameter = program.parameter(index);
  auto type = zrt::DataType(parameter.dtype);
  if (tensor->shape != shapeOf(parameter) ||
      !zrt::convertsExactly(tensor->type, type))
    throw zrt::IoError(file.path(),
                       "tensor " + zrt::jsonQuote(name) + " is " +
                           zrt::describe(tensor->type, tensor->shape) +
                           ", the model's parameter is " +
                           zrt::describe(type, shapeOf(parameter)));
  scratch.resize(parameter.bytes);
  zrt::convert(tensor->type, file.data(name), type, scratch.data(),
               parameter.bytes / (zrt::bitWidth(type) / 8));
  require(session.setParameter(index, scratch.data(), scratch.size()));
  return true;
}

void Training::warnOfUnused(const zrt::TensorFile &file, size_t used) {
  if (!used)
    throw zrt::IoError(file.path(), "has no tensor with the name of one of the "
                                    "model's parameters");
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

void Training::setInitialValues() {
  std::unique_ptr<zrt::TensorFile> weights;
  if (!options.weights.empty())
    weights = zrt::openTensorFile(options.weights);
  std::map<std::string, std::unique_ptr<zrt::TensorFile>> files;
  size_t overridden = 0;
  for (uint32_t i = 0; i < info.num_parameters; ++i) {
    zrt_parameter_info parameter = program.parameter(i);
    if (weights && parameter.role != ZRT_STATE) {
      bool found = setFrom(i, *weights, parameter.name);
      for (uint32_t t = 0; t < parameter.num_tied && !found; ++t)
        found = setFrom(i, *weights, parameter.tied[t]);
      overridden += found;
      if (found)
        continue;
    }
    if (parameter.init != ZRT_INIT_FILE)
      continue; // the runtime fills it
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

void Training::saveWeights(const std::string &path) {
  std::vector<std::pair<std::string, uint32_t>> order;
  for (uint32_t i = 0; i < info.num_parameters; ++i)
    if (program.parameter(i).role != ZRT_STATE)
      order.emplace_back(program.parameter(i).name, i);
  std::sort(order.begin(), order.end());
  std::vector<zrt::SafeTensorsWriter::Tensor> tensors;
  for (const auto &[name, index] : order) {
    zrt_parameter_info parameter = program.parameter(index);
    tensors.push_back(
        {name, zrt::DataType(parameter.dtype), shapeOf(parameter)});
  }
  zrt::SafeTensorsWriter writer(path, tensors, {{"format", "pt"}});
  for (const auto &[name, index] : order) {
    scratch.resize(program.parameter(index).bytes);
    require(session.getParameter(index, scratch.data(), scratch.size()));
    writer.write(scratch.data(), scratch.size());
  }
  writer.commit();
}
