//===- Import.cpp - ONNX to train + zero ----------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library's entry: load, decide, import, write the weights, report.
//
//===----------------------------------------------------------------------===//

#include "zero/Import/Import.h"

#include "lib/Import/GraphImporter.h"
#include "lib/Import/SafeTensors.h"
#include "lib/Import/TrainingForms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::zero;
using namespace mlir::zero::onnx_import;

const HandlerTable &onnx_import::handlers() {
  static const HandlerTable table = [] {
    HandlerTable entries;
    addElementwiseHandlers(entries);
    addShapeHandlers(entries);
    addIndexHandlers(entries);
    addSamplingHandlers(entries);
    addResizeHandlers(entries);
    addEinsumHandlers(entries);
    addLayoutHandlers(entries);
    addContractionHandlers(entries);
    addConvolutionHandlers(entries);
    addDeformConvHandlers(entries);
    addPoolingHandlers(entries);
    addLossHandlers(entries);
    addQuantizedHandlers(entries);
    addSignalHandlers(entries);
    addNormHandlers(entries);
    addReductionHandlers(entries);
    addSequenceHandlers(entries);
    addAttentionHandlers(entries);
    addControlFlowHandlers(entries);
    addNonZeroHandlers(entries);
    addRecurrentHandlers(entries);
    addRandomHandlers(entries);
    addTrainingHandlers(entries);
    addRotaryHandlers(entries);
    addAttentionRelativeHandlers(entries);
    return entries;
  }();
  return table;
}

/// Sizes that fit no dimension are most often misspelled.
static void warnOfUnknownDims(const Model &model, const ImportOptions &options,
                              Location loc) {
  llvm::StringSet<> known;
  for (const auto &input : model.graph().input())
    for (const auto &dim : input.type().tensor_type().shape().dim())
      known.insert(dim.dim_param());
  for (const auto &[name, size] : options.dims)
    if (!known.contains(name))
      emitWarning(loc) << "--dim " << name
                       << ": no input has a dimension of that name";
}

/// A value for what is no input would have no effect.
static LogicalResult checkValues(const Model &model,
                                 const ImportOptions &options, Location loc) {
  llvm::StringSet<> known, sequences;
  for (const auto &input : model.graph().input())
    (givenType(input).has_sequence_type() ? sequences : known)
        .insert(input.name());
  // The tensors of a sequence are named NAME.0, NAME.1, ...
  for (const auto &[name, value] : options.values)
    if (!known.contains(name) &&
        !sequences.contains(StringRef(name).rsplit('.').first))
      return emitError(loc)
             << "--value " << name << ": the model has no input of that name";
  return success();
}

/// The batch that a model was exported at: the first dimension of its first
/// input, unless that has a name.
static std::optional<int64_t> fixedBatch(const Model &model,
                                         const ImportOptions &options) {
  llvm::StringSet<> weights;
  for (const TensorData &weight : model.initializers)
    weights.insert(weight.name);
  for (const auto &input : model.graph().input()) {
    if (weights.contains(input.name()) || options.values.count(input.name()))
      continue;
    const auto &shape = input.type().tensor_type().shape();
    if (shape.dim_size() == 0 || !shape.dim(0).has_dim_value() ||
        shape.dim(0).dim_value() <= 0)
      return std::nullopt;
    return shape.dim(0).dim_value();
  }
  return std::nullopt;
}

/// One of the imports that find out how to change the batch. It says nothing,
/// or nothing but errors.
static LogicalResult tryImport(const Model &model, const ImportOptions &options,
                               Rebatch &rebatch, Location loc,
                               bool saysErrors) {
  MLIRContext *context = loc.getContext();
  ScopedDiagnosticHandler quiet(context, [&](Diagnostic &diagnostic) {
    return success(!saysErrors ||
                   diagnostic.getSeverity() != DiagnosticSeverity::Error);
  });
  FailureOr<std::unique_ptr<Parameters>> parameters =
      Parameters::decide(model, options, context);
  if (failed(parameters))
    return failure();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  GraphImporter importer(model, **parameters, options, *module);
  importer.setRebatch(&rebatch);
  return success(succeeded(importer.run()) && succeeded(rebatch.finish()));
}

/// Imports at the old batch, which records the shapes, and finds out whether
/// rows that count to the old batch count samples: where the graph can only be
/// given the new batch if they do.
static LogicalResult recordShapes(const Model &model,
                                  const ImportOptions &options,
                                  Rebatch &rebatch, Location loc) {
  if (failed(tryImport(model, options, rebatch, loc, /*saysErrors=*/true)))
    return failure();
  rebatch.startNew();
  if (!rebatch.hasCounts())
    return success();
  Rebatch without = rebatch, with = rebatch;
  with.countSamples();
  if (failed(tryImport(model, options, without, loc, /*saysErrors=*/false)) &&
      succeeded(tryImport(model, options, with, loc, /*saysErrors=*/false)))
    rebatch.countSamples();
  return success();
}

