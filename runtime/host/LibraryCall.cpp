//===- LibraryCall.cpp - Library functions of call commands ---------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See LibraryCall.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/host/LibraryCall.h"
#include "runtime/core/Error.h"

#include <sstream>

using namespace zrt;

dnnl::primitive_attr zrt::primitiveAttr() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

Place LibraryCall::scratch(uint64_t bytes) {
  Place place{Place::ScratchBase, 0, scratchBytes, {}};
  scratchBytes += (bytes + 63) / 64 * 64;
  return place;
}

void LibraryCall::addCopy(const Stored &from, const Stored &to) {
  LibraryStep step;
  step.copy.emplace(from.view, from.type, to.view, to.type);
  step.from = from.place;
  step.to = to.place;
  steps.push_back(std::move(step));
}

void LibraryCall::addPrimitive(const dnnl::primitive &primitive,
                               const dnnl::memory::desc &scratchpad,
                               std::vector<PrimitiveArg> args) {
  LibraryStep step;
  step.primitive = primitive;
  step.args = std::move(args);
  if (size_t bytes = scratchpad.get_size()) {
    auto [entry, isNew] = scratchpads.try_emplace(bytes);
    if (isNew)
      entry->second = scratch(bytes);
    step.args.push_back({DNNL_ARG_SCRATCHPAD, scratchpad, entry->second});
  }
  steps.push_back(std::move(step));
}

void zrt::checkLibraryType(fb::DType type) {
  if (!isFloat(type) || type == fb::DType_F64)
    fail(ZRT_ERROR_FORMAT, "elements of type ", dtypeName(type),
         "; library calls take f32, bf16 and f16");
}

LibraryCall zrt::makeLibraryCall(const Program &program, const Command &command,
                                 const dnnl::engine &engine) {
  std::vector<fb::DType> types;
  bool attends =
      command.callee == "attention" || command.callee == "attention_grad";
  for (const Operand &operand : command.operands) {
    types.push_back(program.buffers[operand.buffer].dtype);
    if (!attends) // its dropout has integers
      checkLibraryType(types.back());
    for (int64_t size : operand.view.sizes)
      if (size == 0)
        fail(ZRT_ERROR_FORMAT, "an operand is empty");
  }
  if (!command.operands.empty() && overlapsItself(command.operands.back().view))
    fail(ZRT_ERROR_FORMAT, "the output has two indices for one element");
  try {
    if (command.callee == "matmul")
      return makeMatmul(command, types, engine);
    if (command.callee == "conv" || command.callee == "conv_grad_input" ||
        command.callee == "conv_grad_weight")
      return makeConvolution(command, types, engine);
    if (attends)
      return makeAttention(command, types);
  } catch (const dnnl::error &error) {
    fail(ZRT_ERROR_FORMAT,
         "oneDNN does not take the operands: ", error.message);
  }
  fail(ZRT_ERROR_FORMAT, "unknown library function '", command.callee, "'");
}

std::string zrt::libraryCallKey(const Program &program,
                                const Command &command) {
  std::ostringstream key;
  auto write = [&](const std::vector<int64_t> &numbers) {
    for (int64_t number : numbers)
      key << number << ',';
    key << ';';
  };
  key << command.callee << ':';
  for (const Operand &operand : command.operands) {
    // The offset is no part: it goes into the address.
    key << dtypeName(program.buffers[operand.buffer].dtype) << ' ';
    write(operand.view.sizes);
    write(operand.view.strides);
  }
  for (const Attr &attr : command.attrs) {
    key << attr.name << '=';
    write(attr.ints);
    key.precision(17);
    for (double number : attr.floats)
      key << number << ',';
  }
  return key.str();
}

BoundCall::BoundCall(std::shared_ptr<const LibraryCall> boundCall,
                     std::vector<uint8_t *> addresses, uint8_t *scratch,
                     const dnnl::engine &engine)
    : call(std::move(boundCall)), operands(std::move(addresses)),
      scratch(scratch) {
  for (const LibraryStep &step : call->steps) {
    std::unordered_map<int, dnnl::memory> memories;
    for (const PrimitiveArg &arg : step.args)
      memories.emplace(arg.id,
                       dnnl::memory(arg.desc, engine, address(arg.place, {})));
    args.push_back(std::move(memories));
  }
}

uint8_t *BoundCall::address(const Place &place,
                            const std::vector<int64_t> &position) const {
  uint8_t *base =
      place.base == Place::ScratchBase ? scratch : operands[place.operand];
  int64_t offset = int64_t(place.byteOffset);
  if (!place.loopStrides.empty())
    for (size_t dim = 0; dim < position.size(); ++dim)
      offset += position[dim] * place.loopStrides[dim];
  return base + offset;
}

void BoundCall::runSteps(const std::vector<int64_t> &position,
                         dnnl::stream &stream) {
  for (size_t index = 0; index < call->steps.size(); ++index) {
    const LibraryStep &step = call->steps[index];
    if (step.copy) {
      step.copy->run(address(step.from, position), address(step.to, position));
      continue;
    }
    if (step.function) {
      step.function(operands.data(), scratch);
      continue;
    }
    for (const PrimitiveArg &arg : step.args)
      if (!position.empty() && !arg.place.loopStrides.empty())
        args[index].at(arg.id).set_data_handle(address(arg.place, position));
    step.primitive.execute(stream, args[index]);
  }
}

void BoundCall::run(dnnl::stream &stream) {
  const std::vector<int64_t> &loop = call->loop;
  std::vector<int64_t> position(loop.size(), 0);
  while (true) {
    runSteps(position, stream);
    size_t dim = position.size();
    while (dim > 0 && ++position[dim - 1] == loop[dim - 1])
      position[--dim] = 0;
    if (dim == 0)
      return;
  }
}
