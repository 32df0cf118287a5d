//===- Zplan.cpp - Writes a program for the runtime -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One plan op becomes one table of runtime/zplan.fbs.
//
//===----------------------------------------------------------------------===//

#include "dialects/Plan/Plan.h"
#include "zero/Lowering/Kernels.h"
#include "zero/Lowering/Plan.h"
#include "zero/Lowering/PlanTimeline.h"
#include "zero/Transforms/PlanOrder.h"

#include "runtime/zplan_generated.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/Endian.h"

using namespace mlir;
using namespace mlir::zero;
namespace fb = zrt::fb;
using flatbuffers::Offset;

namespace {

/// Numbers the buffers, streams and events of a program and fills the tables.
class ZplanWriter {
public:
  explicit ZplanWriter(plan::ProgramOp program)
      : program(program), order(program) {}

  /// Without `cost` the file does not say when commands are planned to run.
  LogicalResult write(const KernelTarget &target, const CostModel *cost,
                      StringRef kernels, const DeviceCode &device,
                      std::string &bytes);

private:
  LogicalResult add(Operation *op);
  uint32_t hostAlignment();
  void add(plan::ArenaOp op);
  LogicalResult add(plan::BufferOp op);
  void add(plan::ParameterOp op);
  void add(plan::InputOp op);
  void add(plan::OutputOp op);
  LogicalResult add(plan::ConstantOp op);
  LogicalResult addCommand(plan::CommandOpInterface op);
  void addRelease(plan::ReleaseOp release);
  void addUses(plan::CommandOpInterface op);

  template <typename OpTy>
  void addCollective(OpTy op, fb::CommandT &command);
  void addCallAttrs(plan::CallOp op, fb::CommandT &command);
  void addSync(plan::CommandOpInterface op, fb::CommandT &command);
  void addProgram(const KernelTarget &target);
  void addDeviceCode(const DeviceCode &device);
  void addTimeline(const Timeline &timeline);
  std::unique_ptr<fb::OperandT> operand(Value value);
  uint32_t buffer(Value value);

  plan::ProgramOp program;
  fb::ProgramT out;
  PlanOrder order;
  llvm::DenseMap<Value, uint32_t> arenas, buffers, events;
  int64_t position = 0;     ///< of the next command, releases included
  int64_t lastCompute = -1; ///< position of the last one on stream 0
  int64_t lastNumber = -1;  ///< its number in the file
  llvm::DenseMap<Operation *, SmallVector<int64_t, 4>> users; ///< positions
};

} // namespace

//===----------------------------------------------------------------------===//
// Types and values
//===----------------------------------------------------------------------===//

static std::optional<fb::DType> dtypeOf(IntegerType type) {
  switch (type.getWidth()) {
  case 1:
    return fb::DType_Bool;
  case 8:
    return type.isUnsigned() ? fb::DType_U8 : fb::DType_I8;
  case 16:
    return type.isUnsigned() ? fb::DType_U16 : fb::DType_I16;
  case 32:
    return type.isUnsigned() ? fb::DType_U32 : fb::DType_I32;
  case 64:
    return type.isUnsigned() ? fb::DType_U64 : fb::DType_I64;
  default:
    return std::nullopt;
  }
}

/// The runtime's name of an element type, or nothing if it has none.
static std::optional<fb::DType> dtypeOf(Type type) {
  if (type.isF32())
    return fb::DType_F32;
  if (type.isF64())
    return fb::DType_F64;
  if (type.isF16())
    return fb::DType_F16;
  if (type.isBF16())
    return fb::DType_BF16;
  if (isa<Float8E4M3FNType>(type))
    return fb::DType_F8E4M3;
  if (isa<Float8E5M2Type>(type))
    return fb::DType_F8E5M2;
  if (isa<Float8E8M0FNUType>(type))
    return fb::DType_F8E8M0;
  if (isa<Float8E4M3FNUZType>(type))
    return fb::DType_F8E4M3FNUZ;
  if (isa<Float8E5M2FNUZType>(type))
    return fb::DType_F8E5M2FNUZ;
  auto integer = dyn_cast<IntegerType>(type);
  return integer ? dtypeOf(integer) : std::nullopt;
}

static std::vector<int64_t> toVector(ArrayRef<int64_t> values) {
  return {values.begin(), values.end()};
}

