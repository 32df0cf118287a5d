//===- Terminal.h - What a terminal can show --------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether output goes to a person or to a file, and what the person's terminal
// can do.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_TERMINAL_H
#define ZERO_TOOLS_ZERO_RUN_TERMINAL_H

#include <string>

namespace zero_tools {

/// The file descriptor is a terminal that can move its cursor.
bool isTerminal(int descriptor);

/// isTerminal, and the user wants colours: NO_COLOR (no-color.org) is not set.
bool showsColors(int descriptor);

/// The locale's characters are UTF-8, by LC_ALL, LC_CTYPE or LANG.
bool showsUtf8();

/// Columns of a terminal; 80 where it does not say.
int terminalColumns(int descriptor);

/// `text` on one line and without a terminal's commands: control characters,
/// which names of files and tensors may have, as \\x0a.
std::string inertText(const std::string &text);

/// Prints "zero-run: KIND: text" on the standard error.
void printMessage(const char *kind, const std::string &text);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_TERMINAL_H
