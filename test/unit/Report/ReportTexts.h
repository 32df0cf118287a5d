//===- ReportTexts.h - Traces and reports as texts --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is written of timelines, and what is said of a text that is read.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_REPORT_REPORTTEXTS_H
#define ZERO_TEST_UNIT_REPORT_REPORTTEXTS_H

#include "zero/Report/Timeline.h"

#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

inline std::string trace(llvm::ArrayRef<mlir::zero::Timeline> timelines) {
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::zero::writeTrace(timelines, os);
  return text;
}

inline std::string report(llvm::ArrayRef<mlir::zero::Timeline> timelines) {
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::zero::writeReport(timelines, os);
  return text;
}

inline std::string parseError(llvm::StringRef text) {
  auto timelines = mlir::zero::parseTrace(text);
  return timelines ? "no error" : llvm::toString(timelines.takeError());
}

/// `text` with its first `from` replaced; fails where there is none.
inline std::string edited(std::string text, llvm::StringRef from,
                          llvm::StringRef to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from.str();
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

#endif // ZERO_TEST_UNIT_REPORT_REPORTTEXTS_H
