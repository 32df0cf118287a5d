//===- Allocate.cpp - zero-plan --allocate --------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads an allocation instance, places its buffers and says how well. The file
// has a row for each buffer, alive in the half-open interval [lower, upper):
//
//   id,lower,upper,size
//   b1,0,3,4
//
//===----------------------------------------------------------------------===//

#include "Modes.h"

#include "zero/Schedule/ArenaPlanner.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace llvm;
using namespace mlir::zero;

static cl::opt<std::string>
    offsetsFile("offsets", cl::value_desc("FILE.csv"),
                cl::desc("With --allocate: write the rows with their offsets"));
static cl::opt<int64_t>
    effort("effort", cl::init(-1), cl::value_desc("nodes"),
           cl::desc("With --allocate: bound of the search; 0: one pass only"));

/// A search for less has no natural end; one for what fits is worth seconds.
static constexpr int64_t kEffort = 600000, kEffortToFit = 6000000;

namespace {
/// The file's rows.
struct Instance {
  std::vector<StringRef> ids;
  std::vector<LiveRange> ranges;
};

/// Reads an instance; every message is one line with file and line number.
class InstanceReader {
public:
  InstanceReader(StringRef file, StringRef text) : file(file), text(text) {}

  bool read(Instance &instance);

private:
  bool error(const Twine &message) {
    errs() << "zero-plan: " << file << ":" << line << ": " << message << "\n";
    return false;
  }
  bool nextLine(StringRef &content);
  bool readHeader();
  bool readRow(StringRef content, Instance &instance);
  bool readNumber(ArrayRef<StringRef> fields, unsigned column, int64_t &value);

  StringRef file, text;
  size_t line = 0;
  size_t numColumns = 0;
  size_t columns[4] = {}; // where each of kColumns stands
  int64_t total = 0;      // of all sizes
};
} // namespace

static const char *const kColumns[] = {"id", "lower", "upper", "size"};
enum { kId, kLower, kUpper, kSize };

/// `field` as a message may show it: printable and short.
static std::string shown(StringRef field) {
  std::string result;
  raw_string_ostream os(result);
  os << "'";
  printEscapedString(field.take_front(40), os);
  os << (field.size() > 40 ? "...'" : "'");
  return result;
}

/// The next line that is not blank.
bool InstanceReader::nextLine(StringRef &content) {
  while (!text.empty()) {
    std::tie(content, text) = text.split('\n');
    ++line;
    content = content.trim(" \t\r");
    if (!content.empty())
      return true;
  }
  return false;
}

static void splitRow(StringRef content, SmallVectorImpl<StringRef> &fields) {
  content.split(fields, ',');
  for (StringRef &field : fields)
    field = field.trim(" \t");
}

bool InstanceReader::readHeader() {
  text.consume_front("\xEF\xBB\xBF"); // a spreadsheet's mark of UTF-8
  StringRef content;
  if (!nextLine(content)) {
    line = 1;
    return error("the file is empty; expected a header with the columns "
                 "id,lower,upper,size");
  }
  SmallVector<StringRef> fields;
  splitRow(content, fields);
  numColumns = fields.size();
  for (auto [name, column] : zip_equal(kColumns, columns)) {
    column = find(fields, name) - fields.begin();
    if (column == numColumns)
      return error(Twine("no column '") + name +
                   "' in the header; expected id,lower,upper,size");
    if (count(fields, name) > 1)
      return error(Twine("column '") + name + "' stands twice in the header");
  }
  // Columns of the format that would change where a buffer may lie.
  for (const char *name : {"alignment", "gaps", "hint"})
    if (is_contained(fields, name))
      return error(Twine("column '") + name + "' is not supported; remove it");
  return true;
}

bool InstanceReader::readNumber(ArrayRef<StringRef> fields, unsigned column,
                                int64_t &value) {
  StringRef field = fields[columns[column]];
  if (!to_integer(field, value, 10))
    return error(Twine(kColumns[column]) + " is " + shown(field) +
                 "; expected an integer of 64 bits");
  return true;
}

