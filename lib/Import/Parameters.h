//===- Parameters.h - Which tensors are trained ----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An ONNX initializer is a parameter, a running statistic, or a constant that
// an exporter baked in; the file does not say which. This decides, from names,
// from torch.export's signature where the file carries it, and from use.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_PARAMETERS_H
#define ZERO_LIB_IMPORT_PARAMETERS_H

#include "lib/Import/Model.h"
#include "zero/Import/Import.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::zero::onnx_import {

enum class Role {
  Trained,
  /// Stays in the weights file but is not trained.
  Frozen,
  /// Updated by the step itself: running statistics.
  Buffer,
  /// Known at import, folded into the computation.
  Constant
};

/// The decision on one initializer.
struct Param {
  const TensorData *data = nullptr;
  /// The value of the graph that it is.
  std::string value;
  /// Its name in the IR and in files of weights: the same but for names that
  /// are taken there.
  std::string name;
  Role role = Role::Constant;
  std::string why;
  std::string unit;
  /// Other names of the same tensor.
  std::vector<std::string> tied;
  /// The entry this one is a copy of, and whether it is transposed.
  Param *copyOf = nullptr;
  bool transposed = false;
};

/// What torch.export wrote about the program the graph came from.
struct Signature {
  bool present = false;
  /// Names by kind, each with the variable that stood for it.
  llvm::MapVector<StringRef, StringRef> parameters, buffers;
};

/// One use of an initializer, seen through casts and transposes.
struct Use {
  const onnx::NodeProto *node;
  unsigned operand;
};

class Parameters {
public:
  /// Decides on all initializers. Emits the remarks and warnings that go with
  /// it; fails on contradictory options.
  static FailureOr<std::unique_ptr<Parameters>>
  decide(const Model &model, const ImportOptions &options,
         MLIRContext *context);

  /// The entry of an initializer, or of a value that an exporter made from
  /// one but that is a parameter of its own; or null.
  Param *find(StringRef name);
  ArrayRef<std::unique_ptr<Param>> all() const { return params; }
  ArrayRef<Use> usesOf(StringRef initializer) const;
  const Signature &signature() const { return torchSignature; }

private:
  Parameters(const Model &model, const ImportOptions &options, Location loc)
      : model(model), options(options), loc(loc) {}

  void collectUses();
  bool isAddedToProduct(const Use &use) const;
  void readSignature();
  void classify(Param &param);
  void takeRoles(const TrainingForm &form);
  LogicalResult applyOverrides();
  void restoreMerged();
  void restoreTies();
  void nameTies();
  void warnOfLosses();
  void warnOfFoldedParameters();
  void warnOfBakedConstants();

  const Model &model;
  const ImportOptions &options;
  Location loc;
  Signature torchSignature;
  std::vector<std::unique_ptr<Param>> params;
  llvm::StringMap<Param *> byName;
  llvm::StringMap<std::vector<Use>> uses;
  /// Results of matrix products and convolutions.
  llvm::StringSet<> products;
};

/// Whether `name` looks like PyTorch's path of a parameter or buffer.
bool isDottedName(StringRef name);

/// The layer that is gathered as one: the name up to its first number (a block
/// of a stack), else without its last part.
std::string unitOf(StringRef parameter);

} // namespace mlir::zero::onnx_import

#endif // ZERO_LIB_IMPORT_PARAMETERS_H
