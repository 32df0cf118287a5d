//===- ControlFlow.cpp - Branches and loops -------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If, Loop, Scan and SequenceMap. Which branch is taken and how often a loop
// runs must be known at import. The branch is imported in place, and so is the
// body of a loop: as that of a loop of the IR where nothing in it needs to be
// known at import, else once for each time.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Sequences.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

using Bindings = SmallVector<Binding>;

// The most samples that a Scan of operator set 8 may be unrolled for.
static constexpr int64_t maxBatch = int64_t(1) << 12;

/// Whether `binding`, a condition, is true; an error naming `what` when that is
/// not known.
static std::optional<bool> condition(NodeContext &c, Binding &binding,
                                     const Twine &what) {
  const HostTensor *tensor = c.hostOf(binding);
  if (tensor && tensor->size() == 1 && tensor->type == DType::Bool)
    return tensor->ints[0] != 0;
  (void)c.fail(what +
               " must be a boolean that is known at import; it depends on "
               "the data");
  return std::nullopt;
}

/// Sets the node's outputs, of which there are as many as `results` or fewer.
static LogicalResult setAll(NodeContext &c, MutableArrayRef<Binding> results) {
  if (c.numResults() > results.size())
    return c.fail("has " + Twine(c.numResults()) + " outputs, its body " +
                  Twine(results.size()));
  for (unsigned i = 0; i < c.numResults(); ++i)
    c.set(i, results[i]);
  return success();
}

static LogicalResult importIf(NodeContext &c) {
  auto taken = condition(c, c.binding(0), "its condition");
  if (!taken)
    return failure();
  const onnx::GraphProto *branch =
      c.node.graphAttr(*taken ? "then_branch" : "else_branch");
  if (!branch)
    return failure();
  FailureOr<Bindings> results = c.importGraph(*branch, {});
  return failed(results) ? failure() : setAll(c, *results);
}

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

/// What a loop of no iterations stacks: a tensor without elements, if the body
/// says of which shape.
static FailureOr<Binding> emptyStack(NodeContext &c,
                                     const onnx::ValueInfoProto &output) {
  const auto &declared = output.type().tensor_type();
  std::optional<DType> type = dtypeFromOnnx(declared.elem_type());
  SmallVector<int64_t> shape{0};
  bool known = type && declared.has_shape();
  for (const auto &dim : declared.shape().dim()) {
    known &= dim.has_dim_value() && dim.dim_value() >= 0;
    shape.push_back(dim.dim_value());
  }
  if (known && countElements(shape))
    return Binding(HostTensor(*type, shape));
  (void)c.fail("runs no iteration, and the shape of its output '" +
               printable(output.name()) + "' is not known");
  return failure();
}

namespace {
/// A Loop while it is unrolled.
struct LoopRun {
  const onnx::GraphProto *body;
  /// Absent: as long as the condition holds.
  std::optional<int64_t> trips;
  bool goesOn = true;
  Bindings carried;
  /// What each scan output has had, by iteration.
  std::vector<Bindings> stacks;
};
} // namespace

static LogicalResult startLoop(NodeContext &c, LoopRun &loop) {
  loop.body = c.node.graphAttr("body");
  if (!loop.body)
    return failure();
  if (c.has(0)) {
    auto trips = c.ints(0, "trip count");
    if (!trips || trips->size() != 1)
      return trips ? c.fail("its trip count is not one integer") : failure();
    loop.trips = trips->front();
  }
  if (c.has(1)) {
    auto start = condition(c, c.binding(1), "its condition");
    if (!start)
      return failure();
    loop.goesOn = *start;
  }
  for (unsigned i = 2; i < c.numInputs(); ++i) {
    if (!c.has(i))
      return c.fail("input " + Twine(i) + " is missing");
    loop.carried.push_back(c.binding(i));
  }
  int64_t stacks = int64_t(loop.body->output_size()) - 1 - loop.carried.size();
  if (stacks < 0)
    return c.fail("its body has " + Twine(loop.body->output_size()) +
                  " outputs, expected at least " +
                  Twine(loop.carried.size() + 1));
  loop.stacks.resize(stacks);
  return success();
}