/// The bytes of a constant as they lie in memory; an i1 takes a byte.
static std::vector<uint8_t> constantBytes(DenseElementsAttr value) {
  std::vector<uint8_t> bytes;
  if (value.getElementType().isInteger(1)) {
    for (bool element : value.getValues<bool>())
      bytes.push_back(element);
    return bytes;
  }
  int64_t width = plan::elementBytes(value.getElementType());
  ArrayRef<char> raw = value.getRawData();
  int64_t repeats = value.isSplat() ? value.getNumElements() : 1;
  bytes.reserve(width * value.getNumElements());
  for (int64_t i = 0; i < repeats; ++i)
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  return bytes;
}

uint32_t ZplanWriter::buffer(Value value) {
  while (auto view = value.getDefiningOp<plan::ViewOp>())
    value = view.getSource();
  return buffers.lookup(value);
}

/// A command's view of a buffer. A view that starts elsewhere on each rank is
/// a buffer of its own, since only buffers know of ranks.
std::unique_ptr<fb::OperandT> ZplanWriter::operand(Value value) {
  auto result = std::make_unique<fb::OperandT>();
  auto type = cast<MemRefType>(value.getType());
  if (auto view = value.getDefiningOp<plan::ViewOp>())
    if (view.getRankStride() == 0)
      result->offset = view.getOffset();
  result->buffer = buffers.count(value) ? buffers.lookup(value) : buffer(value);
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)type.getStridesAndOffset(strides, offset);
  // Upstream knows no strides of a tensor without elements; any will do.
  if (llvm::is_contained(type.getShape(), 0))
    strides.assign(type.getRank(), 0);
  result->sizes = toVector(type.getShape());
  result->strides = toVector(strides);
  return result;
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

/// That of a disk's blocks where there is one: of the disk itself, and of host
/// memory.
uint32_t ZplanWriter::hostAlignment() {
  return llvm::any_of(program.getBody().getOps<plan::ArenaOp>(),
                      [](plan::ArenaOp op) {
                        return op.getSpace() == plan::Space::Disk;
                      })
             ? plan::kDiskBlockBytes
             : 64;
}

void ZplanWriter::add(plan::ArenaOp op) {
  auto arena = std::make_unique<fb::ArenaT>();
  arena->space = static_cast<fb::Space>(op.getSpace());
  arena->bytes = op.getBytes().value_or(0);
  arena->alignment =
      op.getSpace() == plan::Space::Device ? 64 : hostAlignment();
  arena->lower_bound = op.getLowerBound().value_or(0);
  arena->budget = op.getBudget().value_or(-1);
  if (op.getSpace() == plan::Space::Device) {
    arena->budget = program.getBudget().value_or(-1);
    out.arena_lower_bound += arena->lower_bound;
  }
  arenas[op.getArena()] = out.arenas.size();
  out.arenas.push_back(std::move(arena));
}

LogicalResult ZplanWriter::add(plan::BufferOp op) {
  MemRefType type = op.getBuffer().getType();
  std::optional<fb::DType> dtype = dtypeOf(type.getElementType());
  if (!dtype)
    return op.emitOpError() << "has element type " << type.getElementType()
                            << ", which the runtime does not have";
  if (!op.getOffset())
    return op.emitOpError("has no offset; run plan-allocate first");
  auto table = std::make_unique<fb::BufferT>();
  table->arena = arenas.lookup(op.getArena());
  table->offset = *op.getOffset();
  table->bytes = op.getBytes();
  table->dtype = *dtype;
  table->shape = toVector(type.getShape());
  table->kind = static_cast<fb::Kind>(op.getKind());
  table->padding_bytes = op.getPadding().value_or(0);
  buffers[op.getBuffer()] = out.buffers.size();
  out.buffers.push_back(std::move(table));
  return success();
}

void ZplanWriter::add(plan::ParameterOp op) {
  auto table = std::make_unique<fb::ParameterT>();
  uint32_t index = buffer(op.getBuffer());
  table->name = op.getName().str();
  table->role = static_cast<fb::ParamRole>(op.getRole());
  table->buffer = index;
  table->dtype = out.buffers[index]->dtype;
  table->sharded = op.getShape().has_value();
  table->shards = op.getShards().value_or(0);
  ArrayRef<int64_t> held = op.getBuffer().getType().getShape();
  table->shape = toVector(op.getShape().value_or(held));
  table->chunk_rows = table->sharded ? held.front() : 0;
  table->init = op.getInitFile() ? fb::Init_File
                : op.getOnes()   ? fb::Init_Ones
                : op.getValue()  ? fb::Init_Value
                                 : fb::Init_Zeros;
  if (auto value = dyn_cast_or_null<DenseElementsAttr>(op.getValueAttr()))
    table->init_value = constantBytes(value);
  table->init_file = op.getInitFile().value_or("").str();
  table->init_tensor = op.getInitTensor().value_or(op.getName()).str();
  table->of = op.getOf().value_or("").str();
  if (op.getTied())
    for (StringAttr name : op.getTied()->getAsRange<StringAttr>())
      table->tied.push_back(name.str());
  out.buffers[index]->name = table->name;
  out.parameters.push_back(std::move(table));
}

