//===- zero-rt.h - C interface of the zero-opt runtime --------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime loads a program (a .zplan file), checks it, and executes its
// steps on N ranks. On the host a rank is a thread of this process for compute
// and one more for each further stream of the program, so that collectives run
// beside compute.
//
//   zrt_program *program;
//   zrt_session *session;
//   if (zrt_program_load_file("step.zplan", &program) != ZRT_OK)
//     fputs(zrt_last_error(), stderr);
//   zrt_session_create(program, NULL, &session);
//   zrt_session_set_parameter(session, 0, weights, weights_bytes);
//   zrt_session_set_input(session, 0, ZRT_ALL_RANKS, x, x_bytes);
//   zrt_session_step(session);
//   zrt_session_read_output(session, 0, &loss, 1);
//
// Errors: a function that can fail returns a zrt_status; the text of the last
// error of the calling thread is zrt_last_error(). Nothing aborts and no C++
// exception leaves the library. Sizes are in bytes, shapes in elements,
// times in milliseconds. Tensors cross this interface contiguous and
// row-major, in the element type that the program states.
//
// A program holds machine code: load only files whose origin you trust as you
// would an executable's. The check of a program catches every inconsistent
// table, but cannot see inside its kernels.
//
// Threads: a program may be used by many threads; a session by one at a time.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_ZERO_RT_H
#define ZERO_RT_ZERO_RT_H

#include <stddef.h>
#include <stdint.h>

// The names and the declarations are C's.
// NOLINTBEGIN(readability-identifier-naming, modernize-use-using)

