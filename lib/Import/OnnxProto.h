//===- OnnxProto.h - The generated protobuf classes ------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Includes the classes that protoc makes at build time from the onnx-ml.proto
// of an installed ONNX package, with the warnings of generated code silenced.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_IMPORT_ONNXPROTO_H
#define ZERO_LIB_IMPORT_ONNXPROTO_H

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "onnx-ml.pb.h"
#pragma GCC diagnostic pop

#endif // ZERO_LIB_IMPORT_ONNXPROTO_H
