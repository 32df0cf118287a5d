//===- Progress.cpp - The progress bar of a run ---------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See Progress.h.
//
//===----------------------------------------------------------------------===//

#include "Progress.h"

#include "Terminal.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unistd.h>

using namespace zero_tools;

std::string zero_tools::formatDuration(double seconds) {
  auto whole = static_cast<long long>(
      std::clamp(std::isfinite(seconds) ? seconds : 0, 0.0, 3.6e9));
  char text[64];
  if (whole >= 3600)
    std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", whole / 3600,
                  whole / 60 % 60, whole % 60);
  else
    std::snprintf(text, sizeof(text), "%02lld:%02lld", whole / 60, whole % 60);
  return text;
}

/// `width` columns, of which `share` are filled; in eighths with UTF-8.
static std::string barOf(double share, int width, bool utf8) {
  static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  static const char *const tenths = " 123456789";
  int parts = utf8 ? 8 : 10;
  int filled = int(share * width * parts);
  std::string bar;
  for (int i = 0; i < filled / parts; ++i)
    bar += utf8 ? "█" : "#";
  int columns = filled / parts;
  if (columns < width && filled % parts) {
    if (utf8)
      bar += eighths[filled % parts];
    else
      bar += tenths[filled % parts];
    ++columns;
  }
  return bar + std::string(size_t(width - columns), ' ');
}

/// "2.45it/s", or "3.10s/it" of slow steps.
static std::string speedOf(const ProgressState &state) {
  if (!state.doneHere || state.seconds <= 0)
    return "?it/s";
  double speed = double(state.doneHere) / state.seconds;
  char text[64];
  if (speed >= 1)
    std::snprintf(text, sizeof(text), "%5.2fit/s", speed);
  else
    std::snprintf(text, sizeof(text), "%5.2fs/it", 1 / speed);
  return text;
}

std::string zero_tools::formatProgress(const ProgressState &state, int columns,
                                       bool utf8) {
  double share =
      state.total ? std::clamp(double(state.done) / double(state.total), 0., 1.)
                  : 1;
  std::string left = "?";
  if (state.doneHere && state.seconds > 0)
    left = formatDuration(state.seconds / double(state.doneHere) *
                          double(state.total - state.done));
  char percent[32];
  std::snprintf(percent, sizeof(percent), "step: %3d%%|", int(100 * share));
  std::string tail =
      "| " + std::to_string(state.done) + "/" + std::to_string(state.total) +
      " [" + formatDuration(state.seconds) + "<" + left + ", " +
      speedOf(state) + (state.note.empty() ? "" : ", " + state.note) + "]";
  // The last column stays free: a terminal might wrap there.
  int width = columns - 1 - int(std::string(percent).size() + tail.size());
  if (width >= 1)
    return percent + barOf(share, std::min(width, 40), utf8) + tail;
  std::string text = percent + tail.substr(2);
  return text.substr(0, size_t(std::max(0, columns - 1)));
}

Progress::Progress() : terminal(isTerminal(STDERR_FILENO)), utf8(showsUtf8()) {}

Progress::~Progress() { clear(); }

void Progress::begin(int64_t done, int64_t total) {
  first = state.done = done;
  state.total = total;
  start = Clock::now();
}

void Progress::show(int64_t done, const std::string &note) {
  Clock::time_point now = Clock::now();
  if (!terminal || (everDrawn && now - drawn < std::chrono::milliseconds(100)))
    return;
  everDrawn = visible = true;
  drawn = now;
  state.done = done;
  state.doneHere = done - first;
  state.seconds = std::chrono::duration<double>(now - start).count();
  state.note = note;
  std::string bar = formatProgress(state, terminalColumns(STDERR_FILENO), utf8);
  std::fprintf(stderr, "\r\033[K%s", bar.c_str());
}

void Progress::clear() {
  if (visible)
    std::fputs("\r\033[K", stderr);
  visible = false;
}