void ZplanWriter::add(plan::InputOp op) {
  auto table = std::make_unique<fb::InputT>();
  uint32_t index = buffer(op.getBuffer());
  table->name = op.getName().str();
  table->role = static_cast<fb::InputRole>(op.getRole());
  table->buffer = index;
  table->dtype = out.buffers[index]->dtype;
  table->shape = out.buffers[index]->shape;
  if (op.getBounds()) {
    table->has_range = true;
    table->min = (*op.getBounds())[0];
    table->max = (*op.getBounds())[1];
  }
  if (op.getIgnore()) {
    table->has_ignore = true;
    table->ignore = *op.getIgnore();
  }
  if (op.getRole() == plan::InputRole::Data && !table->shape.empty() &&
      out.samples_per_rank == 0)
    out.samples_per_rank = table->shape.front();
  out.buffers[index]->name = table->name;
  out.inputs.push_back(std::move(table));
}

void ZplanWriter::add(plan::OutputOp op) {
  auto table = std::make_unique<fb::OutputT>();
  table->name = op.getName().str();
  table->buffer = buffer(op.getBuffer());
  table->across_ranks = static_cast<fb::AcrossRanks>(op.getAcross());
  out.outputs.push_back(std::move(table));
}

LogicalResult ZplanWriter::add(plan::ConstantOp op) {
  auto value = dyn_cast<DenseElementsAttr>(op.getValue());
  // no test: plan-lower makes dense ones only.
  if (!value)
    return op.emitOpError("is not a dense constant, which the file needs");
  auto table = std::make_unique<fb::ConstantT>();
  table->buffer = buffer(op.getBuffer());
  table->data = constantBytes(value);
  out.constants.push_back(std::move(table));
  return success();
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

template <typename OpTy>
void ZplanWriter::addCollective(OpTy op, fb::CommandT &command) {
  command.average = op.getAverage();
  ArrayRef<int64_t> axes = op.getAxes().value_or(ArrayRef<int64_t>());
  command.axes.assign(axes.begin(), axes.end());
  for (auto [source, target, elements, chunk] :
       llvm::zip_equal(op.getSources(), op.getTargets(), op.getElements(),
                       op.getChunks())) {
    auto piece = std::make_unique<fb::PieceT>();
    piece->source = operand(source)->buffer;
    piece->target = operand(target)->buffer;
    piece->elements = elements;
    piece->chunk = chunk;
    command.pieces.push_back(std::move(piece));
  }
}

void ZplanWriter::addCallAttrs(plan::CallOp op, fb::CommandT &command) {
  for (NamedAttribute named : op->getDiscardableAttrs()) {
    auto attr = std::make_unique<fb::AttrT>();
    attr->name = named.getName().str();
    if (auto list = dyn_cast<DenseI64ArrayAttr>(named.getValue()))
      attr->ints = toVector(list);
    else if (auto integer = dyn_cast<IntegerAttr>(named.getValue()))
      attr->ints = {integer.getInt()};
    else if (auto number = dyn_cast<FloatAttr>(named.getValue()))
      attr->floats = {number.getValueAsDouble()};
    else if (isa<UnitAttr>(named.getValue()))
      attr->ints = {1};
    else
      continue;
    command.attrs.push_back(std::move(attr));
  }
}

void ZplanWriter::addSync(plan::CommandOpInterface op, fb::CommandT &command) {
  command.stream = order.getCommands()[position].stream;
  for (Value event : op.getWaitEvents())
    command.wait.push_back(events.lookup(event));
  if (Value event = op.getSignalEvent())
    command.signal = events.lookup(event);
}

/// A release is no command of its own: the compute command before it ends the
/// life, if it is behind all that used the buffer.
void ZplanWriter::addRelease(plan::ReleaseOp release) {
  plan::BufferOp buffer = getUnderlyingBuffer(release.getBuffer());
  bool isLast = lastCompute >= 0;
  for (int64_t user : users[buffer])
    isLast &= user == lastCompute || order.isBefore(user, lastCompute);
  if (isLast)
    out.commands[lastNumber]->release.push_back(
        buffers.lookup(buffer.getBuffer()));
}

/// Keeps track of what a release may be attached to.
void ZplanWriter::addUses(plan::CommandOpInterface op) {
  SmallVector<Value> used = op.getReadBuffers();
  llvm::append_range(used, op.getWrittenBuffers());
  for (Value value : used)
    if (plan::BufferOp buffer = getUnderlyingBuffer(value);
        buffer.getKind() == plan::Kind::Gathered)
      users[buffer].push_back(position);
  if (order.getCommands()[position].stream == 0) {
    lastCompute = position;
    lastNumber = out.commands.size();
  }
}

/// Into how many parts the kernel of `op` may be cut; 0: it may not.
static int64_t getSplit(plan::LaunchOp op) {
  Operation *kernel =
      SymbolTable::lookupNearestSymbolFrom(op, op.getCalleeAttr());
  auto split = kernel ? kernel->getAttrOfType<IntegerAttr>(plan::kSplitAttr)
                      : IntegerAttr();
  return split ? split.getInt() : 0;
}

/// "name" or "file:line:column" of a location, whichever says more.
static std::string describe(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  if (auto file = dyn_cast<FileLineColLoc>(loc))
    return (file.getFilename().getValue() + ":" + Twine(file.getLine())).str();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (std::string text = describe(part); !text.empty())
        return text;
  return "";
}

LogicalResult ZplanWriter::addCommand(plan::CommandOpInterface op) {
  auto command = std::make_unique<fb::CommandT>();
  command->location = describe(op->getLoc());
  command->label = getCommandLabel(op);
  addSync(op, *command);
  addUses(op);
  auto withBuffers = [&](fb::Op kind, StringRef callee, ValueRange buffers) {
    command->op = kind;
    command->callee = callee.str();
    for (Value value : buffers)
      command->operands.push_back(operand(value));
  };
  TypeSwitch<Operation *>(op.getOperation())
      .Case([&](plan::LaunchOp op) {
        withBuffers(fb::Op_Launch, op.getCallee(), op.getBuffers());
        for (int64_t index : op.getWrites())
          command->writes.push_back(index);
        command->host = op.getHost();
        command->split = getSplit(op);
      })
      .Case([&](plan::CallOp op) {
        withBuffers(fb::Op_Call, op.getCallee(), op.getBuffers());
        addCallAttrs(op, *command);
        bool repeats = position < order.getMicroBatchEnd();
        double times = repeats ? program.getMicroBatches() - 1 : 1;
        out.flops_per_rank += times * countModelFlops(op);
      })
      .Case([&](plan::CopyOp op) {
        withBuffers(fb::Op_Copy, "", {op.getSource(), op.getTarget()});
      })
      .Case([&](plan::FillOp op) {
        withBuffers(fb::Op_Fill, "", op.getTarget());
      })
      .Case([&](plan::AllGatherOp op) {
        command->op = fb::Op_AllGather;
        addCollective(op, *command);
      })
      .Case([&](plan::ReduceScatterOp op) {
        command->op = fb::Op_ReduceScatter;
        addCollective(op, *command);
      })
      .Case([&](plan::AllReduceOp op) {
        command->op = fb::Op_AllReduce;
        addCollective(op, *command);
      });
  out.commands.push_back(std::move(command));
  return success();
}

LogicalResult ZplanWriter::add(Operation *op) {
  if (auto command = dyn_cast<plan::CommandOpInterface>(op)) {
    auto release = dyn_cast<plan::ReleaseOp>(op);
    LogicalResult added = success();
    if (release)
      addRelease(release);
    else
      added = addCommand(command);
    ++position;
    return added;
  }
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](plan::MicroBatchEndOp) {
        out.micro_commands = out.commands.size();
        // Nothing behind it is released by a command before it.
        lastCompute = -1;
        users.clear();
        return success();
      })
      .Case([&](plan::BufferOp op) { return add(op); })
      .Case([&](plan::ConstantOp op) { return add(op); })
      .Case([&](plan::EventOp op) {
        events[op.getEvent()] = events.size();
        return success();
      })
      .Case<plan::ArenaOp, plan::ParameterOp, plan::InputOp, plan::OutputOp>(
          [&](auto op) {
            add(op);
            return success();
          })
      .Case([&](plan::ViewOp op) {
        if (op.getRankStride() == 0)
          return success();
        // Starts elsewhere on each rank: a buffer of its own to the runtime.
        auto base = *out.buffers[buffer(op.getSource())];
        int64_t width =
            plan::elementBytes(op.getResult().getType().getElementType());
        base.offset += op.getOffset() * width;
        base.rank_stride = op.getRankStride() * width;
        base.shards = op.getShards().value_or(0);
        base.bytes = plan::sizeInBytes(op.getResult().getType());
        base.shape = toVector(op.getResult().getType().getShape());
        base.padding_bytes = 0;
        base.kind = fb::Kind_Activation; // its bytes are counted once
        buffers[op.getResult()] = out.buffers.size();
        out.buffers.push_back(std::make_unique<fb::BufferT>(base));
        return success();
      })
      .Default([](Operation *op) {
        // no test: plan-lower makes none.
        return op->emitOpError("has no place in a .zplan");
      });
}

