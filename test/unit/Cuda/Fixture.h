//===- Fixture.h - Programs on the fake GPUs --------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The host backend says what a program does; here it is run on both.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_CUDA_FIXTURE_H
#define ZERO_TEST_UNIT_CUDA_FIXTURE_H

#include "PlanBuilder.h"

#include <gmock/gmock.h>

namespace zrt::test {

/// Makes a program one for GPUs, with the kernels `double4` and `add_one4` of
/// the host's tests as device code.
void forCuda(PlanBuilder &plan);

/// Runs a program on the host and on the GPUs, some steps with the same inputs,
/// of f32: all outputs of all ranks have to agree to `tolerance`, and the bytes
/// that were touched exactly.
void expectSame(PlanBuilder &plan, double tolerance = 1e-6,
                zrt_session_options options = {});

/// What a step of the program on GPUs says; "" if it succeeds.
std::string stepError(PlanBuilder &plan, zrt_session_options options = {});

/// Sets all inputs of all ranks to numbers of a seed.
void setInputs(Running &running, uint64_t seed);

} // namespace zrt::test

#endif // ZERO_TEST_UNIT_CUDA_FIXTURE_H