static LogicalResult runIteration(NodeContext &c, LoopRun &loop,
                                  int64_t iteration) {
  HostTensor number(DType::I64, {}), goesOn(DType::Bool, {});
  number.setInt(0, iteration);
  goesOn.setInt(0, 1);
  Bindings inputs{Binding(std::move(number)), Binding(std::move(goesOn))};
  llvm::append_range(inputs, loop.carried);
  FailureOr<Bindings> results = c.importGraph(*loop.body, inputs);
  if (failed(results))
    return failure();
  auto next = condition(c, results->front(), "whether it goes on");
  if (!next)
    return failure();
  loop.goesOn = *next;
  size_t carried = loop.carried.size();
  for (size_t i = 0; i < carried; ++i)
    loop.carried[i] = (*results)[1 + i];
  for (auto [i, stack] : llvm::enumerate(loop.stacks))
    stack.push_back((*results)[1 + carried + i]);
  return success();
}

/// Appends `results` as values; an error where one is no tensor.
static LogicalResult takeValues(NodeContext &c,
                                MutableArrayRef<Binding> results,
                                SmallVectorImpl<Value> &values) {
  for (Binding &result : results) {
    values.push_back(c.bindingShape(result) ? c.valueOf(result) : Value());
    if (!values.back())
      return failure();
  }
  return success();
}

/// One iteration in a loop of the IR, in which the number of the iteration is a
/// carried value, and the condition has to stay true.
static LogicalResult loopStep(NodeContext &c, LoopRun &loop,
                              train::ScanBuilder &builder,
                              SmallVectorImpl<Value> &carried,
                              SmallVectorImpl<Value> &stacked) {
  HostTensor zero(DType::I64, {}), goesOn(DType::Bool, {});
  goesOn.setInt(0, 1);
  Value number = builder.addCarried(c.constant(zero));
  Bindings inputs{Binding(number), Binding(std::move(goesOn))};
  for (Binding &each : loop.carried) {
    Value start = c.bindingShape(each) ? c.valueOf(each) : Value();
    if (!start)
      return failure();
    inputs.push_back(builder.addCarried(start));
  }
  FailureOr<Bindings> results = c.importGraph(*loop.body, inputs);
  if (failed(results))
    return failure();
  auto next = condition(c, results->front(), "whether it goes on");
  carried.push_back(c.emit<train::AddOp>({number, c.scalar(number, 1)}));
  if (!next || !*next || !carried.back())
    return failure();
  MutableArrayRef<Binding> rest = MutableArrayRef(*results).drop_front();
  size_t count = loop.carried.size();
  return failure(failed(takeValues(c, rest.take_front(count), carried)) ||
                 failed(takeValues(c, rest.drop_front(count), stacked)));
}

/// The results of a loop of the IR; empty where it has to be unrolled.
static Bindings tryLoop(NodeContext &c, LoopRun &loop) {
  if (!loop.goesOn || !loop.trips)
    return {};
  auto step = [&](train::ScanBuilder &builder, SmallVectorImpl<Value> &carried,
                  SmallVectorImpl<Value> &stacked) {
    return loopStep(c, loop, builder, carried, stacked);
  };
  train::ScanOp scan =
      c.tryLoop(*loop.trips, /*reverse=*/false, loop.body, step);
  if (!scan)
    return {};
  // The first one is the number of the iteration.
  return Bindings(llvm::drop_begin(scan.getResults()));
}

