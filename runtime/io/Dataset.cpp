//===- Dataset.cpp - Samples of a data file -------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of a data file against the inputs of a step, and the copy of samples.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Dataset.h"

#include "runtime/io/Files.h"
#include "runtime/io/Json.h"
#include "runtime/io/Tokens.h"

using namespace zrt;

static bool isTokenFile(const std::string &path) {
  return path.size() > 4 && !path.compare(path.size() - 4, 4, ".bin");
}

static int64_t elementsPerSample(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (size_t i = 1; i < shape.size(); ++i)
    count *= shape[i];
  return count;
}

Dataset::Dataset(const std::string &path, std::vector<InputSpec> inputs,
                 int64_t samplesPerStep, bool labelsFromTokens)
    : specs(std::move(inputs)), path(path) {
  for (const InputSpec &input : specs)
    if (input.shape.empty() || !tensorBytes(input.type, input.shape))
      throw IoError(path, "the step's input " + jsonQuote(input.name) + " (" +
                              describe(input.type, input.shape) +
                              ") has no dimension of samples");
  if (isTokenFile(path))
    openTokens(path);
  else
    openTensors(path, labelsFromTokens);
  if (numSamples < samplesPerStep)
    throw IoError(path, "has " + std::to_string(numSamples) + " samples" +
                            (tokens ? " (" + std::to_string(tokens->size()) +
                                          " tokens; " + tokens->format() + ")"
                                    : "") +
                            ", one step over all ranks needs " +
                            std::to_string(samplesPerStep));
}

Dataset::~Dataset() = default;

void Dataset::checkTokenInput(const InputSpec &input) const {
  if (!isInteger(input.type) || !convertsExactly(DataType::U16, input.type) ||
      input.shape.size() != 2 || input.shape[1] < 1)
    throw IoError(path, "tokens do not fit the input " + jsonQuote(input.name) +
                            " of " + describe(input.type, input.shape) +
                            ", expected integers [batch x sequence]");
  // 32-bit tokens fit a narrower input where its range is checked.
  bool ranged = input.hasRange && input.max <= INT32_MAX;
  if (!ranged && !convertsExactly(tokens->type(), input.type))
    throw IoError(path, "32-bit tokens do not fit the input " +
                            jsonQuote(input.name) + " of " +
                            describe(input.type, input.shape) +
                            ", expected I64");
  const InputSpec &first = specs.front();
  if (input.shape[1] != first.shape[1])
    throw IoError(path, "inputs " + jsonQuote(first.name) + " and " +
                            jsonQuote(input.name) +
                            " want tokens of unequal lengths " +
                            std::to_string(first.shape[1]) + " and " +
                            std::to_string(input.shape[1]));
}

void Dataset::openTokens(const std::string &path) {
  tokens = std::make_unique<TokenFile>(path);
  for (const InputSpec &input : specs) {
    checkTokenInput(input);
    numSamples = tokens->size() / input.shape[1];
    sources.push_back(
        {input.name, tokens->data(), tokens->type(), input.shape[1]});
  }
}

void Dataset::openTensors(const std::string &path, bool labelsFromTokens) {
  tensors = openTensorFile(path);
  for (const InputSpec &input : specs) {
    bool borrow = labelsFromTokens && input.name == "labels" &&
                  !tensors->find(input.name);
    sources.push_back(
        tensorSource(input, borrow ? labelSource(input) : input.name));
  }
}

/// The tensor that stands in for missing labels.
std::string Dataset::labelSource(const InputSpec &labels) const {
  std::string found;
  for (const InputSpec &input : specs) {
    if (input.name == labels.name || !isInteger(input.type) ||
        input.shape != labels.shape)
      continue;
    if (!found.empty())
      return labels.name; // ambiguous: the file must say it
    found = input.name;
  }
  return found.empty() ? labels.name : found;
}

static std::string listNames(const TensorFile &file) {
  std::string text;
  size_t shown = 0;
  for (const auto &[name, info] : file.tensors()) {
    if (++shown > 8)
      return text + ", ...";
    text += (text.empty() ? "" : ", ") + jsonQuote(name);
  }
  return text.empty() ? "no tensor" : text;
}

