//===- GraphImporter.h - From ONNX nodes to operations ---------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks the graph in order. What a name stands for is a Binding: a tensor
// known at import, a parameter, a value of the IR, or a sequence of these. A
// call of a function of the model is replaced by its body; any other node whose
// inputs are all known is evaluated; any other is given to the handler of its
// operator, through a NodeContext.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_GRAPHIMPORTER_H
#define ZERO_LIB_IMPORT_GRAPHIMPORTER_H

// GCC needs these two before the generated op headers.
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

#include "dialects/Train/ScanBuilder.h"
#include "dialects/Zero/Zero.h"
#include "lib/Import/Evaluator.h"
#include "lib/Import/Parameters.h"
#include "lib/Import/Rebatch.h"
#include "lib/Import/RowLists.h"
#include "lib/Import/Scope.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <list>

namespace mlir::zero::onnx_import {

/// A loop of the IR while its body is imported.
struct LoopImport {
  /// Where reads of parameters go.
  OpBuilder::InsertPoint outside;
  /// Its body holds what must be imported for each step.
  bool refused = false;
};

/// Loops of so few steps are unrolled, and those of more have at most so many.
inline constexpr int64_t maxUnrolledSteps = 4;
inline constexpr int64_t maxLoopSteps = int64_t(1) << 24;

class GraphImporter {
public:
  GraphImporter(const Model &model, Parameters &parameters,
                const ImportOptions &options, ModuleOp module);

  /// Makes the module's content: the parameters and the function @forward.
  LogicalResult run();

  /// The import is one of the two that change the batch. Outlives this.
  void setRebatch(Rebatch *both) { rebatch = both; }

private:
  friend class NodeContext;

  void declareParameters();
  LogicalResult bindInputs(SmallVectorImpl<Type> &types,
                           SmallVectorImpl<StringRef> &names);
  LogicalResult bindValue(const onnx::ValueInfoProto &input,
                          const InputValue &value);
  /// Binds an input that is a sequence to the tensors that are given for it.
  LogicalResult bindSequence(const onnx::ValueInfoProto &input);
  FailureOr<Binding> givenTensor(StringRef name, const onnx::TypeProto &type,
                                 const InputValue &value);
  LogicalResult inputShape(const onnx::ValueInfoProto &input,
                           SmallVectorImpl<int64_t> &shape);
  LogicalResult importNode(const onnx::NodeProto &proto, Location loc);
  LogicalResult correctShapes(NodeReader &node,
                              MutableArrayRef<Binding *> inputs,
                              std::list<Binding> &made);
  LogicalResult addToRebatch(NodeReader &node);
  bool isCount(NodeReader &node, ArrayRef<Binding *> inputs);
  FailureOr<SmallVector<Binding *>> inputsOf(NodeReader &node);
  LogicalResult tryEvaluate(NodeReader &node, ArrayRef<Binding *> inputs,
                            bool &done);
  bool countsRows(NodeReader &node, ArrayRef<Binding *> inputs);
  LogicalResult runHandler(NodeReader &node, ArrayRef<Binding *> inputs);
  LogicalResult bindOutputs(NodeReader &node, MutableArrayRef<Binding> results);
  void remarkOnNorms();
  // Results of the function (Outputs.cpp).
  struct Outputs {
    SmallVector<Value> values;
    SmallVector<DictionaryAttr> attributes;
    llvm::StringSet<> names;
  };
  LogicalResult appendOutput(StringRef name, const onnx::TypeProto &declared,
                             Binding &binding, Outputs &outputs);
  LogicalResult appendTensor(StringRef name, const onnx::TypeProto &declared,
                             Binding &binding, Outputs &outputs);
  LogicalResult checkDeclared(StringRef name, const onnx::TypeProto &declared,
                              RankedTensorType type);
  LogicalResult finish();