static LogicalResult importLoop(NodeContext &c) {
  LoopRun loop;
  if (failed(startLoop(c, loop)))
    return failure();
  if (Bindings results = tryLoop(c, loop); !results.empty())
    return setAll(c, results);
  for (int64_t i = 0; loop.goesOn && (!loop.trips || i < *loop.trips); ++i)
    if (failed(runIteration(c, loop, i)))
      return failure();
  Bindings results = loop.carried;
  for (auto [i, stack] : llvm::enumerate(loop.stacks)) {
    unsigned output = loop.carried.size() + i;
    if (!c.isUsed(output)) {
      results.push_back(Binding());
      continue;
    }
    FailureOr<Binding> joined =
        stack.empty() ? emptyStack(c, loop.body->output(1 + output))
                      : joinBindings(c, stack, 0, /*newAxis=*/true);
    if (failed(joined))
      return failure();
    results.push_back(*joined);
  }
  return setAll(c, results);
}

//===----------------------------------------------------------------------===//
// Scan
//===----------------------------------------------------------------------===//

namespace {
/// The attributes of a Scan, complete.
struct ScanSpec {
  const onnx::GraphProto *body;
  int64_t states, steps = 0;
  SmallVector<int64_t> inputAxes, inputBackward, outputAxes, outputBackward;
};
} // namespace

/// The attribute `name`, which has one entry for each of `count`; 0 for each
/// without it.
static SmallVector<int64_t> onePer(NodeContext &c, StringRef name,
                                   int64_t count) {
  SmallVector<int64_t> values(count, 0);
  values = c.node.intsAttr(name, values);
  if (int64_t(values.size()) != count && !c.node.failed())
    (void)c.fail("its '" + name + "' has " + Twine(values.size()) +
                 " entries, expected " + Twine(count));
  return values;
}

/// Reads the attributes of a Scan of `inputs` states and tensors.
static FailureOr<ScanSpec> scanSpec(NodeContext &c, int64_t inputs,
                                    bool batched) {
  ScanSpec spec;
  spec.body = c.node.graphAttr("body");
  int64_t scanned = c.node.intAttr("num_scan_inputs", 0);
  if (!spec.body)
    return failure();
  spec.states = inputs - scanned;
  int64_t outputs = spec.body->output_size() - spec.states;
  if (scanned < 1 || spec.states < 0 || outputs < 0) {
    (void)c.fail("scans " + Twine(scanned) + " of " + Twine(inputs) +
                 " inputs with a body of " + Twine(spec.body->output_size()) +
                 " outputs");
    return failure();
  }
  spec.inputAxes = onePer(c, batched ? "" : "scan_input_axes", scanned);
  spec.inputBackward =
      onePer(c, batched ? "directions" : "scan_input_directions", scanned);
  spec.outputAxes = onePer(c, batched ? "" : "scan_output_axes", outputs);
  spec.outputBackward =
      onePer(c, batched ? "" : "scan_output_directions", outputs);
  return c.node.failed() ? FailureOr<ScanSpec>() : FailureOr<ScanSpec>(spec);
}

/// Finds how long the scanned tensors are and normalizes their axes.
static LogicalResult measureScan(NodeContext &c, ScanSpec &spec,
                                 MutableArrayRef<Binding> scanned) {
  for (auto [i, tensor] : llvm::enumerate(scanned)) {
    auto shape = tensorShape(c, tensor, "a scanned input");
    if (failed(shape))
      return failure();
    int64_t &axis = spec.inputAxes[i];
    axis = c.node.axis(axis, shape->size());
    if (c.node.failed())
      return failure();
    if (i && (*shape)[axis] != spec.steps)
      return c.fail("its scanned inputs have " + Twine(spec.steps) + " and " +
                    Twine((*shape)[axis]) + " steps");
    spec.steps = (*shape)[axis];
  }
  return success();
}

/// `value` with its first axis in the place of `axis`, or back.
static Value moveAxis(NodeContext &c, Value value, int64_t axis, bool back) {
  if (axis == 0 || !value)
    return value;
  SmallVector<int64_t> order =
      llvm::to_vector(llvm::seq<int64_t>(0, typeOf(value).getRank()));
  auto first = order.begin(), last = order.begin() + axis;
  if (back)
    std::rotate(first, last, last + 1);
  else
    std::rotate(first, first + 1, last + 1);
  return c.transpose(value, order);
}

