//===- LogFile.h - A file of lines that grows -------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is written to it is in the file at once, so that a run that fails keeps
// what it measured, and a run that continues another continues its file.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RUNTIME_IO_LOGFILE_H
#define ZERO_RUNTIME_IO_LOGFILE_H

#include <functional>
#include <string>
#include <string_view>

namespace zrt {

class LogFile {
public:
  enum class Line { Stays, Unreadable, Later };
  /// Says what a line, without its newline, is.
  using Sort = std::function<Line(std::string_view line)>;
  /// Receives one line of text.
  using Warn = std::function<void(const std::string &)>;

  /// Creates the file. Of one that exists the lines stay up to the first that
  /// is Later, also one without a newline, which gets it; `warn` names those
  /// that are Unreadable. Without `sort`, and of what is no regular file,
  /// nothing stays. Throws IoError.
  explicit LogFile(const std::string &path, const Sort &sort = nullptr,
                   const Warn &warn = nullptr);
  LogFile(const LogFile &) = delete;
  LogFile &operator=(const LogFile &) = delete;
  ~LogFile();

  /// Throws IoError.
  void write(std::string_view bytes);

  /// True when nothing was kept.
  bool beganEmpty() const { return empty; }

private:
  [[noreturn]] void fail(const char *what) const;
  void cutAtLater(const Sort &sort, const Warn &warn);

  std::string path;
  int descriptor;
  bool empty = true;
};

} // namespace zrt

#endif // ZERO_RUNTIME_IO_LOGFILE_H
