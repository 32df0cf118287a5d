//===- Arity.cpp - How many inputs and outputs operators have -------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table is that of the onnx package, which a test compares it with. Inputs
// that are left out count where others follow them.
//
//===----------------------------------------------------------------------===//

#include "lib/Import/Arity.h"

#include "llvm/ADT/StringExtras.h"

#include <limits>

using namespace mlir;
using namespace mlir::zero::onnx_import;

namespace {
/// Some operators from version `since` of their set on.
struct Entry {
  StringRef ops;
  int64_t since;
  int minInputs, maxInputs, minOutputs, maxOutputs;
};
} // namespace

static constexpr int any = std::numeric_limits<int>::max();

static constexpr Entry entries[] = {
    {"Constant RandomNormal RandomUniform SequenceEmpty", 1, 0, 0, 1, 1},
    {"Optional", 1, 0, 1, 1, 1},
    {"Abs Acos Acosh ArgMax ArgMin Asin Asinh Atan Atanh AveragePool Bernoulli "
     "BitCast BitwiseNot BlackmanWindow Cast Ceil Celu Clip ConcatFromSequence "
     "ConstantOfShape Cos Cosh DepthToSpace Det Elu Erf Exp EyeLike Flatten "
     "Floor Gelu GlobalAveragePool GlobalLpPool GlobalMaxPool HammingWindow "
     "HannWindow HardSigmoid HardSwish Hardmax Identity ImageDecoder IsInf "
     "IsNaN LRN LeakyRelu Log LogSoftmax LpNormalization LpPool MaxPool "
     "MeanVarianceNormalization Mish Multinomial Neg NonZero Not "
     "OptionalGetElement OptionalHasElement Pad RandomNormalLike "
     "RandomUniformLike Reciprocal ReduceL1 ReduceL2 ReduceLogSum "
     "ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
     "ReduceSumSquare RegexFullMatch Relu Reshape Round Selu SequenceLength "
     "Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign "
     "SpaceToDepth Sqrt Squeeze StringNormalizer Swish Tan Tanh "
     "TfIdfVectorizer ThresholdedRelu Transpose Unsqueeze Upsample",
     1, 1, 1, 1, 1},
    {"Dropout", 1, 1, 1, 1, 2},
    {"Unique", 1, 1, 1, 1, 4},
    {"If", 1, 1, 1, 1, any},
    {"StringSplit TopK", 1, 1, 1, 2, 2},
    {"DynamicQuantizeLinear", 1, 1, 1, 3, 3},
    {"DFT SequenceErase SplitToSequence Trilu", 1, 1, 2, 1, 1},
    {"Split", 1, 1, 2, 1, any},
    {"Concat Einsum Max Mean Min SequenceConstruct Sum", 1, 1, any, 1, 1},
    {"SequenceMap ai.onnx.preview.training:Gradient", 1, 1, any, 1, any},
    {"Add AffineGrid And BitShift BitwiseAnd BitwiseOr BitwiseXor CastLike "
     "CenterCropPad Compress CumProd CumSum Div Equal Expand Gather "
     "GatherElements GatherND Greater GreaterOrEqual GridSample Less "
     "LessOrEqual MatMul MaxRoiPool Mod Mul Or PRelu Pow RMSNormalization "
     "Resize ReverseSequence SequenceAt StringConcat Sub SwiGLU Xor",
     1, 2, 2, 1, 1},
    {"Conv ConvTranspose DequantizeLinear MaxUnpool NegativeLogLikelihoodLoss "
     "QuantizeLinear SequenceInsert TensorScatter",
     1, 2, 3, 1, 1},
    {"SoftmaxCrossEntropyLoss", 1, 2, 3, 1, 2},
    {"LayerNormalization", 1, 2, 3, 1, 3},
    {"ConvInteger MatMulInteger STFT", 1, 2, 4, 1, 1},
    {"CausalConvWithState", 1, 2, 4, 2, 2},
    {"NonMaxSuppression", 1, 2, 5, 1, 1},
    {"Scan", 1, 2, any, 1, any},
    {"Col2Im Gemm GroupNormalization InstanceNormalization OneHot Range "
     "RoiAlign Scatter ScatterElements ScatterND Tile Where "
     "ai.onnx.preview:FlexAttention",
     1, 3, 3, 1, 1},
    {"RotaryEmbedding", 1, 3, 4, 1, 1},
    {"DeformConv", 1, 3, 5, 1, 1},
    {"RNN", 1, 3, 6, 0, 2},
    {"Attention", 1, 3, 6, 1, 4},
    {"GRU LinearAttention", 1, 3, 6, 2, 2},
    {"LSTM", 1, 3, 8, 0, 3},
    {"Loop ai.onnx.preview.training:Adagrad ai.onnx.preview.training:Adam "
     "ai.onnx.preview.training:Momentum",
     1, 3, any, 1, any},
    {"MelWeightMatrix", 1, 5, 5, 1, 1},
    {"BatchNormalization", 1, 5, 5, 1, 5},
    {"QLinearMatMul", 1, 8, 8, 1, 1},
    {"QLinearConv", 1, 8, 9, 1, 1},
    {"Split", 2, 1, 1, 1, any},
    {"GRU", 3, 3, 6, 0, 2},
    {"Reshape", 5, 2, 2, 1, 1},
    {"Tile", 6, 2, 2, 1, 1},
    {"MaxPool", 8, 1, 1, 1, 2},
    {"Scan", 9, 1, any, 1, any},
    {"Upsample", 9, 2, 2, 1, 1},
    {"TopK", 10, 2, 2, 2, 2},
    {"Slice", 10, 3, 5, 1, 1},
    {"Clip", 11, 1, 3, 1, 1},
    {"Gemm Pad", 11, 2, 3, 1, 1},
    {"Loop", 11, 2, any, 1, any},
    {"Resize", 11, 3, 4, 1, 1},
    {"Dropout", 12, 1, 3, 1, 2},
    {"ReduceSum Squeeze", 13, 1, 2, 1, 1},
    {"Split", 13, 1, 2, 1, any},
    {"Resize", 13, 1, 4, 1, 1},
    {"Unsqueeze", 13, 2, 2, 1, 1},
    {"BatchNormalization", 14, 5, 5, 1, 3},
    {"OptionalHasElement", 18, 0, 1, 1, 1},
    {"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
     "ReduceMin ReduceProd ReduceSumSquare",
     18, 1, 2, 1, 1},
    {"Pad", 18, 2, 4, 1, 1},
    {"DFT", 20, 1, 3, 1, 1},
    {"Attention", 24, 3, 7, 1, 4},
};