Dataset::Source Dataset::tensorSource(const InputSpec &input,
                                      const std::string &name) {
  std::string quoted = "tensor " + jsonQuote(name);
  const TensorInfo *info = tensors->find(name);
  if (!info)
    throw IoError(path, "has no tensor " + jsonQuote(name) +
                            " for the input of that name; it has " +
                            listNames(*tensors));
  std::string actual = describe(info->type, info->shape);
  std::vector<int64_t> wanted = input.shape;
  bool fits = info->shape.size() == input.shape.size();
  if (fits)
    wanted[0] = info->shape[0];
  if (!fits || info->shape != wanted) {
    std::string text = describe(input.type, input.shape);
    size_t open = text.find('[') + 1;
    text.replace(open, text.find_first_of("x]", open) - open, "samples");
    throw IoError(path, quoted + " is " + actual + ", the step's input wants " +
                            text);
  }
  if (!convertsExactly(info->type, input.type))
    throw IoError(path, quoted + " is " + actual + ", the step's input wants " +
                            std::string(zrt::name(input.type)) +
                            ": the conversion could lose values, convert the "
                            "file");
  if (numSamples >= 0 && info->shape[0] != numSamples)
    throw IoError(path, quoted + " has " + std::to_string(info->shape[0]) +
                            " samples, tensor " +
                            jsonQuote(sources.front().name) + " has " +
                            std::to_string(numSamples));
  numSamples = info->shape[0];
  return {name, tensors->data(name), info->type,
          elementsPerSample(info->shape)};
}

/// "[57, 3]": where in a tensor of samples an element is.
static std::string indexText(const std::vector<int64_t> &shape, int64_t sample,
                             int64_t element) {
  std::vector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 1;) {
    index[i] = element % shape[i];
    element /= shape[i];
  }
  index[0] = sample;
  std::string text;
  for (int64_t i : index)
    text += (text.empty() ? "[" : ", ") + std::to_string(i);
  return text + "]";
}

void Dataset::outOfRange(const InputSpec &input, const Source &source,
                         int64_t sample, int64_t element, int64_t value) const {
  std::string allowed =
      "[" + std::to_string(input.min) + ", " + std::to_string(input.max) + "]";
  if (input.hasIgnore)
    allowed += " and not " + std::to_string(input.ignore);
  if (tokens)
    throw IoError(
        path,
        "token " + std::to_string(sample * source.sampleElements + element) +
            " is " + std::to_string(value) + " (position " +
            std::to_string(element) + " of sample " + std::to_string(sample) +
            "), input " + jsonQuote(input.name) + " takes " + allowed +
            ": is the file of the model's tokenizer?");
  std::string feeds =
      source.name == input.name ? "" : " for input " + jsonQuote(input.name);
  throw IoError(path, "tensor " + jsonQuote(source.name) + feeds +
                          " has the value " + std::to_string(value) + " at " +
                          indexText(input.shape, sample, element) +
                          ", which is outside " + allowed);
}

void Dataset::checkRange(const InputSpec &input, const Source &source,
                         int64_t sample) const {
  int64_t first = sample * source.sampleElements;
  for (int64_t i = 0; i < source.sampleElements; ++i) {
    int64_t value = integerAt(source.type, source.data, size_t(first + i));
    bool ignored = input.hasIgnore && value == input.ignore;
    if ((value < input.min || value > input.max) && !ignored)
      outOfRange(input, source, sample, i, value);
  }
}

void Dataset::read(size_t index, int64_t firstSample, void *target) const {
  const InputSpec &input = specs[index];
  const Source &source = sources[index];
  bool check = input.hasRange && isInteger(source.type);
  size_t from = size_t(source.sampleElements) * bitWidth(source.type) / 8;
  size_t to = size_t(source.sampleElements) * bitWidth(input.type) / 8;
  for (int64_t i = 0; i < input.shape[0]; ++i) {
    int64_t sample = (firstSample + i) % numSamples;
    if (check)
      checkRange(input, source, sample);
    convert(source.type, source.data + size_t(sample) * from, input.type,
            static_cast<uint8_t *>(target) + size_t(i) * to,
            size_t(source.sampleElements));
  }
}

std::optional<std::vector<int64_t>> zrt::dataShape(const std::string &path,
                                                   const std::string &name) {
  if (isTokenFile(path))
    return std::nullopt;
  auto file = openTensorFile(path);
  const TensorInfo *info = file->find(name);
  if (!info)
    return std::nullopt;
  return info->shape;
}
