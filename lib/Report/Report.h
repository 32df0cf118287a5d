//===- Report.h - Parts of a report -----------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sections of the HTML file, in the order of the page. Each writes nothing if
// it has nothing to show. Tables are plain HTML: they work without the script,
// which only sorts and filters them.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_REPORT_REPORT_H
#define ZERO_LIB_REPORT_REPORT_H

#include "zero/Report/Summary.h"

namespace mlir::zero {

/// Rows of a table that has one per command: the browser stays quick.
constexpr size_t kMaxRows = 500;

/// The drawn timelines that there are.
llvm::SmallVector<const Timeline *, 2> present(const DrawnTimelines &drawn);

/// Key numbers, where the step's time goes, notes.
void writeHeader(const DrawnTimelines &drawn, llvm::raw_ostream &os);
/// Where the script draws, and the data it draws from.
void writeCharts(const DrawnTimelines &drawn, llvm::raw_ostream &os);
void writeChartData(const DrawnTimelines &drawn, llvm::raw_ostream &os);

void writeTraffic(const DrawnTimelines &drawn, llvm::raw_ostream &os);
/// Copies to and from host and disk, and compute of the host.
void writeLinks(const DrawnTimelines &drawn, llvm::raw_ostream &os);
void writeExposed(const DrawnTimelines &drawn, llvm::raw_ostream &os);
/// What lives outside device memory, and why.
void writeOffload(const DrawnTimelines &drawn, llvm::raw_ostream &os);
void writeDifferences(const DrawnTimelines &drawn, llvm::raw_ostream &os);
void writeParameters(const DrawnTimelines &drawn, llvm::raw_ostream &os);

} // namespace mlir::zero

#endif // ZERO_LIB_REPORT_REPORT_H
