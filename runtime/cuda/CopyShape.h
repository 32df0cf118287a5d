//===- CopyShape.h - Shape of a strided copy on a GPU -----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A parameter of the kernels in Kernels.cu: as the host lays it out, so it is
// read there.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CUDA_COPYSHAPE_H
#define ZERO_RT_CUDA_COPYSHAPE_H

#include <cstdint>

namespace zrt::cuda {

struct CopyShape {
  static constexpr int kDims = 12; ///< most that a program has

  int64_t elements;
  int64_t sizes[kDims];           ///< outer first, 1 in front of the view's
  int64_t from[kDims], to[kDims]; ///< strides in elements; 0 broadcasts
};

} // namespace zrt::cuda

#endif // ZERO_RT_CUDA_COPYSHAPE_H