/// The results of a scan as a loop of the IR; empty where it has to be
/// unrolled.
static Bindings tryScan(NodeContext &c, ScanSpec &spec,
                        MutableArrayRef<Binding> inputs) {
  SmallVector<int64_t> directions(spec.inputBackward);
  llvm::append_range(directions, spec.outputBackward);
  if (!llvm::all_equal(directions) || !c.mayLoop(spec.steps, spec.body))
    return {};
  SmallVector<Value> starts;
  if (failed(takeValues(c, inputs, starts)))
    return {};
  for (auto [value, axis] : llvm::zip_equal(
           MutableArrayRef(starts).drop_front(spec.states), spec.inputAxes))
    if (!(value = moveAxis(c, value, axis, /*back=*/true)))
      return {};
  auto step = [&](train::ScanBuilder &builder, SmallVectorImpl<Value> &carried,
                  SmallVectorImpl<Value> &stacked) {
    Bindings now;
    for (auto [i, start] : llvm::enumerate(starts))
      now.push_back(int64_t(i) < spec.states ? builder.addCarried(start)
                                             : builder.addScanned(start));
    FailureOr<Bindings> results = c.importGraph(*spec.body, now);
    if (failed(results))
      return failure();
    MutableArrayRef<Binding> all(*results);
    return failure(
        failed(takeValues(c, all.take_front(spec.states), carried)) ||
        failed(takeValues(c, all.drop_front(spec.states), stacked)));
  };
  train::ScanOp scan =
      c.tryLoop(spec.steps, directions.front(), spec.body, step);
  if (!scan)
    return {};
  Bindings results(scan.getFinals());
  for (auto [value, axis] :
       llvm::zip_equal(scan.getStacked(), spec.outputAxes)) {
    axis = c.node.axis(axis, typeOf(value).getRank());
    results.push_back(c.node.failed() ? Value()
                                      : moveAxis(c, value, axis, false));
  }
  return results;
}

/// Runs a scan over `inputs`, its states and tensors; the last states and what
/// it stacked.
static FailureOr<Bindings> runScan(NodeContext &c, ScanSpec &spec,
                                   MutableArrayRef<Binding> inputs) {
  MutableArrayRef<Binding> scanned = inputs.drop_front(spec.states);
  if (failed(measureScan(c, spec, scanned)))
    return failure();
  if (Bindings results = tryScan(c, spec, inputs); !results.empty())
    return c.node.failed() ? FailureOr<Bindings>() : FailureOr(results);
  Bindings states(inputs.take_front(spec.states));
  std::vector<Bindings> stacks(spec.outputAxes.size());
  for (int64_t step = 0; step < spec.steps; ++step) {
    Bindings now = states;
    for (auto [i, tensor] : llvm::enumerate(scanned)) {
      int64_t index = spec.inputBackward[i] ? spec.steps - 1 - step : step;
      FailureOr<Binding> slice = elementAt(c, tensor, spec.inputAxes[i], index);
      if (failed(slice))
        return failure();
      now.push_back(*slice);
    }
    FailureOr<Bindings> results = c.importGraph(*spec.body, now);
    if (failed(results))
      return failure();
    states.assign(results->begin(), results->begin() + spec.states);
    for (auto [i, stack] : llvm::enumerate(stacks))
      stack.push_back((*results)[spec.states + i]);
  }
  for (auto [i, stack] : llvm::enumerate(stacks)) {
    if (spec.outputBackward[i])
      std::reverse(stack.begin(), stack.end());
    FailureOr<Binding> joined =
        stack.empty() ? emptyStack(c, spec.body->output(spec.states + i))
                      : joinBindings(c, stack, spec.outputAxes[i],
                                     /*newAxis=*/true);
    if (failed(joined))
      return failure();
    states.push_back(*joined);
  }
  return states;
}