#ifdef __cplusplus
extern "C" {
#endif

/// What went wrong, coarsely; zrt_last_error() says it in words.
typedef enum zrt_status {
  ZRT_OK = 0,
  ZRT_ERROR_IO = 1,        ///< a file or folder cannot be used
  ZRT_ERROR_FORMAT = 2,    ///< the program is damaged or inconsistent
  ZRT_ERROR_TARGET = 3,    ///< compiled for another machine
  ZRT_ERROR_ARGUMENT = 4,  ///< wrong index, size or value from the caller
  ZRT_ERROR_MEMORY = 5,    ///< the arenas do not fit
  ZRT_ERROR_EXECUTION = 6, ///< a rank failed during a step
  /// Another process of the group has failed or is lost; it has said why, or
  /// process 0 has.
  ZRT_ERROR_PEER = 7
} zrt_status;

/// Memory spaces, in the numbering of the program file.
typedef enum zrt_space { ZRT_DEVICE = 0, ZRT_HOST = 1, ZRT_DISK = 2 } zrt_space;
#define ZRT_NUM_SPACES 3

typedef enum zrt_dtype {
  ZRT_F32 = 0,
  ZRT_F64 = 1,
  ZRT_F16 = 2,
  ZRT_BF16 = 3,
  ZRT_I64 = 4,
  ZRT_I32 = 5,
  ZRT_I16 = 6,
  ZRT_I8 = 7,
  ZRT_U8 = 8,
  ZRT_BOOL = 9,
  ZRT_U16 = 10,
  ZRT_U32 = 11,
  ZRT_U64 = 12,
  ZRT_F8E4M3 = 13,
  ZRT_F8E5M2 = 14,
  ZRT_F8E8M0 = 15,
  ZRT_F8E4M3FNUZ = 16,
  ZRT_F8E5M2FNUZ = 17
} zrt_dtype;

/// What a buffer holds.
typedef enum zrt_kind {
  ZRT_KIND_PARAMETER = 0,
  ZRT_KIND_OPTIMIZER_STATE = 1,
  ZRT_KIND_GRADIENT = 2,
  ZRT_KIND_GATHERED = 3,
  ZRT_KIND_ACTIVATION = 4,
  ZRT_KIND_INPUT = 5,
  ZRT_KIND_CONSTANT = 6,
  ZRT_KIND_PERSISTENT = 7
} zrt_kind;
#define ZRT_NUM_KINDS 8

typedef enum zrt_parameter_role {
  ZRT_TRAINED = 0,
  ZRT_FROZEN = 1,
  ZRT_STATE = 2,  ///< of the parameter `of`, or of the step itself
  ZRT_BUFFER = 3, ///< not trained, updated by the step, one per rank
  /// A sum over the micro-batches of a step: zero between steps, so it is not
  /// saved. With `of` that of its gradients; without, each rank's own.
  ZRT_ACCUMULATOR = 4
} zrt_parameter_role;

typedef enum zrt_init {
  ZRT_INIT_FILE = 0, ///< the caller sets it before the first step
  ZRT_INIT_ZEROS = 1,
  ZRT_INIT_ONES = 2,
  ZRT_INIT_VALUE = 3 ///< stands in the program
} zrt_init;

typedef enum zrt_input_role {
  ZRT_INPUT_DATA = 0,
  ZRT_INPUT_LEARNING_RATE = 1,
  ZRT_INPUT_STEP = 2,
  ZRT_INPUT_SEED = 3,
  /// Of the rank's micro-batch: the number in the whole run, before the data
  /// cycles, of its first sample.
  ZRT_INPUT_FIRST_SAMPLE = 4
} zrt_input_role;

typedef enum zrt_across_ranks {
  ZRT_SAME = 0, ///< equal on all ranks; rank 0's is read
  ZRT_MEAN = 1,
  ZRT_SUM = 2
} zrt_across_ranks;

typedef enum zrt_collective {
  ZRT_ALL_GATHER = 0,
  ZRT_REDUCE_SCATTER = 1,
  ZRT_ALL_REDUCE = 2
} zrt_collective;
#define ZRT_NUM_COLLECTIVES 3

/// Ways between memory spaces.
typedef enum zrt_transfer {
  ZRT_TO_HOST = 0,   ///< device to host
  ZRT_TO_DEVICE = 1, ///< host to device
  ZRT_DISK_WRITE = 2,
  ZRT_DISK_READ = 3
} zrt_transfer;
#define ZRT_NUM_TRANSFERS 4

typedef struct zrt_program zrt_program;
typedef struct zrt_group zrt_group;
typedef struct zrt_session zrt_session;

/// Text of the last error in the calling thread: one line, names the file,
/// table entry or rank at fault. Valid until the thread's next call.
const char *zrt_last_error(void);

//===----------------------------------------------------------------------===//
// Programs: what is in the file. All strings and arrays that the tables point
// to belong to the program and live as long as it.
//===----------------------------------------------------------------------===//

/// Reads and checks a program. On success *program is to be given to
/// zrt_program_destroy; on failure it is NULL.
zrt_status zrt_program_load_file(const char *path, zrt_program **program);
/// The same from memory; the bytes are copied.
zrt_status zrt_program_load_bytes(const void *data, size_t bytes,
                                  zrt_program **program);
/// Accepts NULL. Sessions of the program stay valid.
void zrt_program_destroy(zrt_program *program);

typedef struct zrt_program_info {
  const char *name;
  const char *optimizer;
  const char *target; ///< for instance "host:znver4"
  uint32_t ranks;
  uint32_t stage; ///< ZeRO stage 0..3
  uint32_t num_parameters;
  uint32_t num_inputs;
  uint32_t num_outputs;
  uint32_t num_arenas;
  uint32_t num_commands;
  int64_t samples_per_rank;
  double flops_per_rank; ///< of matrix products and convolutions, one step
  uint64_t window_bytes; ///< most gathered parameters alive at once
  uint32_t num_streams;  ///< stream 0 is compute
  /// Shape of the grid, row-major; `num_axes` entries. State is sharded over
  /// the last axis and replicated over the others, or sharded over all.
  const uint32_t *grid;
  uint32_t num_axes;
  uint32_t shards; ///< parts of sharded state; rank r holds part r % shards
  double planned_step_ms;     ///< as simulated; -1 if not
  int64_t budget_bytes;       ///< device memory it was planned for; -1: any
  uint64_t lower_bound_bytes; ///< most bytes alive at once in the device arena
  uint32_t micro_batches;     ///< of a step; see zrt_session_accumulate
} zrt_program_info;

typedef struct zrt_parameter_info {
  const char *name;
  zrt_parameter_role role;
  zrt_dtype dtype;
  const int64_t *shape; ///< logical, over all ranks; `rank` entries
  uint32_t rank;
  uint64_t bytes; ///< of the logical tensor
  int sharded;    ///< 1: each rank holds `chunk_rows` rows of dim 0
  int64_t chunk_rows;
  zrt_init init;
  const char *init_file;   ///< relative to the program's folder, or ""
  const char *init_tensor; ///< name in that file; "" means `name`
  const char *of;          ///< roles STATE, ACCUMULATOR: its parameter, or ""
  const char *const *tied; ///< further names of the same tensor
  uint32_t num_tied;
  uint32_t gathers; ///< how often a step gathers it
  /// If sharded: rank r holds part s = r % shards, rows [s * chunk_rows,
  /// (s + 1) * chunk_rows) as far as the tensor has them; else 1.
  uint32_t shards;
  zrt_space space; ///< where a rank's part lies
} zrt_parameter_info;

typedef struct zrt_input_info {
  const char *name;
  zrt_input_role role;
  zrt_dtype dtype;
  const int64_t *shape; ///< of one rank
  uint32_t rank;
  uint64_t bytes; ///< of one rank
  int has_range;  ///< 1: integers must be in [min, max] or `ignore`
  int64_t min, max;
  int has_ignore;
  int64_t ignore;
} zrt_input_info;

typedef struct zrt_output_info {
  const char *name;
  zrt_dtype dtype;
  const int64_t *shape; ///< of one rank
  uint32_t rank;
  uint64_t elements; ///< of one rank
  uint64_t bytes;    ///< of one rank
  zrt_across_ranks across;
} zrt_output_info;

typedef struct zrt_arena_info {
  zrt_space space;
  uint64_t bytes; ///< of one rank
  uint32_t alignment;
  uint64_t lower_bound_bytes; ///< most bytes alive at once; 0: not known
  int64_t budget_bytes;       ///< what it was planned for; -1: any
} zrt_arena_info;

typedef struct zrt_command_info {
  const char *op;       ///< "launch", "call", "all_gather", ...
  const char *callee;   ///< kernel or library function, or ""
  const char *location; ///< place in the model, or ""
  const char *label;    ///< for people: with the parameter or layer; or ""
  uint32_t stream;      ///< 0 is compute
  const uint32_t *wait; ///< events; `num_wait` entries
  uint32_t num_wait;
  int32_t signal; ///< event, or -1
  /// Of a collective: as in zrt_counters, for one execution.
  uint64_t comm_bytes_times_ranks;
  double planned_start_ms; ///< from the start of the step; -1: not simulated
  double planned_ms;       ///< how long it takes; -1: not simulated
  int32_t transfer;        ///< zrt_transfer of a copy between spaces, or -1
  /// Of a transfer: as in zrt_counters, for one execution.
  uint64_t transfer_bytes_all_ranks;
  int host; ///< 1: a launch on the host's processor, in host memory
} zrt_command_info;

zrt_status zrt_program_get_info(const zrt_program *program,
                                zrt_program_info *info);
zrt_status zrt_program_get_parameter(const zrt_program *program, uint32_t index,
                                     zrt_parameter_info *info);
zrt_status zrt_program_get_input(const zrt_program *program, uint32_t index,
                                 zrt_input_info *info);
zrt_status zrt_program_get_output(const zrt_program *program, uint32_t index,
                                  zrt_output_info *info);
zrt_status zrt_program_get_arena(const zrt_program *program, uint32_t index,
                                 zrt_arena_info *info);
zrt_status zrt_program_get_command(const zrt_program *program, uint32_t index,
                                   zrt_command_info *info);

/// Name of a stream: "compute", "all_gather", ...; NULL beyond num_streams.
const char *zrt_program_stream_name(const zrt_program *program,
                                    uint32_t stream);

/// Index of a name, or -1. Parameters are also found by their tied names.
int64_t zrt_program_find_parameter(const zrt_program *program,
                                   const char *name);
int64_t zrt_program_find_input(const zrt_program *program, const char *name);
int64_t zrt_program_find_output(const zrt_program *program, const char *name);

/// Bytes of one rank's arenas in a space: what the compiler planned as peak.
uint64_t zrt_program_planned_bytes(const zrt_program *program, zrt_space space);
/// Bytes of one rank that buffers of a kind occupy; storage shared by two of
/// them counts once. *padding_times_ranks (may be NULL) are those that hold no
/// element of the model, summed over all ranks (the last shards are shorter, so
/// ranks differ): a rank holds on average `bytes - padding_times_ranks / ranks`
/// bytes of the model.
uint64_t zrt_program_kind_bytes(const zrt_program *program, zrt_kind kind,
                                uint64_t *padding_times_ranks);

/// Bytes by zrt_kind.
typedef struct zrt_memory {
  uint64_t bytes[ZRT_NUM_KINDS];
} zrt_memory;

/// Device memory of one rank that is alive at each command, by the order of the
/// commands; storage shared by two buffers counts once. `count` must be the
/// program's num_commands.
zrt_status zrt_program_memory(const zrt_program *program, zrt_memory *memory,
                              size_t count);
/// The same in another space.
zrt_status zrt_program_memory_of(const zrt_program *program, zrt_space space,
                                 zrt_memory *memory, size_t count);

//===----------------------------------------------------------------------===//
// Accelerators
//===----------------------------------------------------------------------===//

typedef struct zrt_device_info {
  char name[256];
  char target[32]; ///< for --target, as in "cuda:sm_90"
  uint64_t memory_bytes, free_bytes;
} zrt_device_info;

/// The accelerators of this machine that programs for CUDA can use: the first
/// `room` of them into `devices`, how many there are into *count. An error with
/// the reason where the backend, a driver or a device is missing.
zrt_status zrt_get_devices(zrt_device_info *devices, uint32_t room,
                           uint32_t *count);

//===----------------------------------------------------------------------===//
// Groups: processes that run a program together, one rank each. Without one all
// ranks of a session are in this process.
//
// Functions marked "collective" must be called by all processes in the same
// order. Once a process has failed they return ZRT_ERROR_PEER in the others.
//===----------------------------------------------------------------------===//

typedef struct zrt_group_options {
  uint32_t rank, size;
  /// Among the processes of this machine; size 0: not known.
  uint32_t local_rank, local_size;
  /// Host name or address of process 0 and the TCP port that it listens on.
  const char *address;
  uint16_t port;
  /// Process 0: a socket that listens on that port already, which the group
  /// then closes; 0: it makes one.
  int listener;
  /// How data of collectives on the host travels: "shm" (shared memory of one
  /// machine), "mpi", or "auto" (NULL too): shm on one machine, else mpi.
  const char *transport;
  /// Seconds to wait for the others to come; 0: 60.
  double connect_timeout_s;
  /// A collective fails that takes longer than `timeout_factor` times what the
  /// plan says, and at least `timeout_min_s`; 0: 100 and 30 s. A process that
  /// is lost is noticed at once, whatever these say.
  double timeout_factor, timeout_min_s;
} zrt_group_options;

/// Collective: returns when all processes are there.
zrt_status zrt_group_create(const zrt_group_options *options,
                            zrt_group **group);
/// Leaves the group: to be called by a process that has succeeded, after its
/// sessions are destroyed. Accepts NULL.
void zrt_group_destroy(zrt_group *group);
/// Collective: `bytes` bytes of each process, by rank, into `all`.
zrt_status zrt_group_all_gather(zrt_group *group, const void *data,
                                size_t bytes, void *all);
/// Collective: the bytes of process 0. *data is the group's, until the next
/// call; other processes give NULL and 0.
zrt_status zrt_group_broadcast(zrt_group *group, const void **data,
                               size_t *bytes);
/// Collective.
zrt_status zrt_group_barrier(zrt_group *group);
/// Tells all processes that this one fails with `message`; the first to say so
/// wins, and process 0 (its successor, if it is lost) is the one to print it.
zrt_status zrt_group_report_failure(zrt_group *group, const char *message);
/// Why the run has failed, with the rank: "" if it has not. Until the next
/// call.
const char *zrt_group_failure(zrt_group *group);
/// The rank that has failed first, or -1.
int64_t zrt_group_failed_rank(zrt_group *group);
/// 1: this process is the one to print it. Waits up to 2 s for process 0.
int zrt_group_prints_failure(zrt_group *group);

//===----------------------------------------------------------------------===//
// Sessions: N ranks with their memory.
//
// In a group each process holds the rank of its number. Then creating a session
// is collective (and compares the programs), as are steps, get_parameter,
// read_chunk, read_output and read_output_of_rank: they give the result in
// process 0 at least. What sets values of other ranks does nothing.
//===----------------------------------------------------------------------===//

typedef struct zrt_session_options {
  /// Threads that library calls of one rank use; 0 means 1. More is sensible
  /// only when ranks * threads <= cores.
  uint32_t threads_per_rank;
  /// After each step verify that padding of shards is zero, that replicas are
  /// equal on all ranks, and that SAME outputs are; during it, that nothing
  /// writes what a collective of another stream reads. Also set by ZRT_CHECK=1.
  int check;
  /// Fill released and not yet written memory with NaN, so that a use of it
  /// shows. Also set by ZRT_POISON=1.
  int poison;
  /// A step fails that writes NaN or infinity to a tensor and does not say of
  /// itself that it is skipped (output "overflow"), with the first one: the
  /// first micro-batch, its first command, the lowest rank. Also set by
  /// ZRT_CHECK_FINITE=1.
  int check_finite;
  /// Folder for the disk arenas: one private file a rank, which has no name and
  /// is gone when the session or the process ends. Room for all of it is taken
  /// when the session begins. NULL: a program with a disk arena is refused.
  const char *offload_path;
  /// Threads that work on launches on the host of one rank; 0 means 1.
  uint32_t host_threads_per_rank;
  /// The processes of the run, or NULL: all ranks are in this one. It outlives
  /// the session.
  zrt_group *group;
  /// CUDA: number of the device of this process's first rank, further ranks are
  /// on the devices after it; -1 (and any in a group): by the local rank. Not
  /// used by the host backend.
  int device;
  /// CUDA: a step is captured once and launched as one graph.
  int graph;
  /// CUDA, without a group: limits of a collective, as those of a group.
  double timeout_factor, timeout_min_s;
} zrt_session_options;

#define ZRT_ALL_RANKS (-1)

/// Allocates the arenas of all ranks, loads the kernels, prepares the library
/// calls and starts the threads: for each rank one for each stream that has
/// commands. They sleep while they wait. Parameters with init ZEROS, ONES or
/// VALUE get their value. `options` may be NULL.
zrt_status zrt_session_create(const zrt_program *program,
                              const zrt_session_options *options,
                              zrt_session **session);
/// How the disk arenas are read and written: "io_uring, O_DIRECT", or another
/// way and why; "" where the program has none. Lives as long as the session.
const char *zrt_session_disk_access(const zrt_session *session);
/// Ends the threads, frees the memory and the disk. Accepts NULL.
void zrt_session_destroy(zrt_session *session);

/// Sets a whole logical tensor; shards are cut and padded with zeros here.
/// `bytes` must be the parameter's `bytes`.
zrt_status zrt_session_set_parameter(zrt_session *session, uint32_t index,
                                     const void *data, size_t bytes);
/// Reads a whole logical tensor, joined from shards. BUFFER parameters of a
/// floating type are averaged over ranks (in f64, rank order).
zrt_status zrt_session_get_parameter(const zrt_session *session, uint32_t index,
                                     void *data, size_t bytes);

/// Reads `bytes` bytes from byte `offset` of what one rank holds of a
/// parameter: its rows without padding, or the whole where it is not sharded.
/// Nothing is joined or averaged, so that state can be streamed.
zrt_status zrt_session_read_chunk(const zrt_session *session, uint32_t index,
                                  uint32_t rank, uint64_t offset, void *data,
                                  size_t bytes);
/// The same for a rank of this process, and not collective: for what each
/// process of a group does by itself.
zrt_status zrt_session_read_local_chunk(const zrt_session *session,
                                        uint32_t index, uint32_t rank,
                                        uint64_t offset, void *data,
                                        size_t bytes);
/// Writes to the same place. The first piece of a parameter counts as its
/// value: the caller writes the others before the next step.
zrt_status zrt_session_write_chunk(zrt_session *session, uint32_t index,
                                   uint32_t rank, uint64_t offset,
                                   const void *data, size_t bytes);

/// Sets the input of one rank, or the same for all with ZRT_ALL_RANKS. Every
/// input has to be set anew before each step, after the outputs of the last
/// one are read. Integers outside the stated range are refused.
zrt_status zrt_session_set_input(zrt_session *session, uint32_t index, int rank,
                                 const void *data, size_t bytes);

/// Runs the commands of one micro-batch on all ranks: gradients are added up,
/// nothing is updated. A step of M micro-batches (`micro_batches` of the
/// program) is M - 1 of these calls, each with new data inputs, and then
/// zrt_session_step with those of the last; any other number is an error, as is
/// a call of this for a program of one micro-batch. Inputs that are no data
/// need not be set.
zrt_status zrt_session_accumulate(zrt_session *session);

/// Runs the program once on all ranks and waits for all its streams. Commands
/// of one stream run in the program's order, each after the events that it
/// waits for; streams run side by side. If a rank fails on any stream, all
/// stop, the first error is reported with rank and place, and the session
/// refuses further steps: its state may be half updated.
zrt_status zrt_session_step(zrt_session *session);

/// The output of the last step combined over ranks as its `across` says, in
/// f64, rank by rank. `count` must be the output's `elements`.
zrt_status zrt_session_read_output(const zrt_session *session, uint32_t index,
                                   double *values, size_t count);
/// One rank's output as it is. `bytes` must be the output's `bytes`.
zrt_status zrt_session_read_output_of_rank(const zrt_session *session,
                                           uint32_t index, uint32_t rank,
                                           void *data, size_t bytes);

/// What happened since the session began or zrt_session_reset_counters.
typedef struct zrt_counters {
  uint64_t steps; ///< of the optimizer: micro-batches are part of them
  /// Bytes that one rank sends in the ring model, times the number of ranks
  /// (which keeps it exact): among all N ranks all_gather and reduce_scatter
  /// (N-1) * elements * element size, all_reduce twice that; in groups of n
  /// N / n * (n-1) instead of N-1. Divide by N.
  uint64_t comm_bytes_times_ranks[ZRT_NUM_COLLECTIVES];
  /// The same for padding, not in the numbers above.
  uint64_t comm_padding_bytes_times_ranks[ZRT_NUM_COLLECTIVES];
  /// Highest byte touched in each space on any rank; never reset.
  uint64_t peak_bytes[ZRT_NUM_SPACES];
  /// Most bytes of gathered parameters alive at one time on any rank; the plan
  /// says `window_bytes`. Never reset.
  uint64_t gathered_peak_bytes;
  /// Scratch memory of library calls, of one rank; not in peak_bytes.
  uint64_t library_workspace_bytes;
  double step_ms; ///< wall-clock time of the steps
  /// The compute stream stood still for other streams, or was inside a
  /// collective or transfer of its own; mean over ranks.
  double exposed_comm_ms;
  double library_ms; ///< in library calls, mean over ranks
  /// In kernels, copies and fills that are not counted below, mean over ranks.
  double kernel_ms;
  double comm_ms; ///< in collectives on any stream, mean over ranks
  /// Bytes copied between memory spaces, summed over ranks: elements of the
  /// tensors, without the padding of blocks. Divide by N.
  uint64_t transfer_bytes_all_ranks[ZRT_NUM_TRANSFERS];
  double transfer_ms; ///< in copies between spaces, mean over ranks
  double host_ms;     ///< in launches on the host, mean over ranks
} zrt_counters;

zrt_status zrt_session_get_counters(const zrt_session *session,
                                    zrt_counters *counters);
zrt_status zrt_session_reset_counters(zrt_session *session);
/// Time of each command on a rank, without waiting for events, since the
/// counters were reset: `count` must be the program's num_commands.
zrt_status zrt_session_command_ms(const zrt_session *session, uint32_t rank,
                                  double *ms, size_t count);

/// When a command ran in the last step, in milliseconds from the step's start
/// (monotonic clock, the same start for all ranks). Before `start_ms` its
/// stream stood waiting for events for `waited_ms`. Of the micro-batches before
/// the last one, the commands have the times of the latest, as if it were the
/// first; the other commands come after the time that all of them took.
typedef struct zrt_span {
  double start_ms, end_ms, waited_ms;
} zrt_span;

/// The spans of the last step on a rank, by command: `count` must be the
/// program's num_commands. All zero before the first step.
zrt_status zrt_session_spans(const zrt_session *session, uint32_t rank,
                             zrt_span *spans, size_t count);

#ifdef __cplusplus
}
#endif

// NOLINTEND(readability-identifier-naming, modernize-use-using)

#endif // ZERO_RT_ZERO_RT_H
