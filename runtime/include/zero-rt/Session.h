//===- Session.h - C++ face of the runtime's C interface ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Owning handles over zero-rt.h. Nothing throws: a call that can fail returns
// a Status, which is true when it failed.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_SESSION_H
#define ZERO_RT_SESSION_H

#include "zero-rt/zero-rt.h"

#include <memory>
#include <string>
#include <vector>

// Inside the library zrt::Program is another class: these have other symbols.
namespace zrt {
inline namespace api {

/// Success, or an error with its one-line text.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(zrt_status code)
      : statusCode(code), text(code == ZRT_OK ? "" : zrt_last_error()) {}

  /// True on failure: `if (Status failed = ...) report(failed.message());`
  explicit operator bool() const { return statusCode != ZRT_OK; }
  zrt_status code() const { return statusCode; }
  const std::string &message() const { return text; }

private:
  zrt_status statusCode = ZRT_OK;
  std::string text;
};

/// A loaded program; see zero-rt.h for the tables.
class Program {
public:
  Status loadFile(const std::string &path) {
    zrt_program *loaded = nullptr;
    zrt_status code = zrt_program_load_file(path.c_str(), &loaded);
    handle.reset(loaded);
    return code;
  }
  Status loadBytes(const void *data, size_t bytes) {
    zrt_program *loaded = nullptr;
    zrt_status code = zrt_program_load_bytes(data, bytes, &loaded);
    handle.reset(loaded);
    return code;
  }

  zrt_program_info info() const {
    zrt_program_info result = {};
    zrt_program_get_info(get(), &result);
    return result;
  }
  zrt_parameter_info parameter(uint32_t index) const {
    zrt_parameter_info result = {};
    zrt_program_get_parameter(get(), index, &result);
    return result;
  }
  zrt_input_info input(uint32_t index) const {
    zrt_input_info result = {};
    zrt_program_get_input(get(), index, &result);
    return result;
  }
  zrt_output_info output(uint32_t index) const {
    zrt_output_info result = {};
    zrt_program_get_output(get(), index, &result);
    return result;
  }
  zrt_command_info command(uint32_t index) const {
    zrt_command_info result = {};
    zrt_program_get_command(get(), index, &result);
    return result;
  }
  /// "compute", "all_gather", ... of a stream below info().num_streams.
  std::string streamName(uint32_t stream) const {
    const char *name = zrt_program_stream_name(get(), stream);
    return name ? name : "";
  }
  /// Device memory of one rank at each command; see zrt_program_memory.
  Status memory(std::vector<zrt_memory> &memory) const {
    memory.resize(info().num_commands);
    return zrt_program_memory(get(), memory.data(), memory.size());
  }
  /// The same in another space.
  Status memoryOf(zrt_space space, std::vector<zrt_memory> &memory) const {
    memory.resize(info().num_commands);
    return zrt_program_memory_of(get(), space, memory.data(), memory.size());
  }
  int64_t findParameter(const std::string &name) const {
    return zrt_program_find_parameter(get(), name.c_str());
  }
  int64_t findInput(const std::string &name) const {
    return zrt_program_find_input(get(), name.c_str());
  }
  int64_t findOutput(const std::string &name) const {
    return zrt_program_find_output(get(), name.c_str());
  }

  const zrt_program *get() const { return handle.get(); }

private:
  struct Destroy {
    void operator()(zrt_program *program) const {
      zrt_program_destroy(program);
    }
  };
  std::unique_ptr<zrt_program, Destroy> handle;
};

/// N ranks that run a program.
class Session {
public:
  Status create(const Program &program,
                const zrt_session_options *options = nullptr) {
    zrt_session *created = nullptr;
    zrt_status code = zrt_session_create(program.get(), options, &created);
    handle.reset(created);
    commands = program.info().num_commands;
    return code;
  }

  Status setParameter(uint32_t index, const void *data, size_t bytes) {
    return zrt_session_set_parameter(get(), index, data, bytes);
  }
  Status getParameter(uint32_t index, void *data, size_t bytes) const {
    return zrt_session_get_parameter(get(), index, data, bytes);
  }
  Status readChunk(uint32_t index, uint32_t rank, uint64_t offset, void *data,
                   size_t bytes) const {
    return zrt_session_read_chunk(get(), index, rank, offset, data, bytes);
  }
  Status readLocalChunk(uint32_t index, uint32_t rank, uint64_t offset,
                        void *data, size_t bytes) const {
    return zrt_session_read_local_chunk(get(), index, rank, offset, data,
                                        bytes);
  }
  Status writeChunk(uint32_t index, uint32_t rank, uint64_t offset,
                    const void *data, size_t bytes) {
    return zrt_session_write_chunk(get(), index, rank, offset, data, bytes);
  }
  Status setInput(uint32_t index, int rank, const void *data, size_t bytes) {
    return zrt_session_set_input(get(), index, rank, data, bytes);
  }
  Status accumulate() { return zrt_session_accumulate(get()); }
  Status step() { return zrt_session_step(get()); }
  Status readOutput(uint32_t index, double *values, size_t count) const {
    return zrt_session_read_output(get(), index, values, count);
  }
  Status readOutputOfRank(uint32_t index, uint32_t rank, void *data,
                          size_t bytes) const {
    return zrt_session_read_output_of_rank(get(), index, rank, data, bytes);
  }
  zrt_counters counters() const {
    zrt_counters result = {};
    zrt_session_get_counters(get(), &result);
    return result;
  }
  /// How the disk is reached; "" where the program keeps nothing there.
  std::string diskAccess() const { return zrt_session_disk_access(get()); }

  /// When each command ran in the last step on a rank; see zrt_session_spans.
  Status spans(uint32_t rank, std::vector<zrt_span> &spans) const {
    spans.resize(commands);
    return zrt_session_spans(get(), rank, spans.data(), spans.size());
  }
  void resetCounters() { zrt_session_reset_counters(get()); }

  zrt_session *get() const { return handle.get(); }

private:
  struct Destroy {
    void operator()(zrt_session *session) const {
      zrt_session_destroy(session);
    }
  };
  std::unique_ptr<zrt_session, Destroy> handle;
  uint32_t commands = 0;
};

} // namespace api
} // namespace zrt

#endif // ZERO_RT_SESSION_H
