//===- Hash.cpp - Hash of bytes on disk -----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library's code is in its header: nothing more to link.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Hash.h"

#include <cstdio>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace zrt;

// The library aligns its state itself.
struct Hash::State {
  XXH3_state_t xxh;
};

Hash::Hash() : state(new State) { XXH3_128bits_reset(&state->xxh); }

Hash::~Hash() = default;

void Hash::update(const void *data, size_t bytes) {
  if (bytes)
    XXH3_128bits_update(&state->xxh, data, bytes);
}

std::string Hash::text() const {
  XXH128_hash_t hash = XXH3_128bits_digest(&state->xxh);
  char text[textSize + 1];
  std::snprintf(text, sizeof(text), "xxh3:%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text;
}
