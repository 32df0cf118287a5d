//===- CsvTable.cpp - Tables as comma-separated text ---------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CsvTable.h"

#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;
using namespace mlir::zero;

/// Takes one record off `text`; counts the lines it spans.
static std::vector<std::string> takeRecord(StringRef &text, int64_t &line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\n')
      ++line;
    if (quoted) {
      if (c != '"')
        fields.back() += c;
      else if (i + 1 < text.size() && text[i + 1] == '"')
        fields.back() += text[++i];
      else
        quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      ++i;
      break;
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  text = text.drop_front(i);
  for (std::string &field : fields)
    field = StringRef(field).trim().str();
  return fields;
}

Expected<CsvTable> CsvTable::read(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return createStringError(
        buffer.getError(),
        path + ": cannot read the table: " + buffer.getError().message());
  CsvTable table;
  StringRef text = (*buffer)->getBuffer();
  text.consume_front("\xef\xbb\xbf"); // byte order mark
  int64_t line = 1;
  size_t width = 0;
  while (!text.empty()) {
    int64_t begin = line;
    std::vector<std::string> fields = takeRecord(text, line);
    if (fields.size() == 1 && fields.front().empty())
      continue;
    if (width == 0) {
      width = fields.size();
      for (auto [index, field] : enumerate(fields))
        table.columns.emplace(field, index);
      continue;
    }
    if (fields.size() != width)
      return createStringError(inconvertibleErrorCode(),
                               path + ":" + Twine(begin) + ": found " +
                                   Twine(fields.size()) + " fields; expected " +
                                   Twine(width) + ", as in the header");
    table.rows.push_back({begin, std::move(fields)});
  }
  if (table.rows.empty())
    return createStringError(inconvertibleErrorCode(),
                             path + ": found no rows; expected a header and "
                                    "one line for each measured step");
  return table;
}

StringRef CsvTable::get(size_t row, StringRef column) const {
  auto it = columns.find(column.str());
  return it == columns.end() ? StringRef() : rows[row].fields[it->second];
}
