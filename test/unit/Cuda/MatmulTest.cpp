//===- MatmulTest.cpp - Tests of matrix products on a GPU -----------------===//
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
struct Operand {
  std::vector<int64_t> sizes, strides;
  fb::DType type = fb::DType_F32;
  int64_t offset = 0;
};

int64_t extentOf(const Operand &operand) {
  int64_t last = operand.offset;
  for (size_t dim = 0; dim < operand.sizes.size(); ++dim)
    last += (operand.sizes[dim] - 1) * operand.strides[dim];
  return last + 1;
}

/// The last operand is the result.
PlanBuilder product(const std::vector<Operand> &operands) {
  PlanBuilder plan(1);
  std::vector<uint32_t> buffers;
  for (const Operand &operand : operands)
    buffers.push_back(plan.input("x" + std::to_string(buffers.size()),
                                 {extentOf(operand)}, operand.type));
  fb::CommandT &call = plan.command(fb::Op_Call, "matmul");
  for (size_t index = 0; index < operands.size(); ++index)
    plan.operand(call, buffers[index], operands[index].offset,
                 operands[index].sizes, operands[index].strides);
  plan.output(buffers.back());
  return plan;
}

void expectProduct(const std::vector<Operand> &operands,
                   double tolerance = 1e-5) {
  PlanBuilder plan = product(operands);
  expectSame(plan, tolerance);
}

constexpr fb::DType bf16 = fb::DType_BF16, f16 = fb::DType_F16;
} // namespace

TEST(CudaMatmul, RowsAndColumns) {
  for (const Operand &a : {Operand{{3, 5}, {5, 1}}, Operand{{3, 5}, {1, 3}},
                           Operand{{3, 5}, {9, 1}}})
    for (const Operand &b : {Operand{{5, 4}, {4, 1}}, Operand{{5, 4}, {1, 5}}})
      for (const Operand &out :
           {Operand{{3, 4}, {4, 1}}, Operand{{3, 4}, {1, 3}},
            Operand{{3, 4}, {6, 1}, fb::DType_F32, 2}})
        expectProduct({a, b, out});
}

/// Strides that the library does not know are packed and unpacked.
TEST(CudaMatmul, AnyStrides) {
  expectProduct({{{3, 5}, {10, 2}}, {{5, 4}, {8, 2}}, {{3, 4}, {9, 2}}});
  expectProduct({{{3, 5}, {0, 1}}, {{5, 4}, {1, 0}}, {{3, 4}, {4, 1}}});
  expectProduct({{{1, 1}, {7, 3}}, {{1, 1}, {1, 1}}, {{1, 1}, {1, 1}}});
}

TEST(CudaMatmul, Stacks) {
  Operand a{{2, 3, 5}, {15, 5, 1}}, b{{2, 5, 4}, {20, 4, 1}};
  Operand out{{2, 3, 4}, {12, 4, 1}};
  expectProduct({a, b, out});
  expectProduct({a, {{1, 5, 4}, {20, 4, 1}}, out}); // becomes one matrix
  expectProduct({a, {{2, 5, 4}, {0, 4, 1}}, out});
  expectProduct({{{1, 3, 5}, {15, 1, 3}}, b, out});
  // Two stack dimensions that are one, and two that are not.
  expectProduct({{{2, 2, 3, 5}, {30, 15, 5, 1}},
                 {{2, 2, 5, 4}, {40, 20, 4, 1}},
                 {{2, 2, 3, 4}, {24, 12, 4, 1}}});
  expectProduct({{{2, 3, 3, 5}, {15, 30, 5, 1}},
                 {{2, 3, 5, 4}, {60, 20, 4, 1}},
                 {{2, 3, 3, 4}, {36, 12, 4, 1}}});
  expectProduct({{{2, 1, 3, 5}, {15, 0, 5, 1}},
                 {{1, 3, 5, 4}, {0, 20, 4, 1}},
                 {{2, 3, 3, 4}, {36, 12, 4, 1}}});
}

/// Heads of an attention: the stack is inside the rows.
TEST(CudaMatmul, HeadsBetweenRows) {
  expectProduct({{{2, 3, 4, 5}, {60, 5, 15, 1}},
                 {{2, 3, 5, 4}, {60, 5, 1, 15}},
                 {{2, 3, 4, 4}, {48, 16, 4, 1}}});
}

TEST(CudaMatmul, BiasOfAnyShape) {
  Operand a{{2, 3, 5}, {15, 5, 1}}, b{{2, 5, 4}, {20, 4, 1}};
  Operand out{{2, 3, 4}, {12, 4, 1}}, columns{{2, 3, 4}, {12, 1, 3}};
  for (const Operand &bias :
       {Operand{{1, 1, 4}, {0, 0, 1}}, Operand{{1, 3, 1}, {0, 1, 0}},
        Operand{{2, 3, 4}, {12, 4, 1}}, Operand{{1, 1, 1}, {0, 0, 0}},
        Operand{{2, 1, 4}, {4, 0, 1}}, Operand{{1, 1, 4}, {0, 0, 2}},
        Operand{{1, 1, 4}, {0, 0, 1}, fb::DType_F32, 1}}) {
    expectProduct({a, b, bias, out});
    expectProduct({a, b, bias, columns});
  }
}

/// Sums are in f32 whatever the operands are.
TEST(CudaMatmul, NarrowTypes) {
  for (fb::DType type : {bf16, f16})
    for (fb::DType to : {type, fb::DType_F32}) {
      double tolerance = to == fb::DType_F32 ? 1e-5 : type == f16 ? 4e-3 : 4e-2;
      Operand a{{3, 5}, {5, 1}, type}, b{{5, 4}, {1, 5}, type};
      Operand out{{3, 4}, {4, 1}, to};
      expectProduct({a, b, out}, tolerance);
      expectProduct({a, b, {{1, 4}, {4, 1}, to}, out}, tolerance);
      expectProduct({a, b, {{1, 4}, {4, 1}, type}, out}, tolerance);
      expectProduct({a, {{5, 4}, {4, 1}, fb::DType_F32}, out}, tolerance);
    }
}

TEST(CudaMatmul, WhatIsNoProductIsRefused) {
  PlanBuilder plan =
      product({{{3, 5}, {5, 1}}, {{4, 4}, {4, 1}}, {{3, 4}, {4, 1}}});
  forCuda(plan);
  EXPECT_EQ(sessionError(plan),
            "rank 0, command 0 (call matmul): shapes do not fit: 3x5 times 4x4 "
            "is not 3x4");
  plan = product({{{3, 4}, {4, 1}}, {{4, 4}, {4, 1}}});
  forCuda(plan);
  EXPECT_EQ(sessionError(plan), "rank 0, command 0 (call matmul): a matmul has "
                                "3 or 4 operands, not 2");
}