bool InstanceReader::readRow(StringRef content, Instance &instance) {
  SmallVector<StringRef> fields;
  splitRow(content, fields);
  if (fields.size() != numColumns)
    return error(Twine(fields.size()) + " fields; expected " +
                 Twine(numColumns) + " as in the header");
  int64_t lower, upper, size;
  if (!readNumber(fields, kLower, lower) ||
      !readNumber(fields, kUpper, upper) || !readNumber(fields, kSize, size))
    return false;
  if (upper <= lower)
    return error("the interval [" + Twine(lower) + ", " + Twine(upper) +
                 ") is empty; expected upper > lower");
  if (size < 0)
    return error("size is " + Twine(size) + "; expected 0 or more");
  if (AddOverflow(total, size, total))
    return error("the sizes up to here add up to 2^63 bytes or more");
  instance.ids.push_back(fields[columns[kId]]);
  instance.ranges.push_back({lower, upper - 1, size});
  return true;
}

bool InstanceReader::read(Instance &instance) {
  if (!readHeader())
    return false;
  StringRef content;
  while (nextLine(content))
    if (!readRow(content, instance))
      return false;
  return true;
}

/// The rows with one more column.
static bool writeOffsets(const Instance &instance, const ArenaPlan &plan,
                         StringRef input) {
  bool same = false;
  if (!sys::fs::equivalent(input, offsetsFile, same) && same) {
    errs() << "zero-plan: " << offsetsFile
           << ": is the input of --allocate; choose another file\n";
    return false;
  }
  std::error_code failed;
  raw_fd_ostream os(offsetsFile, failed, sys::fs::OF_Text);
  if (!failed) {
    os << "id,lower,upper,size,offset\n";
    for (auto [id, range, offset] :
         zip_equal(instance.ids, instance.ranges, plan.offsets))
      os << id << "," << range.first << "," << range.last + 1 << ","
         << range.bytes << "," << offset << "\n";
    os.close();
    failed = os.error();
    os.clear_error();
  }
  if (failed)
    errs() << "zero-plan: " << offsetsFile << ": " << failed.message() << "\n";
  return !failed;
}

static void printSummary(StringRef file, const Instance &instance,
                         const ArenaPlan &plan, int64_t capacity, double ms) {
  raw_ostream &os = outs();
  os << file << ": " << instance.ranges.size() << " buffers\n"
     << "  arena        " << plan.height << " bytes\n"
     << "  lower bound  " << plan.lowerBound
     << " bytes (most alive at one time)\n"
     << format("  gap          %.3f %%\n", 100 * plan.gap())
     << "  found by     " << plan.method << "\n";
  if (capacity >= 0 && plan.height <= capacity)
    os << "  capacity     " << capacity << " bytes; " << capacity - plan.height
       << " to spare\n";
  os << "height=" << plan.height << " lower_bound=" << plan.lowerBound
     << format(" ms=%.1f\n", ms);
  os.flush(); // before an error
}

int mlir::zero::runAllocate(StringRef file, int64_t capacity) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(file, /*IsText=*/false,
                            /*RequiresNullTerminator=*/false);
  if (!buffer) {
    errs() << "zero-plan: " << file << ": " << buffer.getError().message()
           << "\n";
    return 1;
  }
  Instance instance;
  if (!InstanceReader(file, (*buffer)->getBuffer()).read(instance))
    return 1;
  ArenaOptions options;
  options.capacity = capacity;
  options.effort = effort >= 0     ? effort
                   : capacity >= 0 ? kEffortToFit
                                   : kEffort;
  options.worthwhileGap = 0;
  auto start = std::chrono::steady_clock::now();
  ArenaPlan plan = planArena(instance.ranges, options);
  double ms = std::chrono::duration<double, std::milli>(
                  std::chrono::steady_clock::now() - start)
                  .count();
  if (!offsetsFile.empty() && !writeOffsets(instance, plan, file))
    return 1;
  printSummary(file, instance, plan, capacity, ms);
  if (capacity >= 0 && plan.height > capacity) {
    errs() << "zero-plan: " << file << ": the arena is "
           << plan.height - capacity << " bytes over the capacity of "
           << capacity << "\n";
    return 1;
  }
  return 0;
}