  // Subgraphs and functions (Scope.cpp).
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
  LogicalResult findFunctions();
  const onnx::FunctionProto *functionOf(const onnx::NodeProto &node) const;
  /// The version of the operator set of `domain` for nodes of this scope.
  int64_t opsetOf(StringRef domain) const;
  LogicalResult callFunction(NodeReader &node,
                             const onnx::FunctionProto &function,
                             ArrayRef<Binding *> inputs);
  FailureOr<const BodyFacts *> factsOf(const onnx::GraphProto &graph,
                                       NodeReader &node);
  /// Imports `graph`, a subgraph of `node`; what its outputs stand for.
  FailureOr<SmallVector<Binding>> importSubgraph(NodeReader &node,
                                                 const onnx::GraphProto &graph,
                                                 ArrayRef<Binding> inputs);
  FailureOr<SmallVector<Binding>> importBody(NodeReader &node, Scope &inner,
                                             const Nodes &nodes,
                                             ArrayRef<StringRef> outputs);
  /// The location of `node` in the body of a node at `outer`.
  Location innerLoc(const onnx::NodeProto &node, Location outer);

  /// The tensor a binding stands for if it is known at import.
  const HostTensor *hostOf(Binding &binding);
  /// The binding as a value of the IR; null after an error.
  Value valueOf(Binding &binding, Location loc);
  Value readParam(Param &param, Location loc);
  Value readCopy(Param &param, Location loc);
  Value constant(const HostTensor &tensor, Location loc);

  const Model &model;
  Parameters &parameters;
  const ImportOptions &options;
  ModuleOp module;
  MLIRContext *context;
  Location fileLoc;
  OpBuilder builder;
  func::FuncOp function;
  UseCounts mainUses;
  Scope mainScope;
  /// Where names are looked up now.
  Scope *scope = &mainScope;
  llvm::StringMap<const onnx::FunctionProto *> functions;
  /// By subgraph and function of the file.
  DenseMap<const void *, std::unique_ptr<BodyFacts>> bodies;
  RowLists rowLists;
  unsigned depth = 0;
  int64_t bodyNodes = 0, fileNodes = 0;
  /// Constants stand together at the top of the function, each once.
  DenseMap<Attribute, Value> constants;
  Operation *lastConstant = nullptr;
  DenseMap<Param *, Value> reads;
  ExternalFiles files;
  HostBudget hostBudget;
  int64_t trainedNorms = 0, tracedNorms = 0;
  int64_t randomSites = 0;
  Rebatch *rebatch = nullptr;
  /// The outermost loop whose body is being imported once, if any.
  LoopImport *loop = nullptr;
  /// Bodies that could not be imported once.
  DenseSet<const void *> unrolledBodies;
};

/// What the handler of an operator sees of one node.
class NodeContext {
public:
  NodeContext(GraphImporter &importer, NodeReader &node,
              ArrayRef<Binding *> inputs, MutableArrayRef<Binding> results)
      : node(node), b(importer.builder), importer(importer), inputs(inputs),
        results(results) {}

  NodeReader &node;
  OpBuilder &b;

