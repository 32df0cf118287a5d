//===- GraphImporter.cpp - From ONNX nodes to operations ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The walk over the graph.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Arity.h"
#include "lib/Import/AttributeInputs.h"
#include "lib/Import/Bindings.h"
#include "lib/Import/Samples.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::zero::onnx_import;

// What compute uses of constants that do not stay in the weights file becomes
// an arith.constant of at most this size.
static constexpr int64_t maxConstantBytes = int64_t(64) << 20;

GraphImporter::GraphImporter(const Model &model, Parameters &parameters,
                             const ImportOptions &options, ModuleOp module)
    : model(model), parameters(parameters), options(options), module(module),
      context(module.getContext()),
      fileLoc(FileLineColLoc::get(context, model.path, 0, 0)), builder(context),
      files(model.path), hostBudget(model.file->bytes().size()) {}

//===----------------------------------------------------------------------===//
// Parameters and inputs
//===----------------------------------------------------------------------===//

static void declareParam(OpBuilder &b, Location loc, Param &param,
                         StringRef file) {
  Type element = toType(param.data->type, b.getContext());
  auto type = RankedTensorType::get(param.data->shape, element);
  auto op = zero::ParamOp::create(b, loc, param.name, type);
  op.setInitFile(file);
  op.setUnit(param.unit);
  op.setFrozen(param.role == Role::Frozen || param.role == Role::Constant);
  op.setBuffer(param.role == Role::Buffer);
  if (!param.tied.empty())
    op.setTiedAttr(b.getStrArrayAttr(
        SmallVector<StringRef>(param.tied.begin(), param.tied.end())));
}

static bool isLargeConstant(const Param &param) {
  return staysInFile(param, param.data->size());
}

void GraphImporter::declareParameters() {
  StringRef file =
      options.weightsName.empty() ? options.weightsPath : options.weightsName;
  for (const std::unique_ptr<Param> &param : parameters.all()) {
    mainScope.bindings[param->value] = Binding(param.get());
    if (param->copyOf ||
        (param->role == Role::Constant && !isLargeConstant(*param)))
      continue;
    declareParam(builder, fileLoc, *param, file);
  }
}

const onnx::TypeProto &
zero::onnx_import::givenType(const onnx::ValueInfoProto &input) {
  const onnx::TypeProto &type = input.type();
  return type.has_optional_type() ? type.optional_type().elem_type() : type;
}

LogicalResult GraphImporter::inputShape(const onnx::ValueInfoProto &input,
                                        SmallVectorImpl<int64_t> &shape) {
  auto error = [&] {
    return emitError(fileLoc) << "input '" << printable(input.name()) << "' ";
  };
  const onnx::TypeProto &type = givenType(input);
  if (!type.has_tensor_type() || !type.tensor_type().has_shape())
    return error() << "is not a tensor with a shape";
  for (const auto &dim : type.tensor_type().shape().dim()) {
    int64_t size = dim.dim_value();
    if (dim.has_dim_param() && !dim.dim_param().empty()) {
      auto given = options.dims.find(dim.dim_param());
      if (given == options.dims.end())
        return error() << "has the symbolic dimension '"
                       << printable(dim.dim_param())
                       << "': give its size with --dim "
                       << printable(dim.dim_param()) << "=SIZE";
      size = given->second;
    } else if (!dim.has_dim_value()) {
      return error() << "has a dimension with neither size nor name; export "
                        "it with one";
    }
    if (size < 0)
      return error() << "has the bad dimension " << size;
    shape.push_back(size);
  }
  if (rebatch)
    rebatch->addInput(input.name(), shape);
  if (!countElements(shape))
    return error() << "has more elements than can be counted";
  return success();
}