/// The versions of each operator, the oldest first.
static llvm::StringMap<SmallVector<const Entry *, 2>> makeIndex() {
  llvm::StringMap<SmallVector<const Entry *, 2>> index;
  for (const Entry &entry : entries)
    for (StringRef op : llvm::split(entry.ops, ' '))
      index[op].push_back(&entry);
  return index;
}

static LogicalResult checkCount(NodeReader &node, StringRef what, int count,
                                int least, int most) {
  if (count >= least && count <= most)
    return success();
  InFlightDiagnostic error = node.error();
  error << "has " << count << " " << what << (count == 1 ? "" : "s")
        << ", expected ";
  if (most == any)
    return error << "at least " << least;
  error << least;
  if (most > least)
    error << " to " << most;
  return error;
}

LogicalResult zero::onnx_import::checkArity(NodeReader &node) {
  static const auto index = makeIndex();
  std::string op = node.op().str();
  if (!node.isOfDefaultDomain())
    op = (node.domain() + ":" + op).str();
  auto found = index.find(op);
  if (found == index.end())
    return success();
  const Entry *entry = found->second.front();
  for (const Entry *later : found->second)
    if (later->since <= node.version())
      entry = later;
  const onnx::NodeProto &message = node.message();
  if (failed(checkCount(node, "input", message.input_size(), entry->minInputs,
                        entry->maxInputs)))
    return failure();
  return checkCount(node, "output", message.output_size(), entry->minOutputs,
                    entry->maxOutputs);
}
