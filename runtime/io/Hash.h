//===- Hash.h - Hash of bytes on disk ---------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// XXH3 with 128 bits: finds damage at the speed of memory. It is no signature:
// who can write a file can also write its hash.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_HASH_H
#define ZERO_RUNTIME_IO_HASH_H

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace zrt {

class Hash {
public:
  Hash();
  ~Hash();

  void update(const void *data, size_t bytes);
  void update(std::string_view text) { update(text.data(), text.size()); }
  /// "xxh3:" and 32 hexadecimal digits.
  std::string text() const;

  static constexpr size_t textSize = 5 + 32;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace zrt

#endif // ZERO_RUNTIME_IO_HASH_H
