//===- FiniteCheck.cpp - The first tensor that is not finite --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See FiniteCheck.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/FiniteCheck.h"

#include "runtime/host/Rank.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>

using namespace zrt;
using namespace zrt::host;

FiniteCheck::FiniteCheck(const Program &program)
    : program(program), workers(size_t(program.ranks) * program.numStreams),
      harmless(program.commands.size(), 0) {
  for (Worker &worker : workers)
    worker.wroteNegative.assign(program.commands.size(), 0);
  for (const Command &command : program.commands)
    operands.push_back(operandsOf(command));
}

static View wholeOf(uint64_t elements) {
  return contiguousView({int64_t(elements)});
}

/// All of a buffer, in its shape unless it is only a part of that. What is
/// behind its shape is padding.
static View shapeOf(const Buffer &buffer) {
  uint64_t elements = buffer.bytes / elementBytes(buffer.dtype);
  return elementCount(buffer.shape) <= elements ? contiguousView(buffer.shape)
                                                : wholeOf(elements);
}

/// What a command writes; of a kernel whose program does not say it, all that
/// it is given.
std::vector<Operand> FiniteCheck::operandsOf(const Command &command) const {
  std::vector<Operand> result;
  if (command.isCollective()) {
    for (const Piece &piece : command.pieces)
      result.push_back({piece.target, wholeOf(command.op == fb::Op_ReduceScatter
                                                  ? piece.chunk
                                                  : piece.elements)});
    return result;
  }
  if (command.op == fb::Op_Launch && command.writes.empty())
    result = command.operands;
  else if (command.op == fb::Op_Launch)
    for (uint32_t index : command.writes)
      result.push_back(command.operands[index]);
  else if (!command.operands.empty())
    result = {command.operands.back()};
  // What goes to disk was looked at when it was computed.
  auto skipped = [&](const Operand &operand) {
    const Buffer &buffer = program.buffers[operand.buffer];
    return !isFloat(buffer.dtype) ||
           program.arenas[buffer.arena].space == fb::Space_Disk;
  };
  result.erase(std::remove_if(result.begin(), result.end(), skipped),
               result.end());
  return result;
}

void FiniteCheck::look(const Rank &rank, uint32_t number, Worker &worker,
                       int64_t command, uint32_t buffer, const View &view) {
  if (worker.first)
    return;
  fb::DType type = program.buffers[buffer].dtype;
  std::vector<uint8_t> room;
  const uint8_t *storage = rank.contents(buffer, room);
  auto found = findNotFinite(storage, type, view, /*negative=*/true);
  if (!found)
    return;
  Finding finding{currentMicro, command, number, buffer, view.sizes, *found};
  if (command >= 0 && !worker.negative && !harmless[size_t(command)])
    worker.negative = finding;
  if (command >= 0)
    worker.wroteNegative[size_t(command)] = 1;
  if (auto worse = findNotFinite(storage, type, view, /*negative=*/false)) {
    finding.what = *worse;
    worker.first = finding;
  }
}

void FiniteCheck::begin(uint32_t micro,
                        const std::vector<std::unique_ptr<Rank>> &ranks) {
  currentMicro = micro;
  for (const std::unique_ptr<Rank> &rank : ranks) {
    uint32_t number = rank->number();
    Worker &worker = workers[size_t(number) * program.numStreams];
    auto lookAt = [&](uint32_t buffer) {
      const Buffer &info = program.buffers[buffer];
      if (isFloat(info.dtype))
        look(*rank, number, worker, -1, buffer, shapeOf(info));
    };
    for (const Input &input : program.inputs)
      lookAt(input.buffer);
    if (!stateSeen)
      for (const Parameter &parameter : program.parameters)
        lookAt(parameter.buffer);
  }
  stateSeen = true;
}

void FiniteCheck::scan(const Rank &rank, uint32_t number, uint32_t stream,
                       size_t command) {
  Worker &worker = workers[size_t(number) * program.numStreams + stream];
  for (const Operand &operand : operands[command])
    look(rank, number, worker, int64_t(command), operand.buffer, operand.view);
}

bool FiniteCheck::outputsFinite(
    const std::vector<std::unique_ptr<Rank>> &ranks) const {
  for (const Output &output : program.outputs)
    for (const std::unique_ptr<Rank> &rank : ranks) {
      fb::DType type = program.buffers[output.buffer].dtype;
      if (isFloat(type) &&
          anyNotFinite(rank->address(output.buffer), type, output.elements))
        return false;
    }
  return true;
}

void FiniteCheck::Found::add(const Found &other) {
  auto earlier = [](std::optional<Told> &best,
                    const std::optional<Told> &next) {
    auto order = [](const Told &told) {
      return std::tie(told.micro, told.command, told.rank);
    };
    if (next && (!best || order(*next) < order(*best)))
      best = next;
  };
  earlier(first, other.first);
  earlier(negative, other.negative);
  outputsFinite = outputsFinite && other.outputsFinite;
}

/// Numbers and, behind its length, text; processes of one run read it.
std::string FiniteCheck::Found::bytes() const {
  std::ostringstream out;
  out << outputsFinite;
  for (const std::optional<Told> *told : {&first, &negative}) {
    out << ' ' << told->has_value();
    if (*told)
      out << ' ' << (*told)->micro << ' ' << (*told)->command << ' '
          << (*told)->rank << ' ' << (*told)->text.size() << ' '
          << (*told)->text;
  }
  return out.str();
}

