//===- CApi.cpp - The C interface -----------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns exceptions into statuses and the runtime's tables into C structs;
// nothing else.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/SamePrograms.h"
#include "runtime/core/BackendLibrary.h"
#include "runtime/core/Error.h"
#include "runtime/core/LastError.h"
#include "runtime/core/ProgramMemory.h"
#include "runtime/host/Session.h"
#include "runtime/host/Transfers.h"
#include "runtime/io/Files.h"
#include "zero-rt/zero-rt.h"

#include <algorithm>
#include <new>

using namespace zrt;

struct zrt_program {
  std::shared_ptr<const Program> program;
};

struct zrt_session {
  std::unique_ptr<Backend> backend;
};

// The C enumerations repeat the numbers of the file format.
static_assert(int(ZRT_DISK) == fb::Space_Disk &&
              int(ZRT_F8E5M2FNUZ) == fb::DType_F8E5M2FNUZ &&
              int(ZRT_KIND_PERSISTENT) == fb::Kind_Persistent &&
              int(ZRT_ACCUMULATOR) == fb::ParamRole_Accumulator &&
              int(ZRT_INIT_VALUE) == fb::Init_Value &&
              int(ZRT_INPUT_STEP) == fb::InputRole_Step &&
              int(ZRT_INPUT_FIRST_SAMPLE) == fb::InputRole_FirstSample &&
              int(ZRT_SUM) == fb::AcrossRanks_Sum);

static thread_local std::string lastError;

void zrt::setLastError(const std::string &text) { lastError = text; }

/// What executes a program for its target.
static std::unique_ptr<Backend>
makeBackend(const std::shared_ptr<const Program> &program,
            const zrt_session_options &options) {
  if (options.group)
    checkSamePrograms(*options.group->processes, *program);
  if (isForDevice(*program))
    return makeDeviceBackend(program, options);
  return std::make_unique<host::Session>(program, options);
}

/// Runs `body`; an exception becomes a status and the thread's last error.
template <typename Body>
static zrt_status guarded(Body body) noexcept {
  try {
    body();
    return ZRT_OK;
  } catch (const Error &error) {
    lastError = error.what();
    return error.code();
  } catch (const IoError &error) {
    lastError = error.what();
    return ZRT_ERROR_IO;
  } catch (const std::bad_alloc &) {
    lastError = "out of memory";
    return ZRT_ERROR_MEMORY;
  } catch (const dnnl::error &error) {
    lastError = std::string("oneDNN: ") + error.message;
    return ZRT_ERROR_EXECUTION;
  } catch (const std::exception &error) {
    lastError = error.what();
    return ZRT_ERROR_EXECUTION;
  } catch (...) {
    lastError = "unknown exception";
    return ZRT_ERROR_EXECUTION;
  }
}

static void require(const void *pointer, const char *what) {
  if (!pointer)
    fail(ZRT_ERROR_ARGUMENT, what, " is NULL");
}

/// Memory of no bytes may be anywhere.
static void requireBytes(const void *pointer, size_t bytes, const char *what) {
  if (bytes != 0)
    require(pointer, what);
}

template <typename T>
static const T &entry(const zrt_program *program,
                      std::vector<T> Program::*table, uint32_t index,
                      const void *info, const char *what) {
  require(program, "the program");
  require(info, "the result");
  const std::vector<T> &entries = *program->program.*table;
  if (index >= entries.size())
    fail(ZRT_ERROR_ARGUMENT, what, " ", index,
         " does not exist: the program has ", entries.size());
  return entries[index];
}

static double plannedMs(double seconds) {
  return seconds < 0 ? -1 : seconds * 1e3;
}

/// Parts of sharded state: of what says so, or the grid's.
static uint32_t shardsOf(const Program &program) {
  uint32_t shards = program.grid.shards();
  for (const Buffer &buffer : program.buffers)
    shards = std::max(shards, buffer.shards);
  for (const Parameter &parameter : program.parameters)
    shards = std::max(shards, parameter.shards);
  return shards;
}

