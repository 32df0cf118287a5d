//===- WireMutator.h - Mutations that keep a message sound -----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Flipped bytes rarely get past a parser of nested lengths. This changes an
// ONNX model field by field: the result is nearly always a message again.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FUZZ_WIREMUTATOR_H
#define ZERO_TEST_FUZZ_WIREMUTATOR_H

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace zero_fuzz {

/// What messages of ONNX's schema hold others in.
enum class Kind : uint8_t {
  Model,
  Graph,
  Node,
  Attribute,
  Tensor,
  SparseTensor,
  ValueInfo,
  Type,
  TensorType,
  InnerType,
  Shape,
  Dimension,
  Opset,
  Entry,
  Function,
  Training,
  /// No message: text, bytes or packed numbers.
  Bytes
};

/// A field of a message, its content parsed where it is a message itself.
struct Field {
  uint32_t number = 0;
  uint32_t wire = 0;
  Kind kind = Kind::Bytes;
  uint64_t value = 0;
  std::string bytes;
  std::vector<Field> fields;
};

/// Words that are likely to mean something where text is expected.
struct Dictionary {
  std::vector<std::string> operators, words;
};

class WireMutator {
public:
  WireMutator(const Dictionary &dictionary, uint32_t seed)
      : dictionary(dictionary), random(seed) {}

  /// Changes `model` in a few places. False if it is no message.
  bool mutate(std::string &model);
  /// Puts a part of `other` into `model`. False if one is no message.
  bool cross(std::string &model, const std::string &other);

private:
  struct Place {
    std::vector<Field> *parent;
    size_t index;
  };

  size_t below(size_t n) { return n ? random() % n : 0; }
  Place pick(std::vector<Field> &root, unsigned depth);
  void change(Place place);
  void changeNumber(Field &field);
  void changeText(Field &field);
  void changePacked(Field &field);
  uint64_t interesting();

  const Dictionary &dictionary;
  std::mt19937 random;
  /// Texts of the model at hand: names that exist.
  std::vector<std::string> names;
};

} // namespace zero_fuzz

#endif // ZERO_TEST_FUZZ_WIREMUTATOR_H
