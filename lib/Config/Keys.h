//===- Keys.h - Rows of the table of keys -----------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Short forms of rows, and the parts that the table is put together from.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_CONFIG_KEYS_H
#define ZERO_LIB_CONFIG_KEYS_H

#include "zero/Config/DeepSpeed.h"

namespace mlir::zero::keys {

using Type = ConfigType;

constexpr ConfigKey used(const char *path, Type type, const char *defaultValue,
                         const char *note) {
  return {path, type, defaultValue, ConfigVerdict::Used, note};
}
constexpr ConfigKey mapped(const char *path, Type type,
                           const char *defaultValue, const char *note) {
  return {path, type, defaultValue, ConfigVerdict::Mapped, note};
}
constexpr ConfigKey noEffect(const char *path, Type type,
                             const char *defaultValue, const char *note) {
  return {path, type, defaultValue, ConfigVerdict::NoEffect, note};
}
constexpr ConfigKey refused(const char *path, Type type,
                            const char *defaultValue, const char *note) {
  return {path, type, defaultValue, ConfigVerdict::Refused, note};
}

llvm::ArrayRef<ConfigKey> trainingKeys();
llvm::ArrayRef<ConfigKey> zeroKeys();
llvm::ArrayRef<ConfigKey> otherKeys();

/// The key of that path, by its own name or an alias; null if there is none.
const ConfigKey *find(llvm::StringRef path);
/// Whether `name` is one of `names`, which have | between them.
bool among(llvm::StringRef name, llvm::StringRef names);
/// The section a path is in ("" at the top) and its last name.
std::pair<llvm::StringRef, llvm::StringRef> split(llvm::StringRef path);
/// "; did you mean 'X'?", "; it belongs in 'SECTION'" or nothing.
std::string hint(llvm::StringRef section, llvm::StringRef name);
/// What a key's value has to be, in words.
std::string expectation(const ConfigKey &key);

} // namespace mlir::zero::keys

#endif // ZERO_LIB_CONFIG_KEYS_H
