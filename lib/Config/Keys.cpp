//===- Keys.cpp - The table of keys ---------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds keys by their names, and the nearest to one that is none.
//
//===----------------------------------------------------------------------===//

#include "Keys.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace mlir::zero;
using llvm::StringRef;

llvm::ArrayRef<ConfigKey> mlir::zero::deepSpeedKeys() {
  static const std::vector<ConfigKey> all = [] {
    std::vector<ConfigKey> keys;
    for (llvm::ArrayRef<ConfigKey> part :
         {keys::trainingKeys(), keys::zeroKeys(), keys::otherKeys()})
      keys.insert(keys.end(), part.begin(), part.end());
    return keys;
  }();
  return all;
}

StringRef mlir::zero::verdictName(ConfigVerdict verdict) {
  switch (verdict) {
  case ConfigVerdict::Used:
    return "used";
  case ConfigVerdict::Mapped:
    return "mapped";
  case ConfigVerdict::NoEffect:
    return "no effect";
  case ConfigVerdict::Refused:
    break;
  }
  return "refused";
}

std::pair<StringRef, StringRef> keys::split(StringRef path) {
  size_t dot = path.rfind('.');
  if (dot == StringRef::npos)
    return {"", path};
  return {path.take_front(dot), path.drop_front(dot + 1)};
}

bool keys::among(StringRef name, StringRef names) {
  while (!names.empty()) {
    auto [first, rest] = names.split('|');
    if (first == name)
      return true;
    names = rest;
  }
  return false;
}

static std::string join(StringRef section, StringRef name) {
  return section.empty() ? name.str() : (section + "." + name).str();
}

/// All names of all keys.
static const llvm::StringMap<const ConfigKey *> &index() {
  static const llvm::StringMap<const ConfigKey *> map = [] {
    llvm::StringMap<const ConfigKey *> result;
    for (const ConfigKey &key : deepSpeedKeys()) {
      result[key.path] = &key;
      llvm::SmallVector<StringRef> aliases;
      StringRef(key.aliases).split(aliases, '|', -1, /*KeepEmpty=*/false);
      for (StringRef alias : aliases)
        result[join(keys::split(key.path).first, alias)] = &key;
    }
    return result;
  }();
  return map;
}

const ConfigKey *keys::find(StringRef path) { return index().lookup(path); }

/// The name in `section` that is at most a third of its letters away.
static std::string nearest(StringRef section, StringRef name) {
  std::string best;
  unsigned least = std::max<size_t>(1, name.size() / 3) + 1;
  for (const ConfigKey &key : deepSpeedKeys()) {
    auto [place, own] = keys::split(key.path);
    if (place != section)
      continue;
    llvm::SmallVector<StringRef> names = {own};
    StringRef(key.aliases).split(names, '|', -1, /*KeepEmpty=*/false);
    for (StringRef known : names) {
      unsigned distance = name.edit_distance_insensitive(known, true, least);
      if (distance < least) {
        least = distance;
        best = known.str();
      }
    }
  }
  return best;
}

std::string keys::hint(StringRef section, StringRef name) {
  if (name.size() > 80)
    return "";
  // Before a near name: the very name in another section.
  for (const ConfigKey &key : deepSpeedKeys()) {
    auto [place, own] = split(key.path);
    if (place != section && (own == name || among(name, key.aliases)))
      return place.empty() ? "; it belongs at the top level"
                           : ("; it belongs in '" + place + "'").str();
  }
  std::string near = nearest(section, name);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

/// "a, b or c".
static std::string listed(StringRef names) {
  llvm::SmallVector<StringRef> parts;
  names.split(parts, '|');
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i)
    text += (i == 0                  ? ""
             : i + 1 == parts.size() ? " or "
                                     : ", ") +
            ("\"" + parts[i] + "\"").str();
  return text;
}

static std::string bounds(const ConfigKey &key) {
  if (key.max >= 1e9)
    return llvm::formatv(" of at least {0}", int64_t(key.min));
  return llvm::formatv(" from {0} to {1}", int64_t(key.min), int64_t(key.max));
}

std::string keys::expectation(const ConfigKey &key) {
  switch (key.type) {
  case ConfigType::Bool:
    return "true or false";
  case ConfigType::Integer:
    return "a whole number" + bounds(key);
  case ConfigType::Number:
    return "a number" + bounds(key);
  case ConfigType::Text:
  case ConfigType::Dtype:
    return *key.choices ? listed(key.choices) : "a text";
  case ConfigType::Pair:
    return "a list of two numbers" + bounds(key);
  case ConfigType::List:
    return "a list";
  case ConfigType::Section:
    return "an object";
  case ConfigType::Open:
    break;
  }
  return "an object or a list";
}