FiniteCheck::Found FiniteCheck::Found::fromBytes(const std::string &bytes) {
  Found found;
  std::istringstream in(bytes);
  in >> found.outputsFinite;
  for (std::optional<Told> *told : {&found.first, &found.negative}) {
    bool there = false;
    in >> there;
    if (!there)
      continue;
    size_t size = 0;
    Told &read = told->emplace();
    in >> read.micro >> read.command >> read.rank >> size;
    read.text.resize(std::min(size, bytes.size()));
    in.get();
    in.read(read.text.data(), std::streamsize(read.text.size()));
  }
  return found;
}

/// What this process has found; forgets it.
FiniteCheck::Found
FiniteCheck::take(const std::vector<std::unique_ptr<Rank>> &ranks) {
  Found found;
  auto told = [&](std::optional<Finding> &finding) {
    std::optional<Told> result;
    if (finding)
      result = {finding->micro, finding->command, finding->rank,
                describe(*finding)};
    finding.reset();
    return result;
  };
  for (Worker &worker : workers) {
    Found one;
    one.first = told(worker.first);
    one.negative = told(worker.negative);
    found.add(one);
  }
  found.outputsFinite = outputsFinite(ranks);
  return found;
}

std::optional<std::string>
FiniteCheck::finish(const std::vector<std::unique_ptr<Rank>> &ranks,
                    bool skipped, const AllGather &allGather) {
  Found found = take(ranks);
  if (allGather)
    for (const std::string &bytes : allGather(found.bytes()))
      found.add(Found::fromBytes(bytes));
  bool good = skipped || (!found.first && found.outputsFinite);
  for (Worker &worker : workers)
    for (size_t command = 0; command < harmless.size(); ++command) {
      if (good && !skipped)
        harmless[command] |= worker.wroteNegative[command];
      worker.wroteNegative[command] = 0;
    }
  if (good)
    return std::nullopt;
  if (!found.first)
    found.first = found.negative;
  return found.first ? found.first->text
                     : "an output is not finite, and no command has written "
                       "what is not";
}

/// A name of the model between quotes, on one line.
static std::string quoted(const std::string &name) {
  static const char *const digits = "0123456789abcdef";
  std::string text = "\"";
  for (char c : name) {
    if (uint8_t(c) < 32 || c == 127)
      text += std::string("\\x") + digits[uint8_t(c) >> 4] + digits[c & 15];
    else
      text += c == '"' ? "\\\"" : std::string(1, c);
  }
  return text + "\"";
}

static std::string valueText(double value) {
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

/// "[0, 3, 5]" of element 29 of 2x4x8.
static std::string indexText(const std::vector<int64_t> &sizes,
                             uint64_t element) {
  std::string text;
  for (size_t dim = sizes.size(); dim-- > 0;) {
    text = std::to_string(element % uint64_t(sizes[dim])) +
           (text.empty() ? "" : ", ") + text;
    element /= uint64_t(sizes[dim]);
  }
  return "[" + text + "]";
}

/// The first operand beside the one that was found that people know by name.
static std::string namedOperand(const Program &program, const Command &command,
                                uint32_t except) {
  for (const Operand &operand : command.operands) {
    const std::string &name = program.buffers[operand.buffer].name;
    if (operand.buffer != except && !name.empty() && name[0] != '#')
      return " on " + quoted(name);
  }
  return "";
}

/// "rank 1, command 7 (call matmul on "w") of "/fc1/Gemm"".
std::string FiniteCheck::placeOf(const Finding &finding) const {
  std::string where = "rank " + std::to_string(finding.rank);
  if (program.microBatches > 1)
    where += ", micro-batch " + std::to_string(finding.micro + 1) + " of " +
             std::to_string(program.microBatches);
  if (finding.command < 0)
    return where + ", before the first command";
  const Command &command = program.commands[size_t(finding.command)];
  where += ", command " + std::to_string(finding.command) + " (" +
           opName(command.op) +
           (command.callee.empty() ? "" : " " + command.callee) +
           namedOperand(program, command, finding.buffer) + ")";
  const std::string &origin =
      command.location.empty() ? command.label : command.location;
  return origin.empty() ? where : where + " of " + quoted(origin);
}

static std::string shapeText(const std::vector<int64_t> &sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return "[" + text + "]";
}

std::string FiniteCheck::describe(const Finding &finding) const {
  const Buffer &buffer = program.buffers[finding.buffer];
  std::string name = buffer.name;
  for (const Parameter &parameter : program.parameters)
    if (parameter.buffer == finding.buffer)
      name = parameter.name;
  bool known = !name.empty() && name[0] != '#';
  return placeOf(finding) + ": " + (known ? quoted(name) : "its result") +
         " (" + dtypeName(buffer.dtype) + shapeText(finding.sizes) + ") has " +
         valueText(finding.what.value) + " at " +
         indexText(finding.sizes, finding.what.element) + "; " +
         std::to_string(finding.what.count) + " of its " +
         std::to_string(finding.what.total) + " elements are not finite";
}
