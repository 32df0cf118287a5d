//===- WireMutator.cpp - Mutations that keep a message sound --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The schema is a table of the fields that hold messages (onnx-ml.proto);
// everything else is text, numbers or bytes.
//
//===----------------------------------------------------------------------===//

#include "WireMutator.h"

#include <algorithm>
#include <iterator>

using namespace zero_fuzz;

namespace {
struct Inner {
  Kind parent;
  uint32_t number;
  Kind kind;
};
} // namespace

static constexpr Inner schema[] = {{Kind::Model, 7, Kind::Graph},
                                   {Kind::Model, 8, Kind::Opset},
                                   {Kind::Model, 14, Kind::Entry},
                                   {Kind::Model, 20, Kind::Training},
                                   {Kind::Model, 25, Kind::Function},
                                   {Kind::Graph, 1, Kind::Node},
                                   {Kind::Graph, 5, Kind::Tensor},
                                   {Kind::Graph, 11, Kind::ValueInfo},
                                   {Kind::Graph, 12, Kind::ValueInfo},
                                   {Kind::Graph, 13, Kind::ValueInfo},
                                   {Kind::Graph, 15, Kind::SparseTensor},
                                   {Kind::Graph, 16, Kind::Entry},
                                   {Kind::Node, 5, Kind::Attribute},
                                   {Kind::Node, 9, Kind::Entry},
                                   {Kind::Attribute, 5, Kind::Tensor},
                                   {Kind::Attribute, 6, Kind::Graph},
                                   {Kind::Attribute, 10, Kind::Tensor},
                                   {Kind::Attribute, 11, Kind::Graph},
                                   {Kind::Attribute, 14, Kind::Type},
                                   {Kind::Attribute, 15, Kind::Type},
                                   {Kind::Attribute, 22, Kind::SparseTensor},
                                   {Kind::Attribute, 23, Kind::SparseTensor},
                                   {Kind::Tensor, 13, Kind::Entry},
                                   {Kind::SparseTensor, 1, Kind::Tensor},
                                   {Kind::SparseTensor, 2, Kind::Tensor},
                                   {Kind::ValueInfo, 2, Kind::Type},
                                   {Kind::Type, 1, Kind::TensorType},
                                   {Kind::Type, 4, Kind::InnerType},
                                   {Kind::Type, 9, Kind::InnerType},
                                   {Kind::TensorType, 2, Kind::Shape},
                                   {Kind::InnerType, 1, Kind::Type},
                                   {Kind::Shape, 1, Kind::Dimension},
                                   {Kind::Function, 7, Kind::Node},
                                   {Kind::Function, 9, Kind::Opset},
                                   {Kind::Function, 11, Kind::Attribute},
                                   {Kind::Function, 12, Kind::ValueInfo},
                                   {Kind::Training, 1, Kind::Graph},
                                   {Kind::Training, 2, Kind::Graph},
                                   {Kind::Training, 3, Kind::Entry},
                                   {Kind::Training, 4, Kind::Entry}};

static Kind kindOf(Kind parent, uint32_t number) {
  for (const Inner &inner : schema)
    if (inner.parent == parent && inner.number == number)
      return inner.kind;
  return Kind::Bytes;
}

//===----------------------------------------------------------------------===//
// The encoding
//===----------------------------------------------------------------------===//

static bool readVarint(const char *&at, const char *end, uint64_t &value) {
  value = 0;
  for (unsigned shift = 0; at != end && shift < 70; shift += 7) {
    uint64_t byte = uint8_t(*at++);
    value |= (byte & 0x7f) << (shift % 64);
    if (!(byte & 0x80))
      return true;
  }
  return false;
}

static void writeVarint(uint64_t value, std::string &out) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(char(value | 0x80));
  out.push_back(char(value));
}

static bool parse(const std::string &bytes, Kind kind, unsigned depth,
                  std::vector<Field> &fields) {
  const char *at = bytes.data(), *end = at + bytes.size();
  while (at != end) {
    Field field;
    uint64_t tag, size = 0;
    if (!readVarint(at, end, tag))
      return false;
    field.number = uint32_t(tag >> 3);
    field.wire = tag & 7;
    if (field.wire == 0) {
      if (!readVarint(at, end, field.value))
        return false;
    } else if (field.wire == 2 ? !readVarint(at, end, size)
                               : field.wire != 1 && field.wire != 5) {
      return false;
    } else {
      size = field.wire == 1 ? 8 : field.wire == 5 ? 4 : size;
      if (size > size_t(end - at))
        return false;
      field.bytes.assign(at, size);
      at += size;
    }
    if (field.wire == 2)
      field.kind = kindOf(kind, field.number);
    if (field.kind != Kind::Bytes &&
        (depth > 24 ||
         !parse(field.bytes, field.kind, depth + 1, field.fields))) {
      field.kind = Kind::Bytes;
      field.fields.clear();
    }
    fields.push_back(std::move(field));
  }
  return true;
}

