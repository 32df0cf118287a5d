//===- DriverGraph.h - What captures mean for other calls -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FAKECUDA_DRIVERGRAPH_H
#define ZERO_TEST_FAKECUDA_DRIVERGRAPH_H

#include "test/fake-cuda/Driver.h"

namespace fake_cuda {

bool isGoingOn(const CapturePtr &capture);

/// Calls that are not allowed while a stream captures: by any thread, or by
/// this one, as the capture's mode says.
CUresult refuseInCapture(const char *function);

} // namespace fake_cuda

#endif // ZERO_TEST_FAKECUDA_DRIVERGRAPH_H
