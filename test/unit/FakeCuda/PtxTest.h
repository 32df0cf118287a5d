//===- PtxTest.h - Helpers of the interpreter's tests ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_FAKECUDA_PTXTEST_H
#define ZERO_TEST_UNIT_FAKECUDA_PTXTEST_H

#include "test/fake-cuda/Ptx.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace ptx_test {

/// An array in the memory of device 0.
template <typename T>
class Array {
public:
  explicit Array(size_t count, T value = T())
      : window(fake_cuda::allocate(0, count * sizeof(T), "array")),
        count(count) {
    for (size_t i = 0; i < count; ++i)
      (*this)[i] = value;
  }
  Array(const Array &) = delete;
  ~Array() { fake_cuda::release(window.begin, "array"); }

  T &operator[](size_t i) { return reinterpret_cast<T *>(window.data)[i]; }
  uint64_t address() const { return window.begin; }
  std::vector<T> values() {
    return std::vector<T>(&(*this)[0], &(*this)[0] + count);
  }

private:
  fake_cuda::Window window;
  size_t count;
};

/// A file that no other process of tests has; gone in the end.
struct TemporaryFile {
  explicit TemporaryFile(const char *suffix)
      : path(testing::TempDir() + "zero-ptx-" + std::to_string(getpid()) +
             suffix) {}
  ~TemporaryFile() { std::remove(path.c_str()); }
  std::string path;
};

inline std::unique_ptr<fake_cuda::Module> parse(const std::string &text) {
  std::string error;
  auto module = fake_cuda::Module::parse(text, 0, 90, error);
  EXPECT_TRUE(module) << error;
  return module;
}

/// What is wrong with the text.
inline std::string parseError(const std::string &text) {
  std::string error;
  EXPECT_FALSE(fake_cuda::Module::parse(text, 0, 90, error));
  return error;
}

struct Shape {
  fake_cuda::Dim grid, block;
  uint32_t dynamicShared = 0;
};

/// Launches an entry with arguments of 4 or 8 bytes; what went wrong, or "".
template <typename... Arguments>
std::string launch(const fake_cuda::Module &module, const char *name,
                   const Shape &shape, fake_cuda::AccessRecorder &recorder,
                   Arguments... arguments) {
  const fake_cuda::Function *function = module.function(name);
  if (!function)
    return std::string("no entry ") + name;
  std::vector<char> block(256);
  size_t next = 0;
  auto add = [&](auto argument) {
    std::memcpy(&block[function->parameters().at(next++).offset], &argument,
                sizeof argument);
  };
  (add(arguments), ...);
  return function->launch(shape.grid, shape.block, shape.dynamicShared,
                          block.data(), recorder);
}

template <typename... Arguments>
std::string launch(const fake_cuda::Module &module, const char *name,
                   const Shape &shape, Arguments... arguments) {
  fake_cuda::AccessRecorder recorder(0);
  return launch(module, name, shape, recorder, arguments...);
}

/// An entry `test` with a parameter `out`, whose address is in %out, and the
/// number of the thread in %t. `declarations` stand before it.
inline std::string kernel(const std::string &body,
                          const std::string &declarations = "") {
  return R"(
.version 8.6
.target sm_90
.address_size 64
)" + declarations +
         R"(
.visible .entry test(.param .u64 out) {
  .reg .b32 %t, %a, %b, %c, %d, %x, %y;
  .reg .b64 %out, %at, %l, %m, %n;
  .reg .f32 %f, %g;
  .reg .pred %p, %q, %r;
  ld.param.u64 %out, [out];
  mov.u32 %t, %tid.x;
)" + body +
         "\n  ret;\n}\n";
}

/// Stores register %x as element %t of an array of 32-bit numbers.
inline const char *const storeX = R"(
  mad.wide.u32 %at, %t, 4, %out;
  st.global.b32 [%at], %x;
)";

/// Runs `body` on `threads` threads: what they have in %x at the end.
inline std::vector<uint32_t> run(const std::string &body, uint32_t threads,
                                 const std::string &declarations = "") {
  auto module = parse(kernel(body + storeX, declarations));
  Array<uint32_t> out(threads);
  if (module)
    EXPECT_EQ(
        launch(*module, "test", {{1, 1, 1}, {threads, 1, 1}}, out.address()),
        "");
  return out.values();
}

/// The fault of `body`, with an array of `threads` numbers.
inline std::string faultOf(const std::string &body, uint32_t threads,
                           const std::string &declarations = "",
                           uint32_t blocks = 1) {
  auto module = parse(kernel(body, declarations));
  Array<uint32_t> out(threads);
  return module ? launch(*module, "test", {{blocks, 1, 1}, {threads, 1, 1}},
                         out.address())
                : "";
}

} // namespace ptx_test

#endif // ZERO_TEST_UNIT_FAKECUDA_PTXTEST_H
