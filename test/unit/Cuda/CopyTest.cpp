//===- CopyTest.cpp - Tests of copies and fills on a GPU ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

using namespace zrt;
using namespace zrt::test;

namespace {
struct Strided {
  int64_t offset;
  std::vector<int64_t> sizes, strides;
};

/// A copy between views of buffers of 24 elements.
void expectCopy(const Strided &from, const Strided &to,
                fb::DType type = fb::DType_F32,
                fb::Space target = fb::Space_Device) {
  PlanBuilder plan(1);
  uint32_t x = plan.input("x", {24}, type);
  plan.in(target);
  uint32_t y = plan.input("y", {24}, type);
  fb::CommandT &copy = plan.command(fb::Op_Copy);
  plan.operand(copy, x, from.offset, from.sizes, from.strides);
  plan.operand(copy, y, to.offset, to.sizes, to.strides);
  plan.output(y);
  expectSame(plan, 0);
}
} // namespace

TEST(CudaCopy, ContiguousViewsOfOtherShapes) {
  expectCopy({2, {3, 4}, {4, 1}}, {5, {12}, {1}});
  expectCopy({0, {0}, {1}}, {5, {0}, {1}});
  expectCopy({3, {}, {}}, {5, {}, {}});
}

TEST(CudaCopy, RowsOfEqualDistances) {
  expectCopy({1, {3, 4}, {7, 1}}, {0, {3, 4}, {5, 1}});
  expectCopy({0, {2, 2, 3}, {12, 6, 1}}, {0, {2, 2, 3}, {6, 3, 1}});
}

TEST(CudaCopy, AnyStridesOfAllSizesOfElements) {
  for (fb::DType type : {fb::DType_F32, fb::DType_F64, fb::DType_BF16}) {
    expectCopy({0, {4, 6}, {1, 4}}, {0, {4, 6}, {6, 1}}, type);
    expectCopy({1, {2, 3}, {0, 1}}, {2, {2, 3}, {7, 2}}, type);
    expectCopy({0, {2, 3, 2}, {1, 2, 6}}, {0, {2, 3, 2}, {6, 2, 1}}, type);
  }
}

TEST(CudaCopy, ToTheHostAndBackWithStrides) {
  expectCopy({0, {4, 6}, {1, 4}}, {0, {4, 6}, {6, 1}}, fb::DType_F32,
             fb::Space_Host);
  expectCopy({1, {3, 4}, {7, 1}}, {0, {3, 4}, {5, 1}}, fb::DType_F32,
             fb::Space_Host);
}

TEST(CudaCopy, FillsAreZeros) {
  for (fb::Space space : {fb::Space_Device, fb::Space_Host})
    for (const Strided &view :
         {Strided{3, {2, 5}, {5, 1}}, Strided{1, {3, 2}, {7, 3}}}) {
      PlanBuilder plan(1);
      plan.in(space);
      uint32_t x = plan.input("x", {24});
      fb::CommandT &fill = plan.command(fb::Op_Fill);
      plan.operand(fill, x, view.offset, view.sizes, view.strides);
      plan.output(x);
      expectSame(plan, 0);
    }
}
