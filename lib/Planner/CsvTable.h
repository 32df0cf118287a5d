//===- CsvTable.h - Tables as comma-separated text --------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_LIB_PLANNER_CSVTABLE_H
#define ZERO_LIB_PLANNER_CSVTABLE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mlir::zero {

/// A CSV file with a header; fields may be quoted (RFC 4180).
class CsvTable {
public:
  static llvm::Expected<CsvTable> read(llvm::StringRef path);

  size_t numRows() const { return rows.size(); }
  int64_t line(size_t row) const { return rows[row].line; }
  bool has(llvm::StringRef column) const {
    return columns.count(column.str()) != 0;
  }
  /// A field; empty if there is no such column.
  llvm::StringRef get(size_t row, llvm::StringRef column) const;

private:
  struct Row {
    int64_t line;
    std::vector<std::string> fields;
  };
  std::map<std::string, size_t> columns;
  std::vector<Row> rows;
};

} // namespace mlir::zero

#endif // ZERO_LIB_PLANNER_CSVTABLE_H