template <typename T>
static int64_t find(const zrt_program *program, std::vector<T> Program::*table,
                    const char *name) {
  if (!program || !name)
    return -1;
  const std::vector<T> &entries = *program->program.*table;
  for (size_t index = 0; index < entries.size(); ++index)
    if (entries[index].name == name)
      return int64_t(index);
  return -1;
}

const char *zrt_last_error(void) { return lastError.c_str(); }

zrt_status zrt_program_load_file(const char *path, zrt_program **program) {
  return guarded([&] {
    require(program, "the result");
    *program = nullptr;
    require(path, "the path");
    *program = new zrt_program{Program::fromFile(path)};
  });
}

zrt_status zrt_program_load_bytes(const void *data, size_t bytes,
                                  zrt_program **program) {
  return guarded([&] {
    require(program, "the result");
    *program = nullptr;
    require(data, "the data");
    *program = new zrt_program{Program::fromBytes(
        std::string(static_cast<const char *>(data), bytes))};
  });
}

void zrt_program_destroy(zrt_program *program) { delete program; }

zrt_status zrt_program_get_info(const zrt_program *program,
                                zrt_program_info *info) {
  return guarded([&] {
    require(program, "the program");
    require(info, "the result");
    const Program &from = *program->program;
    *info = {from.name.c_str(),
             from.optimizer.c_str(),
             from.target.c_str(),
             from.ranks,
             from.stage,
             uint32_t(from.parameters.size()),
             uint32_t(from.inputs.size()),
             uint32_t(from.outputs.size()),
             uint32_t(from.arenas.size()),
             uint32_t(from.commands.size()),
             from.samplesPerRank,
             from.flopsPerRank,
             from.windowBytes,
             from.numStreams,
             from.grid.sizes().data(),
             from.grid.axes(),
             shardsOf(from),
             plannedMs(from.plannedSeconds),
             from.budgetBytes,
             from.lowerBound,
             from.microBatches};
  });
}

zrt_status zrt_program_get_parameter(const zrt_program *program, uint32_t index,
                                     zrt_parameter_info *info) {
  return guarded([&] {
    const Parameter &from =
        entry(program, &Program::parameters, index, info, "parameter");
    const Program &of = *program->program;
    *info = {from.name.c_str(),
             zrt_parameter_role(from.role),
             zrt_dtype(from.dtype),
             from.shape.data(),
             uint32_t(from.shape.size()),
             from.bytes,
             from.sharded,
             from.chunkRows,
             zrt_init(from.init),
             from.initFile.c_str(),
             from.initTensor.c_str(),
             from.of.c_str(),
             from.tiedNames.data(),
             uint32_t(from.tied.size()),
             from.gathers,
             from.sharded ? from.shards : 1,
             zrt_space(of.arenas[of.buffers[from.buffer].arena].space)};
  });
}

zrt_status zrt_program_get_input(const zrt_program *program, uint32_t index,
                                 zrt_input_info *info) {
  return guarded([&] {
    const Input &from = entry(program, &Program::inputs, index, info, "input");
    *info = {from.name.c_str(),
             zrt_input_role(from.role),
             zrt_dtype(from.dtype),
             from.shape.data(),
             uint32_t(from.shape.size()),
             from.bytes,
             from.hasRange,
             from.min,
             from.max,
             from.hasIgnore,
             from.ignore};
  });
}

zrt_status zrt_program_get_output(const zrt_program *program, uint32_t index,
                                  zrt_output_info *info) {
  return guarded([&] {
    const Output &from =
        entry(program, &Program::outputs, index, info, "output");
    const Buffer &buffer = program->program->buffers[from.buffer];
    *info = {from.name.c_str(),
             zrt_dtype(buffer.dtype),
             buffer.shape.data(),
             uint32_t(buffer.shape.size()),
             from.elements,
             from.elements * elementBytes(buffer.dtype),
             zrt_across_ranks(from.across)};
  });
}