/// Scan of operator set 8: each sample of the batch, the first dimension of all
/// inputs, is scanned along the second.
static LogicalResult importBatchedScan(NodeContext &c) {
  if (c.has(0))
    return c.fail("lengths of sequences are not supported");
  Bindings inputs, slices;
  for (unsigned i = 1; i < c.numInputs(); ++i)
    inputs.push_back(c.has(i) ? c.binding(i) : Binding());
  auto spec = scanSpec(c, inputs.size(), /*batched=*/true);
  if (failed(spec))
    return failure();
  int64_t batch = -1;
  for (Binding &input : inputs) {
    auto shape = tensorShape(c, input, "one of its inputs");
    if (failed(shape))
      return failure();
    if (shape->empty() || (batch >= 0 && batch != shape->front()))
      return c.fail("its inputs have no batch or different ones");
    batch = shape->front();
  }
  if (batch > maxBatch)
    return c.fail("scans a batch of more than " + Twine(maxBatch) + " samples");
  std::vector<Bindings> stacks;
  for (int64_t sample = 0; sample < batch; ++sample) {
    slices.clear();
    for (Binding &input : inputs) {
      FailureOr<Binding> slice = elementAt(c, input, 0, sample);
      if (failed(slice))
        return failure();
      slices.push_back(*slice);
    }
    FailureOr<Bindings> results = runScan(c, *spec, slices);
    if (failed(results))
      return failure();
    stacks.resize(results->size());
    for (auto [stack, result] : llvm::zip(stacks, *results))
      stack.push_back(result);
  }
  Bindings results;
  for (Bindings &stack : stacks) {
    FailureOr<Binding> joined = joinBindings(c, stack, 0, /*newAxis=*/true);
    if (failed(joined))
      return failure();
    results.push_back(*joined);
  }
  return setAll(c, results);
}

static LogicalResult importScan(NodeContext &c) {
  if (c.node.version() < 9)
    return importBatchedScan(c);
  Bindings inputs;
  for (unsigned i = 0; i < c.numInputs(); ++i) {
    if (!c.has(i))
      return c.fail("input " + Twine(i) + " is missing");
    inputs.push_back(c.binding(i));
  }
  auto spec = scanSpec(c, inputs.size(), /*batched=*/false);
  if (failed(spec))
    return failure();
  FailureOr<Bindings> results = runScan(c, *spec, inputs);
  return failed(results) ? failure() : setAll(c, *results);
}

//===----------------------------------------------------------------------===//
// SequenceMap
//===----------------------------------------------------------------------===//

/// Runs the body on the elements of the first input and, beside each, those of
/// other sequences at its place and tensors as they are.
static LogicalResult importSequenceMap(NodeContext &c) {
  const onnx::GraphProto *body = c.node.graphAttr("body");
  if (!body || !c.binding(0).sequence)
    return body ? c.fail("its input 0 is not a sequence") : failure();
  size_t length = c.binding(0).sequence->size();
  std::vector<std::vector<Binding>> outputs(body->output_size());
  for (size_t at = 0; at < length; ++at) {
    Bindings inputs;
    for (unsigned i = 0; i < c.numInputs(); ++i) {
      if (!c.has(i))
        return c.fail("input " + Twine(i) + " is missing");
      const auto &elements = c.binding(i).sequence;
      if (elements && elements->size() != length)
        return c.fail("its sequences have " + Twine(length) + " and " +
                      Twine(elements->size()) + " elements");
      inputs.push_back(elements ? (*elements)[at] : c.binding(i));
    }
    FailureOr<Bindings> results = c.importGraph(*body, inputs);
    if (failed(results))
      return failure();
    for (auto [output, result] : llvm::zip(outputs, *results))
      output.push_back(result);
  }
  Bindings results;
  for (std::vector<Binding> &output : outputs)
    results.push_back(Binding::list(std::move(output)));
  return setAll(c, results);
}

void zero::onnx_import::addControlFlowHandlers(HandlerTable &table) {
  table["If"] = {importIf, 1};
  table["Loop"] = {importLoop, 0};
  table["Scan"] = {importScan, 0};
  table["SequenceMap"] = {importSequenceMap, 1};
}