/// Imports with what recordShapes has found out. What fails now, the graph as
/// it is does not.
static LogicalResult importAtNewBatch(GraphImporter &importer,
                                      const Rebatch &rebatch,
                                      MLIRContext *context) {
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      diagnostic << " (the graph was exported with batch " << rebatch.oldBatch()
                 << " and is imported with --batch " << rebatch.newBatch()
                 << ")";
    return failure(); // for the next handler
  });
  return success(succeeded(importer.run()) && succeeded(rebatch.finish()));
}

static void fillReport(const Parameters &parameters,
                       std::vector<ParamReport> &report) {
  for (const std::unique_ptr<Param> &param : parameters.all()) {
    const TensorData &data = *param->data;
    const char *role = param->role == Role::Trained  ? "trained"
                       : param->role == Role::Buffer ? "buffer"
                                                     : "constant";
    report.push_back(
        {param->value,
         std::vector<int64_t>(data.shape.begin(), data.shape.end()),
         safetensorsName(data.type).lower(), role, param->why});
  }
}

static LogicalResult writeWeights(const Model &model,
                                  const Parameters &parameters, ModuleOp module,
                                  StringRef path, Location loc) {
  SymbolTable symbols(module);
  std::vector<NamedTensor> tensors;
  for (const std::unique_ptr<Param> &param : parameters.all())
    if (symbols.lookup(param->name))
      tensors.push_back({param->name, param->data->type, param->data->shape,
                         param->data->bytes, param->data->file});
  if (model.training)
    for (const auto &[param, moment] : model.training->moments)
      if (symbols.lookup(moment.name))
        tensors.push_back({moment.name, moment.type, moment.shape, moment.bytes,
                           moment.file});
  if (llvm::Error error = writeSafeTensors(path, std::move(tensors)))
    return emitError(loc) << "weights file '" << path
                          << "': " << llvm::toString(std::move(error));
  return success();
}

FailureOr<OwningOpRef<ModuleOp>>
zero::importOnnx(StringRef path, MLIRContext &context,
                 const ImportOptions &options) {
  context.loadDialect<arith::ArithDialect, func::FuncDialect, ZeroDialect,
                      train::TrainDialect>();
  Location loc = FileLineColLoc::get(&context, path, 0, 0);
  FailureOr<std::unique_ptr<Model>> model =
      loadModel(path, &context, /*withTraining=*/options.found != nullptr);
  if (failed(model))
    return failure();
  warnOfUnknownDims(**model, options, loc);
  if (failed(takeArtifacts(**model, options, &context)))
    return failure();
  if (failed(checkValues(**model, options, loc)))
    return failure();
  FailureOr<std::unique_ptr<Parameters>> parameters =
      Parameters::decide(**model, options, &context);
  if (failed(parameters))
    return failure();
  if (options.report)
    fillReport(**parameters, *options.report);
  std::optional<Rebatch> rebatch;
  if (std::optional<int64_t> batch = fixedBatch(**model, options))
    if (options.batch && *options.batch != *batch) {
      rebatch.emplace(*batch, *options.batch);
      if (failed(recordShapes(**model, options, *rebatch, loc)))
        return failure();
    }
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  GraphImporter importer(**model, **parameters, options, *module);
  importer.setRebatch(rebatch ? &*rebatch : nullptr);
  if (failed(rebatch ? importAtNewBatch(importer, *rebatch, &context)
                     : importer.run()))
    return failure();
  if (options.found && (*model)->training &&
      failed(finishTraining(*module, **model, **parameters, *options.found)))
    return failure();
  if (!options.weightsPath.empty() &&
      failed(writeWeights(**model, **parameters, *module, options.weightsPath,
                          loc)))
    return failure();
  return module;
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

void zero::printImportDiagnostic(raw_ostream &os, StringRef tool,
                                 Diagnostic &diagnostic) {
  static constexpr const char *kinds[] = {"note", "warning", "error", "remark"};
  os << tool << ": " << kinds[unsigned(diagnostic.getSeverity())] << ": ";
  Location loc = diagnostic.getLocation();
  StringRef node;
  if (auto named = dyn_cast<NameLoc>(loc)) {
    node = named.getName();
    loc = named.getChildLoc();
  }
  if (auto file = dyn_cast<FileLineColLoc>(loc)) {
    os << file.getFilename().getValue() << ": ";
    if (node.empty() && file.getLine())
      os << "node number " << file.getLine() << ": ";
  }
  if (!node.empty())
    os << "node '" << node << "': ";
  os << diagnostic.str() << "\n";
}

void zero::printParamReport(raw_ostream &os, ArrayRef<ParamReport> report) {
  std::vector<std::array<std::string, 4>> rows;
  rows.push_back({"name", "shape", "role", "why"});
  for (const ParamReport &entry : report) {
    std::string shape = entry.elementType + "[";
    for (auto [i, dim] : llvm::enumerate(entry.shape))
      shape += (i ? "x" : "") + std::to_string(dim);
    rows.push_back({entry.name, shape + "]", entry.role, entry.why});
  }
  size_t widths[4] = {};
  for (auto &row : rows)
    for (unsigned i = 0; i < 4; ++i)
      widths[i] = std::max(widths[i], row[i].size());
  for (auto &row : rows) {
    for (unsigned i = 0; i < 3; ++i)
      os << llvm::left_justify(row[i], widths[i] + 2);
    os << row[3] << "\n";
  }
}