zrt_status zrt_program_get_arena(const zrt_program *program, uint32_t index,
                                 zrt_arena_info *info) {
  return guarded([&] {
    const Arena &from = entry(program, &Program::arenas, index, info, "arena");
    *info = {zrt_space(from.space), from.bytes, from.alignment, from.lowerBound,
             from.budgetBytes};
  });
}

zrt_status zrt_program_get_command(const zrt_program *program, uint32_t index,
                                   zrt_command_info *info) {
  return guarded([&] {
    const Command &from =
        entry(program, &Program::commands, index, info, "command");
    const Program &of = *program->program;
    bool sends = from.isCollective();
    std::optional<zrt_transfer> way = host::transferOf(of, from);
    *info = {opName(from.op),
             from.callee.c_str(),
             from.location.c_str(),
             from.label.c_str(),
             from.stream,
             from.wait.data(),
             uint32_t(from.wait.size()),
             from.signal,
             sends ? of.sentBytesTimesRanks(from) : 0,
             plannedMs(from.plannedStart),
             plannedMs(from.plannedSeconds),
             way ? int32_t(*way) : -1,
             way ? host::transferBytes(of, from) : 0,
             from.host};
  });
}

const char *zrt_program_stream_name(const zrt_program *program,
                                    uint32_t stream) {
  if (!program || stream >= program->program->numStreams)
    return nullptr;
  return program->program->streamNames[stream].c_str();
}

zrt_status zrt_program_memory(const zrt_program *program, zrt_memory *memory,
                              size_t count) {
  return zrt_program_memory_of(program, ZRT_DEVICE, memory, count);
}

zrt_status zrt_program_memory_of(const zrt_program *program, zrt_space space,
                                 zrt_memory *memory, size_t count) {
  return guarded([&] {
    require(program, "the program");
    require(memory, "the result");
    std::vector<KindBytes> alive =
        memoryByCommand(*program->program, fb::Space(space));
    if (count != alive.size())
      fail(ZRT_ERROR_ARGUMENT, "room for ", count,
           " commands; the program has ", alive.size());
    for (size_t index = 0; index < count; ++index)
      std::copy(alive[index].begin(), alive[index].end(), memory[index].bytes);
  });
}

int64_t zrt_program_find_parameter(const zrt_program *program,
                                   const char *name) {
  int64_t found = find(program, &Program::parameters, name);
  if (found >= 0 || !program || !name)
    return found;
  const std::vector<Parameter> &parameters = program->program->parameters;
  for (size_t index = 0; index < parameters.size(); ++index) {
    const std::vector<std::string> &tied = parameters[index].tied;
    if (std::find(tied.begin(), tied.end(), name) != tied.end())
      return int64_t(index);
  }
  return -1;
}

int64_t zrt_program_find_input(const zrt_program *program, const char *name) {
  return find(program, &Program::inputs, name);
}

int64_t zrt_program_find_output(const zrt_program *program, const char *name) {
  return find(program, &Program::outputs, name);
}

uint64_t zrt_program_planned_bytes(const zrt_program *program,
                                   zrt_space space) {
  return program ? program->program->plannedBytes(fb::Space(space)) : 0;
}

uint64_t zrt_program_kind_bytes(const zrt_program *program, zrt_kind kind,
                                uint64_t *paddingTimesRanks) {
  uint64_t ignored;
  uint64_t &out = paddingTimesRanks ? *paddingTimesRanks : ignored;
  out = 0;
  return program ? program->program->kindBytes(fb::Kind(kind), out) : 0;
}

zrt_status zrt_session_create(const zrt_program *program,
                              const zrt_session_options *options,
                              zrt_session **session) {
  return guarded([&] {
    require(session, "the result");
    *session = nullptr;
    require(program, "the program");
    zrt_session_options defaults = {};
    auto made = std::make_unique<zrt_session>();
    made->backend =
        makeBackend(program->program, options ? *options : defaults);
    *session = made.release();
  });
}

void zrt_session_destroy(zrt_session *session) { delete session; }

