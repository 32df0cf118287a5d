//===- TargetTest.cpp - Processors, the linker and their errors -----------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"
#include "mlir/IR/MLIRContext.h"
#include "zero/Lowering/Kernels.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace zero_test;

static const char *const kExp = R"(
  func.func @k(%x: tensor<37xf32>) -> tensor<37xf32> attributes {plan.kernel} {
    %0 = train.exp %x : tensor<37xf32>
    return %0 : tensor<37xf32>
  })";

// The oldest processor has no fused multiply-add: libm computes it, with the
// same bits.
TEST(KernelTarget, EveryProcessorGivesTheSameBits) {
  Kernels native(kExp), oldest(kExp, "x86-64");
  std::vector<float> x = randomFloats(37, -9, 9), y(37), z(37);
  native.run("k", {x.data(), y.data()});
  oldest.run("k", {x.data(), z.data()});
  EXPECT_EQ(y, z);
}

TEST(KernelTarget, NamedProcessorsHaveTheirFeatures) {
  mlir::MLIRContext context;
  auto target = mlir::zero::KernelTarget::named(
      "x86-64-v3", mlir::UnknownLoc::get(&context));
  ASSERT_TRUE(mlir::succeeded(target));
  EXPECT_EQ(target->cpu, "x86-64-v3");
  EXPECT_TRUE(llvm::is_contained(target->features, "avx2"));
  EXPECT_FALSE(llvm::is_contained(target->features, "avx512f"));
}

TEST(KernelTarget, UnknownProcessorIsAnError) {
  Kernels kernels(kExp, "pentium-9");
  EXPECT_EQ(kernels.error(),
            "unknown x86-64 processor 'pentium-9'; expected a name of LLVM "
            "such as 'x86-64-v3', 'znver4' or 'native'");
}

TEST(KernelTarget, MissingLinkerIsAnError) {
  std::string path = getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  Kernels kernels(kExp);
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(kernels.error(),
            "no linker: expected ld (binutils) or ld.lld in PATH");
}

TEST(KernelTarget, FailingLinkerIsAnError) {
  std::string folder = "/tmp/zero-lowering-tests-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::string linker = folder + "/ld", path = getenv("PATH");
  {
    std::ofstream script(linker);
    script << "#!/bin/sh\necho no space left\nexit 3\n";
  }
  ASSERT_EQ(chmod(linker.c_str(), 0700), 0);
  setenv("PATH", (folder + ":" + path).c_str(), 1);
  Kernels kernels(kExp);
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(kernels.error(),
            linker + " cannot link the kernels: no space left");
  std::remove(linker.c_str());
  std::remove(folder.c_str());
}