LogicalResult GraphImporter::bindInputs(SmallVectorImpl<Type> &types,
                                        SmallVectorImpl<StringRef> &names) {
  for (const auto &input : model.graph().input()) {
    // Old exporters list the weights as inputs, too.
    if (mainScope.bindings.count(input.name()))
      continue;
    if (givenType(input).has_sequence_type()) {
      if (failed(bindSequence(input)))
        return failure();
      continue;
    }
    if (auto value = options.values.find(input.name());
        value != options.values.end()) {
      if (failed(bindValue(input, value->second)))
        return failure();
      continue;
    }
    SmallVector<int64_t> shape;
    if (failed(inputShape(input, shape)))
      return failure();
    int32_t number = givenType(input).tensor_type().elem_type();
    std::optional<DType> type = dtypeFromOnnx(number);
    if (!type)
      return emitError(fileLoc)
             << "input '" << printable(input.name()) << "' has element type "
             << number << ", which is not supported";
    types.push_back(RankedTensorType::get(shape, toType(*type, context)));
    names.push_back(input.name());
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

const HostTensor *GraphImporter::hostOf(Binding &binding) {
  Param *param = binding.param;
  if (!binding.host && param && param->role == Role::Constant &&
      param->data->size() <= maxHostElements)
    binding.host = std::make_shared<HostTensor>(param->data->decode());
  return binding.host.get();
}

Value GraphImporter::constant(const HostTensor &tensor, Location loc) {
  if (tensor.size() * byteSize(tensor.type) > maxConstantBytes) {
    emitError(loc) << "needs a constant of " << tensor.size()
                   << " elements in the IR; the limit is "
                   << (maxConstantBytes >> 20) << " MiB";
    return {};
  }
  DenseElementsAttr attr = tensor.toAttr(context);
  Value &value = constants[attr];
  if (value)
    return value;
  OpBuilder::InsertionGuard guard(builder);
  if (lastConstant)
    builder.setInsertionPointAfter(lastConstant);
  else
    builder.setInsertionPointToStart(&function.getBody().front());
  lastConstant = arith::ConstantOp::create(builder, loc, attr);
  return value = lastConstant->getResult(0);
}

/// A read of the parameter that `param` is a copy of, turned where the copy is
/// its transpose.
Value GraphImporter::readCopy(Param &param, Location loc) {
  Value whole = readParam(*param.copyOf, loc);
  if (!param.transposed)
    return whole;
  OpBuilder::InsertionGuard guard(builder);
  if (loop)
    builder.restoreInsertionPoint(loop->outside);
  auto transposed = train::createChecked<train::TransposeOp>(
      builder, loc, whole,
      builder.getNamedAttr("permutation",
                           builder.getDenseI64ArrayAttr({1, 0})));
  return failed(transposed) ? Value() : Value(*transposed);
}

Value GraphImporter::readParam(Param &param, Location loc) {
  if (Value value = reads.lookup(&param))
    return value;
  Value value;
  if (param.copyOf) {
    value = readCopy(param, loc);
  } else {
    auto type = RankedTensorType::get(param.data->shape,
                                      toType(param.data->type, context));
    OpBuilder::InsertionGuard guard(builder);
    if (loop)
      builder.restoreInsertionPoint(loop->outside);
    value = zero::ReadOp::create(builder, loc, type, param.name);
  }
  reads[&param] = value;
  return value;
}

Value GraphImporter::valueOf(Binding &binding, Location loc) {
  if (binding.value)
    return binding.value;
  if (binding.param && (binding.param->role != Role::Constant ||
                        isLargeConstant(*binding.param)))
    return readParam(*binding.param, loc);
  if (binding.countsRows) {
    emitError(loc) << "computes with the number of rows that the data select "
                      "(NonZero), which is known when it runs only";
    return {};
  }
  if (const HostTensor *tensor = hostOf(binding))
    return constant(*tensor, loc);
  emitError(loc) << (binding.sequence
                         ? "uses a sequence where a tensor is expected"
                     : binding.isNone
                         ? "uses an optional without an element where a tensor "
                           "is expected"
                         : "uses a constant that is too large to import");
  return {};
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

/// Shape (with its slice of dimensions) and Size.
static FailureOr<HostTensor> evaluateShape(NodeReader &node, Binding *input) {
  auto shape = input ? shapeOfBinding(*input) : std::nullopt;
  if (!shape) {
    node.error() << "its input is not a tensor";
    return failure();
  }
  if (node.op() == "Size") {
    HostTensor size(DType::I64, {});
    size.ints[0] = *countElements(*shape);
    return size;
  }
  int64_t rank = shape->size();
  auto bound = [&](int64_t v) {
    return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank);
  };
  int64_t start = bound(node.intAttr("start", 0));
  int64_t end = bound(node.intAttr("end", rank));
  return HostTensor::fromInts(
      ArrayRef(*shape).slice(start, std::max<int64_t>(end - start, 0)));
}

/// Whether what `node` makes of known inputs depends on how long a list is
/// whose rows the data select.
bool GraphImporter::countsRows(NodeReader &node, ArrayRef<Binding *> inputs) {
  bool isShape = node.op() == "Shape" || node.op() == "Size";
  return llvm::any_of(inputs, [&](Binding *input) {
    return input && (input->countsRows ||
                     (isShape && input->value && rowLists.find(input->value)));
  });
}

/// Evaluates nodes that need no IR; `done` says whether this was one.
LogicalResult GraphImporter::tryEvaluate(NodeReader &node,
                                         ArrayRef<Binding *> inputs,
                                         bool &done) {
  SmallVector<HostTensor> results;
  FailureOr<HostTensor> single = failure();
  done = true;
  if (!node.isOfDefaultDomain()) {
    done = false;
    return success();
  }
  if (node.op() == "Constant") {
    single = evaluateConstant(node, files);
  } else if (node.op() == "Shape" || node.op() == "Size") {
    single = evaluateShape(node, inputs.empty() ? nullptr : inputs[0]);
  } else {
    Evaluator evaluator = findEvaluator(node.op());
    SmallVector<const HostTensor *> tensors;
    for (Binding *input : inputs) {
      tensors.push_back(input ? hostOf(*input) : nullptr);
      done &= !input || tensors.back();
    }
    done &= bool(evaluator.fn) && !inputs.empty();
    if (!done)
      return success();
    Evaluation evaluation{node, tensors, results, hostBudget};
    if (failed(evaluate(evaluator, evaluation)))
      return failure();
  }
  if (results.empty() && (failed(single) || node.failed()))
    return failure();
  if (results.empty())
    results.push_back(std::move(*single));
  SmallVector<Binding> bound;
  bool counts = countsRows(node, inputs);
  for (HostTensor &tensor : results) {
    bound.push_back(Binding(std::move(tensor)));
    bound.back().countsRows = counts;
  }
  return bindOutputs(node, bound);
}

/// The name of an operator in the table of handlers.
static std::string handlerKey(NodeReader &node) {
  if (node.isOfDefaultDomain())
    return node.op().str();
  return (node.domain() + ":" + node.op()).str();
}

LogicalResult GraphImporter::runHandler(NodeReader &node,
                                        ArrayRef<Binding *> inputs) {
  auto it = handlers().find(handlerKey(node));
  // Operators whose inputs say the shape of the result have an evaluator only.
  if (it == handlers().end() && node.isOfDefaultDomain() &&
      findEvaluator(node.op()).fn)
    return node.error()
           << "its inputs must be known at import; they depend on the data";
  if (it == handlers().end() || node.version() < it->second.since)
    return emitError(node.location())
           << "operator '" << printable(node.op()) << "' of domain '"
           << (node.isOfDefaultDomain() ? "ai.onnx" : printable(node.domain()))
           << "', opset " << node.version() << " is not supported";
  const Handler &handler = it->second;
  for (unsigned i = 0; i < handler.minInputs; ++i)
    if (i >= inputs.size() || !inputs[i])
      return node.error() << "input " << i << " is missing";
  SmallVector<Binding> results(node.message().output_size());
  NodeContext nodeContext(*this, node, inputs, results);
  if (failed(handler.fn(nodeContext)) || node.failed())
    return failure();
  return bindOutputs(node, results);
}

LogicalResult GraphImporter::bindOutputs(NodeReader &node,
                                         MutableArrayRef<Binding> results) {
  auto names = node.message().output();
  for (int i = 0; i < names.size(); ++i) {
    if (names[i].empty())
      continue;
    // A tensor that no other binding shares is a new one.
    int64_t elements = 0;
    if (i < int(results.size()) && results[i].host.use_count() == 1)
      elements += results[i].host->size();
    // So is a sequence; what an element takes is several numbers large.
    if (i < int(results.size()) && results[i].sequence.use_count() == 1)
      elements += 16 * results[i].sequence->size();
    if (failed(hostBudget.take(elements, node)))
      return failure();
    bool made = i < int(results.size()) && results[i].exists();
    Binding &binding = scope->bindings[names[i]];
    binding = made ? std::move(results[i]) : Binding();
    if (!made && scope->uses->count(names[i]))
      return node.error() << "its output " << i << " ('" << printable(names[i])
                          << "') is used, which is not supported";
  }
  return rebatch && scope->isMainGraph() ? addToRebatch(node) : success();
}

/// Whether `node` is a Range of 0, 1, 2, ...
bool GraphImporter::isCount(NodeReader &node, ArrayRef<Binding *> inputs) {
  if (node.op() != "Range" || inputs.size() != 3 || !inputs[0] || !inputs[2])
    return false;
  const HostTensor *start = hostOf(*inputs[0]), *step = hostOf(*inputs[2]);
  return start && step && start->ints == std::vector<int64_t>{0} &&
         step->ints == std::vector<int64_t>{1};
}

/// Gives `node` the shapes and constants that it needs at the new batch in
/// place of those that are written down.
LogicalResult GraphImporter::correctShapes(NodeReader &node,
                                           MutableArrayRef<Binding *> inputs,
                                           std::list<Binding> &made) {
  if (!node.isOfDefaultDomain())
    return success();
  for (auto [i, input] : llvm::enumerate(inputs))
    if (const HostTensor *tensor = input ? hostOf(*input) : nullptr)
      if (auto other =
              rebatch->constantFor(node, i, *tensor, hostBudget.room()))
        input = &made.emplace_back(std::move(*other));
  bool slices = node.op() == "Slice";
  unsigned at = slices ? 2 : 1; // the ends, or the shape
  if (inputs.size() <= at || !inputs[at] ||
      (!slices && node.op() != "Reshape" && node.op() != "Expand" &&
       !isCount(node, inputs)))
    return success();
  const HostTensor *literal = hostOf(*inputs[at]);
  if (!literal || isFloat(literal->type))
    return success();
  SmallVector<int64_t> axes =
      llvm::to_vector(llvm::seq<int64_t>(0, literal->ints.size()));
  if (slices && inputs.size() > 3 && inputs[3])
    if (const HostTensor *given = hostOf(*inputs[3]))
      axes.assign(given->ints.begin(), given->ints.end());
  auto corrected = rebatch->correct(
      node, inputs[0] ? shapeOfBinding(*inputs[0]) : std::nullopt,
      literal->ints, axes);
  if (failed(corrected))
    return failure();
  if (*corrected) {
    HostTensor tensor(literal->type, literal->shape);
    tensor.ints.assign((*corrected)->begin(), (*corrected)->end());
    inputs[at] = &made.emplace_back(std::move(tensor));
  }
  return success();
}

LogicalResult GraphImporter::addToRebatch(NodeReader &node) {
  SmallVector<MaybeShape> shapes;
  for (const std::string &name : node.message().output())
    shapes.push_back(name.empty() ? std::nullopt
                                  : shapeOfBinding(scope->bindings[name]));
  return rebatch->add(node, shapes);
}

/// What the inputs stand for, null where one is left out. The model's graph has
/// been checked; in other bodies names may be wrong.
FailureOr<SmallVector<Binding *>> GraphImporter::inputsOf(NodeReader &node) {
  SmallVector<Binding *> inputs;
  for (const std::string &name : node.message().input()) {
    Binding *binding = name.empty() ? nullptr : scope->find(name);
    if (!binding && !name.empty() && !scope->isMainGraph()) {
      node.error() << "uses the value '" << printable(name)
                   << "', which nothing before it makes";
      return failure();
    }
    inputs.push_back(binding && binding->exists() ? binding : nullptr);
  }
  return inputs;
}

LogicalResult GraphImporter::importNode(const onnx::NodeProto &proto,
                                        Location loc) {
  NodeReader node(proto, loc, opsetOf(proto.domain()),
                  scope->call ? &scope->call->attributes : nullptr);
  FailureOr<SmallVector<Binding *>> inputs = inputsOf(node);
  const onnx::FunctionProto *function = functionOf(proto);
  if (failed(inputs) || (!function && failed(checkArity(node))))
    return failure();
  // Parameters that an exporter had turned into copies of others.
  if (scope->isMainGraph() && node.isOfDefaultDomain() &&
      proto.op_type() == "Identity" && proto.output_size() == 1)
    if (Param *param = parameters.find(proto.output(0))) {
      scope->bindings[proto.output(0)] = Binding(param);
      return success();
    }
  if (function)
    return callFunction(node, *function, *inputs);
  std::list<Binding> made;
  addAttributeInputs(node, *inputs, made);
  if (rebatch && rebatch->makesNew() && scope->isMainGraph() &&
      failed(correctShapes(node, *inputs, made)))
    return failure();
  bool done;
  if (failed(tryEvaluate(node, *inputs, done)))
    return failure();
  if (done)
    return success();
  if (failed(runHandler(node, *inputs)))
    return failure();
  return rowLists.follow();
}

//===----------------------------------------------------------------------===//
// The whole graph
//===----------------------------------------------------------------------===//

void GraphImporter::remarkOnNorms() {
  if (trainedNorms)
    emitRemark(fileLoc) << trainedNorms
                        << " BatchNormalization nodes were exported in their "
                           "evaluation form; they are trained in their "
                           "training form";
  if (tracedNorms && model.fromPyTorch())
    emitRemark(fileLoc) << tracedNorms
                        << " BatchNormalization nodes were exported in their "
                           "training form; tracing has updated their running "
                           "statistics once with the example input";
}

LogicalResult GraphImporter::finish() {
  Outputs outputs;
  for (const auto &output : model.graph().output())
    if (failed(appendOutput(output.name(), output.type(),
                            mainScope.bindings[output.name()], outputs)))
      return failure();
  remarkOnNorms();
  func::ReturnOp::create(builder, fileLoc, outputs.values);
  if (failed(rowLists.finish(function)))
    return failure();
  function.setFunctionType(
      FunctionType::get(context, function.getFunctionType().getInputs(),
                        TypeRange(ValueRange(outputs.values))));
  function.setAllResultAttrs(outputs.attributes);
  // Constants and reads that only folded nodes or other operations' rewritten
  // operands needed.
  Block &body = function.getBody().front();
  IRRewriter rewriter(context);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
    else if (auto scan = dyn_cast<train::ScanOp>(op))
      train::eraseUnusedParts(rewriter, scan);
  // Large constants that were folded into others.
  llvm::StringSet<> read;
  for (auto op : body.getOps<zero::ReadOp>())
    read.insert(op.getSymbol());
  SymbolTable symbols(module);
  for (const std::unique_ptr<Param> &param : parameters.all())
    if (param->role == Role::Constant && !read.contains(param->name))
      if (Operation *symbol = symbols.lookup(param->name))
        symbols.erase(symbol);
  if (failed(placeSamples(function)))
    return failure();
  return verify(module);
}

LogicalResult GraphImporter::run() {
  builder.setInsertionPointToEnd(module.getBody());
  countUses(model.graph(), mainUses);
  mainScope.uses = &mainUses;
  fileNodes = model.graph().node_size();
  for (const onnx::FunctionProto &each : model.proto.functions())
    fileNodes += each.node_size();
  if (failed(findFunctions()))
    return failure();
  declareParameters();
  SmallVector<Type> types;
  SmallVector<StringRef> names;
  if (failed(bindInputs(types, names)))
    return failure();
  function = func::FuncOp::create(builder, fileLoc, "forward",
                                  builder.getFunctionType(types, {}));
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  SmallVector<DictionaryAttr> attributes;
  for (auto [i, name] : llvm::enumerate(names)) {
    attributes.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(kInputAttr, builder.getStringAttr(name))));
    mainScope.bindings[name] = Binding(Value(entry->getArgument(i)));
  }
  function.setAllArgAttrs(attributes);
  for (int i = 0, e = model.graph().node_size(); i < e; ++i)
    if (failed(importNode(model.graph().node(i), nodeLoc(model, i, context))))
      return failure();
  return finish();
}
