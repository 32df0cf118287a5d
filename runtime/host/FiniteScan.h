//===- FiniteScan.h - Elements that are not finite ----------------------- ===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A search of a tensor, fast where nothing is found.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_HOST_FINITESCAN_H
#define ZERO_RT_HOST_FINITESCAN_H

#include "runtime/core/Layout.h"

namespace zrt::host {

/// The first element that is not finite.
struct NotFinite {
  uint64_t element; // in row-major order of the view
  double value;
  uint64_t count, total; // elements that are not finite, and all
};

/// Looks at the elements of a view of `storage`; `negative`: also for -inf.
std::optional<NotFinite> findNotFinite(const uint8_t *storage, fb::DType type,
                                       const View &view, bool negative);

/// Whether one of `count` elements that lie one after the other is not finite.
bool anyNotFinite(const uint8_t *data, fb::DType type, uint64_t count);

} // namespace zrt::host

#endif // ZERO_RT_HOST_FINITESCAN_H