zrt_status zrt_session_set_parameter(zrt_session *session, uint32_t index,
                                     const void *data, size_t bytes) {
  return guarded([&] {
    require(session, "the session");
    requireBytes(data, bytes, "the data");
    session->backend->setParameter(index, data, bytes);
  });
}

zrt_status zrt_session_get_parameter(const zrt_session *session, uint32_t index,
                                     void *data, size_t bytes) {
  return guarded([&] {
    require(session, "the session");
    requireBytes(data, bytes, "the result");
    session->backend->getParameter(index, data, bytes);
  });
}

zrt_status zrt_session_read_chunk(const zrt_session *session, uint32_t index,
                                  uint32_t rank, uint64_t offset, void *data,
                                  size_t bytes) {
  return guarded([&] {
    require(session, "the session");
    requireBytes(data, bytes, "the result");
    session->backend->readChunk(index, rank, offset, data, bytes);
  });
}

zrt_status zrt_session_read_local_chunk(const zrt_session *session,
                                        uint32_t index, uint32_t rank,
                                        uint64_t offset, void *data,
                                        size_t bytes) {
  return guarded([&] {
    require(session, "the session");
    requireBytes(data, bytes, "the result");
    session->backend->readLocalChunk(index, rank, offset, data, bytes);
  });
}

zrt_status zrt_session_write_chunk(zrt_session *session, uint32_t index,
                                   uint32_t rank, uint64_t offset,
                                   const void *data, size_t bytes) {
  return guarded([&] {
    require(session, "the session");
    requireBytes(data, bytes, "the data");
    session->backend->writeChunk(index, rank, offset, data, bytes);
  });
}

zrt_status zrt_session_set_input(zrt_session *session, uint32_t index, int rank,
                                 const void *data, size_t bytes) {
  return guarded([&] {
    require(session, "the session");
    requireBytes(data, bytes, "the data");
    session->backend->setInput(index, rank, data, bytes);
  });
}

zrt_status zrt_session_accumulate(zrt_session *session) {
  return guarded([&] {
    require(session, "the session");
    session->backend->accumulate();
  });
}

const char *zrt_session_disk_access(const zrt_session *session) {
  return session ? session->backend->diskAccess().c_str() : "";
}

zrt_status zrt_session_step(zrt_session *session) {
  return guarded([&] {
    require(session, "the session");
    session->backend->step();
  });
}

zrt_status zrt_session_read_output(const zrt_session *session, uint32_t index,
                                   double *values, size_t count) {
  return guarded([&] {
    require(session, "the session");
    require(values, "the result");
    session->backend->readOutput(index, values, count);
  });
}

zrt_status zrt_session_read_output_of_rank(const zrt_session *session,
                                           uint32_t index, uint32_t rank,
                                           void *data, size_t bytes) {
  return guarded([&] {
    require(session, "the session");
    requireBytes(data, bytes, "the result");
    session->backend->readOutputOfRank(index, rank, data, bytes);
  });
}

zrt_status zrt_session_get_counters(const zrt_session *session,
                                    zrt_counters *counters) {
  return guarded([&] {
    require(session, "the session");
    require(counters, "the result");
    *counters = session->backend->counters();
  });
}

zrt_status zrt_session_reset_counters(zrt_session *session) {
  return guarded([&] {
    require(session, "the session");
    session->backend->resetCounters();
  });
}

zrt_status zrt_session_command_ms(const zrt_session *session, uint32_t rank,
                                  double *ms, size_t count) {
  return guarded([&] {
    require(session, "the session");
    require(ms, "the result");
    session->backend->commandMs(rank, ms, count);
  });
}

zrt_status zrt_session_spans(const zrt_session *session, uint32_t rank,
                             zrt_span *spans, size_t count) {
  return guarded([&] {
    require(session, "the session");
    require(spans, "the result");
    session->backend->spans(rank, spans, count);
  });
}

zrt_status zrt_get_devices(zrt_device_info *devices, uint32_t room,
                           uint32_t *count) {
  return guarded([&] {
    require(count, "the result");
    if (room)
      require(devices, "the room for devices");
    *count = getDevices(devices, room);
  });
}