/// What is said of the program as a whole.
void ZplanWriter::addProgram(const KernelTarget &target) {
  out.version = 1;
  out.name = program.getSymName().str();
  out.ranks = program.getRanks();
  if (program.getGrid())
    for (int64_t size : program.getGridShape())
      out.grid.push_back(size);
  if (auto stage = program->getAttrOfType<IntegerAttr>("zero.stage"))
    out.stage = stage.getInt();
  if (auto optimizer = program->getAttrOfType<StringAttr>("zero.optimizer"))
    out.optimizer = optimizer.str();
  out.num_streams = order.getStreams().size();
  for (StringRef name : order.getStreams())
    out.stream_names.push_back(name.str());
  out.num_events = events.size();
  out.window_bytes = program.getWindow().value_or(0);
  out.micro_batches = program.getMicroBatches();
  out.budget_bytes = program.getBudget().value_or(-1);
  out.target = target.str();
  if (out.kernels.empty())
    return;
  // Whether there is a shadow stack is the operating system's choice; no
  // kernel uses one.
  llvm::copy_if(target.features, std::back_inserter(out.cpu_features),
                [](const std::string &feature) { return feature != "shstk"; });
}

void ZplanWriter::addDeviceCode(const DeviceCode &device) {
  out.device_code.assign(device.ptx.begin(), device.ptx.end());
  for (const DeviceKernel &kernel : device.kernels) {
    auto table = std::make_unique<fb::DeviceKernelT>();
    table->name = kernel.name;
    table->scratch_bytes = kernel.scratchBytes;
    for (const DeviceLaunch &launch : kernel.launches) {
      auto entry = std::make_unique<fb::DeviceLaunchT>();
      entry->entry = launch.entry;
      entry->grid.assign(launch.grid.begin(), launch.grid.end());
      entry->block.assign(launch.block.begin(), launch.block.end());
      entry->shared_bytes = launch.sharedBytes;
      entry->arguments.assign(launch.arguments.begin(), launch.arguments.end());
      table->launches.push_back(std::move(entry));
    }
    out.device_kernels.push_back(std::move(table));
  }
}