  Location loc() const { return node.location(); }
  unsigned numInputs() const { return inputs.size(); }
  unsigned numResults() const { return results.size(); }
  bool has(unsigned i) const { return i < inputs.size() && inputs[i]; }
  /// Input `i`, which is there.
  Binding &binding(unsigned i) { return *inputs[i]; }
  /// Input `i` as a value; null after an error.
  Value value(unsigned i);
  /// Input `i` if it is known at import, else null.
  const HostTensor *host(unsigned i);
  /// Shape and element type of input `i`, if it is a tensor.
  std::optional<SmallVector<int64_t>> shape(unsigned i);
  std::optional<DType> dtype(unsigned i);
  /// The integers of input `i`; an error when they are not known at import.
  std::optional<SmallVector<int64_t>> ints(unsigned i, StringRef what);
  /// Whether input `i` is an initializer of which `elements` are too many for
  /// the IR.
  bool staysInFile(unsigned i, int64_t elements) const;
  /// Whether result `i` is used by anything.
  bool isUsed(unsigned i) const;
  /// How often the value that is input `i` is used in the graph; of values
  /// from outside of a subgraph, which may run often, at least 2.
  unsigned usesOfInput(unsigned i) const;
  /// A model with a step of its own is trained as it says.
  bool isTraining() const {
    return importer.options.training && !importer.model.training;
  }
  /// Counts a BatchNormalization that is imported in its training form though
  /// it was exported in the other.
  void noteTrainedNorm() { ++importer.trainedNorms; }
  /// Counts one that was exported in its training form.
  void noteTracedNorm() { ++importer.tracedNorms; }
  /// The number of the next node that draws random numbers.
  int64_t newRandomSite() { return importer.randomSites++; }
  /// The most rows that a list may have whose rows the data select.
  std::optional<int64_t> rowCapacity() const {
    return importer.options.rowCapacity;
  }
  /// See RowLists.h.
  Value makeRowList(Value coordinates, Value mask) {
    if (refuseLoop())
      return {};
    return importer.rowLists.make(b, loc(), coordinates, mask);
  }
  /// What may still be made at import.
  HostBudget &hostBudget() { return importer.hostBudget; }
  bool isFromPyTorch() const { return importer.model.fromPyTorch(); }
  /// What a name of the graph stands for, as a value; null after an error.
  Value valueNamed(StringRef name);
  /// What operator `op` of the default domain makes of `inputs` with this
  /// node's attributes; null after an error.
  Value call(StringRef op, MutableArrayRef<Binding> inputs);
  /// What the backward pass of `loss` starts from; null stands for 1.
  Value lossSeed(Value loss);

  void set(unsigned i, Binding binding) { results[i] = std::move(binding); }
  LogicalResult result(Value value);
  /// Imports `graph`, an attribute of this node, with its inputs standing for
  /// `inputs`, here and now; what its outputs stand for.
  FailureOr<SmallVector<Binding>> importGraph(const onnx::GraphProto &graph,
                                              ArrayRef<Binding> inputs) {
    return importer.importSubgraph(node, graph, inputs);
  }
  /// Whether it is worth trying to import a body once; `key` is what it is of.
  bool mayLoop(int64_t steps, const void *key) const {
    return steps > maxUnrolledSteps && steps <= maxLoopSteps &&
           !importer.unrolledBodies.contains(key);
  }
  /// A loop whose body is imported once, by `step`, which adds what is carried
  /// and scanned and gives what is yielded. Null, with nothing left behind,
  /// where the body (known by `key`) has to be imported for each step.
  using StepFn = function_ref<LogicalResult(train::ScanBuilder &,
                                            SmallVectorImpl<Value> &carried,
                                            SmallVectorImpl<Value> &stacked)>;
  train::ScanOp tryLoop(int64_t steps, bool reverse, const void *key,
                        StepFn step);
  /// Where a node differs between steps: inside of a loop that is imported
  /// once, the loop has to be unrolled.
  bool refuseLoop() {
    if (importer.loop)
      importer.loop->refused = true;
    return importer.loop;
  }
  /// Result `i` as set before; null if it was not.
  Value made(unsigned i) const {
    return i < results.size() ? results[i].value : Value();
  }
  LogicalResult fail(const Twine &message);

  /// Creates and verifies an operation; null after an error, and when one of
  /// the operands is null. Sound operands give an operation with valid types.
  template <typename OpTy>
  OpTy op(ValueRange operands, ArrayRef<NamedAttribute> attributes = {}) {
    if (node.failed() || llvm::is_contained(operands, Value()))
      return {};
    FailureOr<OpTy> made =
        train::createChecked<OpTy>(b, loc(), operands, attributes);
    if (failed(made) || !check(*made)) {
      node.setFailed();
      return {};
    }
    return *made;
  }
  /// The first result of such an operation.
  template <typename OpTy>
  Value emit(ValueRange operands, ArrayRef<NamedAttribute> attributes = {}) {
    OpTy made = op<OpTy>(operands, attributes);
    return made ? made->getResult(0) : Value();
  }

