//===- Window.cpp - Sliding windows of operators --------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Window.h.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Window.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

bool zero::onnx_import::checkEntries(NodeContext &c, StringRef name,
                                     ArrayRef<int64_t> values, size_t count,
                                     int64_t smallest) {
  // Large enough for any model; keeps the arithmetic on windows from
  // overflowing.
  constexpr int64_t largest = int64_t(1) << 31;
  if (values.size() != count) {
    c.node.error() << "'" << name << "' has " << values.size()
                   << " entries, expected " << count;
    return false;
  }
  for (int64_t value : values)
    if (value < smallest || value > largest) {
      c.node.error() << "'" << name << "' has the entry " << value
                     << ", expected " << smallest << " to " << largest;
      return false;
    }
  return true;
}

/// Pads of auto_pad's SAME modes: the result has ceil(size / stride) entries.
static void padSame(Window &window, ArrayRef<int64_t> sizes, bool upper) {
  size_t rank = sizes.size();
  for (size_t d = 0; d < rank; ++d) {
    int64_t count = (sizes[d] + window.strides[d] - 1) / window.strides[d];
    int64_t total = std::max<int64_t>(
        (count - 1) * window.strides[d] + window.extent(d) - sizes[d], 0);
    window.pads[d] = upper ? total / 2 : total - total / 2;
    window.pads[rank + d] = total - window.pads[d];
  }
}

FailureOr<Window> zero::onnx_import::readWindow(NodeContext &c, size_t rank,
                                                ArrayRef<int64_t> kernel) {
  Window window;
  SmallVector<int64_t> ones(rank, 1), zeros(2 * rank, 0);
  window.kernel = c.node.intsAttr("kernel_shape", kernel);
  window.strides = c.node.intsAttr("strides", ones);
  window.dilations = c.node.intsAttr("dilations", ones);
  window.pads = c.node.intsAttr("pads", zeros);
  if (c.node.failed() ||
      !checkEntries(c, "kernel_shape", window.kernel, rank, 1) ||
      !checkEntries(c, "strides", window.strides, rank, 1) ||
      !checkEntries(c, "dilations", window.dilations, rank, 1) ||
      !checkEntries(c, "pads", window.pads, 2 * rank, 0))
    return failure();
  return window;
}

FailureOr<Window>
zero::onnx_import::readPaddedWindow(NodeContext &c, ArrayRef<int64_t> sizes,
                                    ArrayRef<int64_t> kernel) {
  FailureOr<Window> window = readWindow(c, sizes.size(), kernel);
  if (failed(window))
    return failure();
  std::string mode = c.node.stringAttr("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    padSame(*window, sizes, mode == "SAME_UPPER");
  } else if (mode == "VALID") {
    llvm::fill(window->pads, 0);
  } else if (mode != "NOTSET") {
    (void)c.fail("has the unknown auto_pad '" + mode + "'");
    return failure();
  }
  return window;
}