void ZplanWriter::addTimeline(const Timeline &timeline) {
  out.planned_step_seconds = timeline.stepSeconds;
  for (const TimelineSpan &span : timeline.spans) {
    fb::CommandT &command = *out.commands[span.command];
    command.planned_start = span.start;
    command.planned_seconds = span.end - span.start;
  }
}

LogicalResult ZplanWriter::write(const KernelTarget &target,
                                 const CostModel *cost, StringRef kernels,
                                 const DeviceCode &device, std::string &bytes) {
  for (Operation &op : program.getBody().front())
    if (failed(add(&op)))
      return failure();
  out.kernels.assign(kernels.begin(), kernels.end());
  addProgram(target);
  addDeviceCode(device);
  if (cost)
    addTimeline(predictTimeline(program, *cost));

  flatbuffers::FlatBufferBuilder builder(1 << 16);
  fb::FinishProgramBuffer(builder, fb::Program::Pack(builder, &out));
  llvm::ArrayRef<uint8_t> table(builder.GetBufferPointer(), builder.GetSize());
  bytes.assign(table.begin(), table.end());
  bytes += "ZSUM";
  char sum[4];
  llvm::support::endian::write32le(sum, llvm::crc32(table));
  bytes.append(sum, sizeof(sum));
  return success();
}

LogicalResult mlir::zero::writeZplan(ModuleOp module,
                                     const KernelTarget &target,
                                     std::string &bytes,
                                     const CostModel *cost) {
  auto programs = llvm::to_vector(module.getOps<plan::ProgramOp>());
  if (programs.size() != 1)
    return module.emitError() << "has " << programs.size()
                              << " plan programs; a .zplan holds exactly one";
  std::string kernels;
  if (failed(compileKernels(module, target, kernels)))
    return failure();
  FailureOr<DeviceCode> device = DeviceCode();
  if (!target.gpu.empty())
    device = compileDeviceKernels(module, target);
  if (failed(device))
    return failure();
  return ZplanWriter(programs.front())
      .write(target, cost, kernels, *device, bytes);
}
