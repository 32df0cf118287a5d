//===- KernelHarness.cpp - Compile and call kernels in tests --------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelHarness.h"

#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "zero/Lowering/Kernels.h"
#include <cmath>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace zero_test;

int64_t zero_test::countElements(const Shape &shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

std::string zero_test::tensorType(const Shape &shape,
                                  const std::string &element) {
  std::string text = "tensor<";
  for (int64_t extent : shape)
    text += std::to_string(extent) + "x";
  return text + element + ">";
}

std::string zero_test::substitute(
    std::string text,
    const std::vector<std::pair<std::string, std::string>> &values) {
  for (const auto &[name, value] : values) {
    std::string key = "%" + name + "%";
    for (size_t at = 0; (at = text.find(key, at)) != std::string::npos;
         at += value.size())
      text.replace(at, key.size(), value);
  }
  return text;
}

std::vector<float> zero_test::randomFloats(int64_t count, float low, float high,
                                           uint32_t seed) {
  std::mt19937 generator(seed);
  std::vector<float> values(count);
  for (float &value : values)
    value = low + (high - low) * (generator() / 4294967296.0);
  return values;
}

Kernels::Kernels(const std::string &text, const std::string &cpu) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::plan::PlanDialect, mlir::tensor::TensorDialect,
                  mlir::tosa::TosaDialect, mlir::train::TrainDialect>();
  mlir::zero::registerKernelDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  mlir::ScopedDiagnosticHandler handler(&context,
                                        [&](mlir::Diagnostic &diagnostic) {
                                          if (message.empty())
                                            message = diagnostic.str();
                                        });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  auto target =
      mlir::zero::KernelTarget::named(cpu, mlir::UnknownLoc::get(&context));
  if (!module || mlir::failed(target) ||
      mlir::failed(mlir::zero::compileKernels(*module, *target, sharedObject)))
    return;
  for (auto kernel : module->getOps<mlir::func::FuncOp>())
    if (auto split =
            kernel->getAttrOfType<mlir::IntegerAttr>(mlir::zero::kSplitAttr))
      splits[kernel.getName().str()] = split.getInt();
  load();
}

void Kernels::load() {
  descriptor = memfd_create("kernels", MFD_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(write(descriptor, sharedObject.data(), sharedObject.size()),
            static_cast<ssize_t>(sharedObject.size()));
  std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
}

Kernels::~Kernels() {
  if (library)
    dlclose(library);
  if (descriptor >= 0)
    close(descriptor);
}

void *Kernels::find(const std::string &name) const {
  void *kernel = isValid() ? dlsym(library, name.c_str()) : nullptr;
  EXPECT_NE(kernel, nullptr) << name << ": " << message;
  return kernel;
}

void Kernels::run(const std::string &name, std::vector<void *> buffers) const {
  auto *kernel = reinterpret_cast<void (*)(void **)>(find(name));
  ASSERT_NE(kernel, nullptr);
  kernel(buffers.data());
}

void Kernels::run(const std::string &name, std::vector<void *> buffers,
                  int64_t begin, int64_t end) const {
  auto *kernel =
      reinterpret_cast<void (*)(void **, int64_t, int64_t)>(find(name));
  ASSERT_NE(kernel, nullptr);
  kernel(buffers.data(), begin, end);
}

int64_t Kernels::split(const std::string &name) const {
  auto found = splits.find(name);
  return found == splits.end() ? 0 : found->second;
}

template <typename T>
static void compare(const std::vector<T> &actual,
                    const std::vector<T> &expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(actual[i]))
      continue;
    if (actual[i] == expected[i])
      continue;
    ASSERT_LE(std::abs(actual[i] - expected[i]),
              tolerance * (1 + std::abs(expected[i])))
        << "element " << i << " is " << actual[i] << ", expected "
        << expected[i];
  }
}

void zero_test::expectClose(const std::vector<float> &actual,
                            const std::vector<float> &expected,
                            double tolerance) {
  compare(actual, expected, tolerance);
}

void zero_test::expectClose(const std::vector<double> &actual,
                            const std::vector<double> &expected,
                            double tolerance) {
  compare(actual, expected, tolerance);
}
