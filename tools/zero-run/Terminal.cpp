//===- Terminal.cpp - What a terminal can show ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Terminal.h.
//
//===----------------------------------------------------------------------===//

#include "Terminal.h"

#include <cstdio>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace zero_tools;

static std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

bool zero_tools::isTerminal(int descriptor) {
  return isatty(descriptor) && variable("TERM") != "dumb";
}

bool zero_tools::showsColors(int descriptor) {
  return isTerminal(descriptor) && variable("NO_COLOR").empty();
}

bool zero_tools::showsUtf8() {
  for (const char *name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string locale = variable(name);
    if (locale.empty())
      continue;
    return locale.find("UTF-8") != locale.npos ||
           locale.find("utf8") != locale.npos ||
           locale.find("utf-8") != locale.npos;
  }
  return false;
}

int zero_tools::terminalColumns(int descriptor) {
  winsize size = {};
  if (ioctl(descriptor, TIOCGWINSZ, &size) || !size.ws_col)
    return 80;
  return size.ws_col;
}

std::string zero_tools::inertText(const std::string &text) {
  static const char *const digits = "0123456789abcdef";
  std::string inert;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte == 127)
      inert += std::string("\\x") + digits[byte >> 4] + digits[byte & 15];
    else
      inert += c;
  }
  return inert;
}

void zero_tools::printMessage(const char *kind, const std::string &text) {
  std::fprintf(stderr, "zero-run: %s: %s\n", kind, inertText(text).c_str());
}