  NamedAttribute flag(StringRef name) {
    return b.getNamedAttr(name, b.getUnitAttr());
  }
  NamedAttribute integer(StringRef name, int64_t value) {
    return b.getNamedAttr(name, b.getI64IntegerAttr(value));
  }
  NamedAttribute number(StringRef name, double value) {
    return b.getNamedAttr(name, b.getF64FloatAttr(value));
  }
  NamedAttribute list(StringRef name, ArrayRef<int64_t> values) {
    return b.getNamedAttr(name, b.getDenseI64ArrayAttr(values));
  }

  Value reshape(Value value, ArrayRef<int64_t> shape);
  Value transpose(Value value, ArrayRef<int64_t> permutation);
  Value broadcast(Value value, ArrayRef<int64_t> shape);
  Value constant(const HostTensor &tensor) {
    return importer.constant(tensor, loc());
  }
  /// What a binding that is no input stands for, as value() and host() do.
  Value valueOf(Binding &binding) { return importer.valueOf(binding, loc()); }
  const HostTensor *hostOf(Binding &binding);
  std::optional<SmallVector<int64_t>> bindingShape(Binding &binding);
  /// A rank-0 constant of the element type of `like`.
  Value scalar(Value like, double value);

private:
  bool check(Operation *op);
  bool isLoop(train::ScanOp scan);

  GraphImporter &importer;
  ArrayRef<Binding *> inputs;
  MutableArrayRef<Binding> results;
};

/// The type of what is given for an input: of an optional, its element.
const onnx::TypeProto &givenType(const onnx::ValueInfoProto &input);

inline RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}
inline ArrayRef<int64_t> shapeOf(Value value) {
  return typeOf(value).getShape();
}

/// `tensor` without the repetitions that broadcasting it to a tensor of shape
/// `others` makes again: exporters expand masks to the whole batch.
HostTensor compactFor(const HostTensor &tensor, ArrayRef<int64_t> others);

/// Recognizes a chain of operators that ends in `value` as GELU, which is then
/// one operation that saves nothing but its input for the gradient. Null if it
/// is none.
Value matchGelu(NodeContext &c, Value value);

using HandlerFn = std::function<LogicalResult(NodeContext &)>;

/// How an operator becomes IR. `since` is the first version of the operator
/// set that has it in a form the handler knows.
struct Handler {
  HandlerFn fn;
  unsigned minInputs = 0;
  int64_t since = 1;
};

/// By operator; by "DOMAIN:OPERATOR" for those of other domains.
using HandlerTable = llvm::StringMap<Handler>;
const HandlerTable &handlers();

// One function per family of operators.
void addElementwiseHandlers(HandlerTable &table);
void addShapeHandlers(HandlerTable &table);
void addIndexHandlers(HandlerTable &table);
void addSamplingHandlers(HandlerTable &table);
void addResizeHandlers(HandlerTable &table);
void addEinsumHandlers(HandlerTable &table);
void addLayoutHandlers(HandlerTable &table);
void addContractionHandlers(HandlerTable &table);
void addConvolutionHandlers(HandlerTable &table);
void addDeformConvHandlers(HandlerTable &table);
void addPoolingHandlers(HandlerTable &table);
void addLossHandlers(HandlerTable &table);
void addQuantizedHandlers(HandlerTable &table);
void addSignalHandlers(HandlerTable &table);
void addNormHandlers(HandlerTable &table);
void addReductionHandlers(HandlerTable &table);
void addSequenceHandlers(HandlerTable &table);
void addTrainingHandlers(HandlerTable &table);
void addTrainingOptimizerHandlers(HandlerTable &table);
void addAttentionHandlers(HandlerTable &table);
void addRandomHandlers(HandlerTable &table);
void addControlFlowHandlers(HandlerTable &table);
void addNonZeroHandlers(HandlerTable &table);
void addRecurrentHandlers(HandlerTable &table);
void addRotaryHandlers(HandlerTable &table);
void addAttentionRelativeHandlers(HandlerTable &table);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_GRAPHIMPORTER_H