static void write(const std::vector<Field> &fields, std::string &out) {
  for (const Field &field : fields) {
    writeVarint(uint64_t(field.number) << 3 | field.wire, out);
    if (field.wire == 0) {
      writeVarint(field.value, out);
      continue;
    }
    std::string inner;
    if (field.kind == Kind::Bytes)
      inner = field.bytes;
    else
      write(field.fields, inner);
    if (field.wire == 2)
      writeVarint(inner.size(), out);
    out += inner;
  }
}

//===----------------------------------------------------------------------===//
// Changes
//===----------------------------------------------------------------------===//

static void collectNames(const std::vector<Field> &fields,
                         std::vector<std::string> &names) {
  for (const Field &field : fields) {
    if (field.kind != Kind::Bytes)
      collectNames(field.fields, names);
    else if (field.wire == 2 && field.bytes.size() < 64)
      names.push_back(field.bytes);
  }
}

/// A random field, at a random depth; levels that are chosen more often than
/// others would hide the rest of a large graph.
WireMutator::Place WireMutator::pick(std::vector<Field> &root, unsigned depth) {
  Place place = {&root, below(root.size())};
  while (!place.parent->empty() && depth--) {
    Field &field = (*place.parent)[place.index];
    if (field.kind == Kind::Bytes || field.fields.empty())
      break;
    place = {&field.fields, below(field.fields.size())};
  }
  return place;
}

uint64_t WireMutator::interesting() {
  static constexpr int64_t values[] = {
      0,         1,         2,        3,         4,         7,
      8,         16,        32,       127,       128,       255,
      256,       1000,      65535,    65536,     1 << 20,   (1 << 24) + 1,
      INT32_MAX, INT32_MIN, 1l << 32, INT64_MAX, INT64_MIN, 1l << 40,
      -1,        -2,        -3,       -4,        -128,      1l << 62};
  return uint64_t(values[below(std::size(values))]);
}

void WireMutator::changeNumber(Field &field) {
  switch (below(4)) {
  case 0:
    field.value ^= uint64_t(1) << below(64);
    break;
  case 1:
    field.value += below(5) - 2;
    break;
  default:
    field.value = interesting();
  }
}

void WireMutator::changeText(Field &field) {
  const std::vector<std::string> *lists[] = {&names, &dictionary.operators,
                                             &dictionary.words};
  const std::vector<std::string> &list = *lists[below(3)];
  if (below(4) && !list.empty())
    field.bytes = list[below(list.size())];
  else if (!field.bytes.empty())
    field.bytes[below(field.bytes.size())] = char(random());
  if (below(16) == 0)
    field.bytes.resize(below(field.bytes.size() * 2 + 1));
}

/// Elements of fixed or variable length, as tensors and lists have them.
void WireMutator::changePacked(Field &field) {
  if (below(2)) {
    std::string number;
    writeVarint(interesting(), number);
    field.bytes.insert(below(field.bytes.size() + 1), number);
    return;
  }
  uint64_t value = interesting();
  size_t at = below(field.bytes.size()) / 8 * 8;
  for (size_t i = 0; i < 8 && at + i < field.bytes.size(); ++i)
    field.bytes[at + i] = char(value >> (8 * i));
}

void WireMutator::change(Place place) {
  std::vector<Field> &fields = *place.parent;
  if (fields.empty())
    return;
  Field &field = fields[place.index];
  size_t what = below(12);
  if (what == 0) {
    fields.erase(fields.begin() + long(place.index));
  } else if (what == 1 && fields.size() < 5000) {
    Field copy = field;
    fields.insert(fields.begin() + long(below(fields.size() + 1)),
                  std::move(copy));
  } else if (what == 2) {
    std::swap(field, fields[below(fields.size())]);
  } else if (what == 3) {
    field.number = 1 + uint32_t(below(26));
  } else if (field.wire == 0) {
    changeNumber(field);
  } else if (field.wire == 2 && field.kind == Kind::Bytes) {
    if (below(3))
      changeText(field);
    else
      changePacked(field);
  } else if (field.kind == Kind::Bytes) {
    changePacked(field);
    field.bytes.resize(field.wire == 1 ? 8 : 4);
  }
}

bool WireMutator::mutate(std::string &model) {
  std::vector<Field> root;
  if (!parse(model, Kind::Model, 0, root))
    return false;
  names.clear();
  collectNames(root, names);
  for (size_t i = 0, changes = 1 + below(4); i < changes; ++i)
    change(pick(root, 1 + unsigned(below(8))));
  model.clear();
  write(root, model);
  return true;
}

bool WireMutator::cross(std::string &model, const std::string &other) {
  std::vector<Field> root, source;
  if (!parse(model, Kind::Model, 0, root) ||
      !parse(other, Kind::Model, 0, source) || source.empty())
    return false;
  // A node, an initializer or a part of one, put among others of its level.
  unsigned depth = 1 + unsigned(below(5));
  Place from = pick(source, depth), to = pick(root, depth);
  if (!from.parent->empty())
    to.parent->insert(to.parent->begin() + long(to.index),
                      (*from.parent)[from.index]);
  model.clear();
  write(root, model);
  return true;
}
