//===- TemporaryFolder.h - A folder that does not stay ----------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A private temporary folder for files between two steps of a tool.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_TEMPORARYFOLDER_H
#define ZERO_TOOLS_ZERO_RUN_TEMPORARYFOLDER_H

#include <string>

namespace zero_tools {

/// A folder that only this user can read, for plain files. It is gone with its
/// files when the object dies and also when a signal ends the process. One
/// object at a time.
class TemporaryFolder {
public:
  /// Makes the folder under $TMPDIR or /tmp; throws std::runtime_error.
  TemporaryFolder();
  /// Takes one that there is.
  explicit TemporaryFolder(const std::string &path);
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder();

  const std::string &path() const { return folder; }

  /// It stays when the object dies: another process has it, as after a fork.
  /// Returns its path.
  std::string disown();

  /// Removes it where there is one: for a process that ends at once. Any
  /// thread.
  static void removeNow();

private:
  std::string folder;
};

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_TEMPORARYFOLDER_H
