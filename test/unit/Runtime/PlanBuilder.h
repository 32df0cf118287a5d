//===- PlanBuilder.h - Programs for the runtime's tests -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Builds small programs without the compiler, and runs them.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_RUNTIME_PLANBUILDER_H
#define ZERO_TEST_UNIT_RUNTIME_PLANBUILDER_H

#include "runtime/core/Layout.h"
#include "zero-rt/Session.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#ifdef __has_feature
#define ZERO_TEST_UNDER_TSAN __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define ZERO_TEST_UNDER_TSAN 1
#else
#define ZERO_TEST_UNDER_TSAN 0
#endif

namespace zrt::test {

/// The bytes of the shared object that Kernels.cpp becomes.
const std::vector<uint8_t> &kernelBytes();

/// A program under construction: arenas of bytes that grow.
class PlanBuilder {
public:
  explicit PlanBuilder(uint32_t ranks);

  /// Buffers from now on lie there; at first on the device. On host and disk
  /// each has whole blocks of 4096 bytes.
  void in(fb::Space space);

  /// A buffer behind the last; its index.
  uint32_t buffer(const std::string &name, std::vector<int64_t> shape,
                  fb::DType dtype = fb::DType_F32,
                  fb::Kind kind = fb::Kind_Activation, int64_t capacity = 0);
  /// A buffer of chunk `rank` of another on each rank.
  uint32_t chunkOf(uint32_t whole, int64_t chunk);
  /// A buffer that is an input.
  uint32_t input(const std::string &name, std::vector<int64_t> shape,
                 fb::DType dtype = fb::DType_F32);
  void output(uint32_t buffer, fb::AcrossRanks across = fb::AcrossRanks_Same);
  /// A sharded one has as many parts as the grid has shards.
  fb::ParameterT &parameter(const std::string &name, std::vector<int64_t> shape,
                            bool sharded, fb::Init init = fb::Init_File);

  fb::CommandT &command(fb::Op op, const std::string &callee = "");
  /// An operand that is the whole buffer.
  void operand(fb::CommandT &command, uint32_t buffer);
  void operand(fb::CommandT &command, uint32_t buffer, int64_t offset,
               std::vector<int64_t> sizes, std::vector<int64_t> strides);
  void attr(fb::CommandT &command, const std::string &name,
            std::vector<int64_t> ints);
  fb::CommandT &launch(const std::string &kernel,
                       const std::vector<uint32_t> &buffers);
  fb::CommandT &collective(fb::Op op, uint32_t source, uint32_t target,
                           int64_t elements, int64_t chunk,
                           bool average = false);

  /// Streams beside compute, and events.
  void streams(uint32_t further, uint32_t events);

  std::string bytes() const;

  fb::ProgramT program;

private:
  size_t arena = 0;
};

/// Puts a command on a stream, behind and before events.
void place(fb::CommandT &command, uint32_t stream, std::vector<uint32_t> wait,
           int32_t signal = -1);

/// A session of a program; the test fails if it cannot be made.
struct Running {
  explicit Running(const std::string &bytes,
                   const zrt_session_options &options = {});
  explicit Running(const PlanBuilder &plan,
                   const zrt_session_options &options = {})
      : Running(plan.bytes(), options) {}

  template <typename T>
  void set(const std::string &input, int rank, const std::vector<T> &data) {
    Status failed = session.setInput(uint32_t(program.findInput(input)), rank,
                                     data.data(), data.size() * sizeof(T));
    ASSERT_FALSE(failed) << failed.message();
  }
  void step() {
    Status failed = session.step();
    ASSERT_FALSE(failed) << failed.message();
  }
  /// An output of one rank, by its index.
  template <typename T = float>
  std::vector<T> get(uint32_t output, uint32_t rank = 0) {
    std::vector<T> data(program.output(output).bytes / sizeof(T));
    Status failed = session.readOutputOfRank(output, rank, data.data(),
                                             data.size() * sizeof(T));
    EXPECT_FALSE(failed) << failed.message();
    return data;
  }

  Program program;
  Session session;
};

/// The message that loading gives, or "" if the program is accepted.
std::string loadError(const std::string &bytes);
std::string loadError(const PlanBuilder &plan);
/// The same for making a session of a program that loads.
std::string sessionError(const PlanBuilder &plan,
                         const zrt_session_options &options = {});

/// Numbers in [-1, 1) that look random and are the same in every run.
std::vector<float> numbers(uint64_t seed, size_t count);

} // namespace zrt::test

#endif // ZERO_TEST_UNIT_RUNTIME_PLANBUILDER_H
