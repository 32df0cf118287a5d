//===- Flags.h - Command line flags -----------------------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Command line flags of a tool: `--name value` or `--name=value`, each at most
// once unless it is a list. Every mistake is one line that names the flag.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_FLAGS_H
#define ZERO_TOOLS_ZERO_RUN_FLAGS_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace zero_tools {

/// A mistake in the command line.
class FlagError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

class Flags {
public:
  /// `usage` is the first part of --help.
  explicit Flags(std::string usage);

  // `argument` is what --help calls the value; defaults stay in *value.
  void text(const std::string &name, std::string *value,
            const std::string &argument, const std::string &help);
  void list(const std::string &name, std::vector<std::string> *values,
            const std::string &argument, const std::string &help);
  void integer(const std::string &name, std::optional<int64_t> *value,
               int64_t min, int64_t max, const std::string &argument,
               const std::string &help);
  /// A number of at least `min` that f32 can hold.
  void number(const std::string &name, std::optional<double> *value, double min,
              const std::string &argument, const std::string &help);
  void toggle(const std::string &name, bool *value, const std::string &help);
  /// A flag that a later version will have: giving it is an error.
  void unavailable(const std::string &name, bool hasValue);

  /// Sets the values; returns the other arguments. Throws FlagError. With
  /// --help prints the help on the standard output and returns nothing.
  std::optional<std::vector<std::string>> parse(int argc, char **argv);

  /// True when the flag was on the command line.
  bool given(const std::string &name) const;
  /// All that were.
  std::set<std::string> givenNames() const;

private:
  struct Flag {
    std::string name, argument, help;
    bool hasValue = true, repeats = false, given = false, hidden = false;
    std::function<void(const std::string &)> set;
  };

  Flag &add(const std::string &name, const std::string &argument,
            const std::string &help);
  Flag &find(const std::string &name);
  void printHelp() const;

  std::string usage;
  std::vector<Flag> flags;
};

/// The number of `text`, at least `min` and in the range of f32, which it is
/// computed in; throws FlagError with `where` in front.
double parseF32(const std::string &where, const std::string &text,
                double min = 0);

/// `NAME=FILE` texts as names and files, which may be empty; throws FlagError
/// naming `flag`.
std::map<std::string, std::string>
parseNamedFiles(const std::string &flag, const std::vector<std::string> &texts);

/// Splits `a,b` into exactly two numbers; throws FlagError naming `flag`.
std::pair<double, double> parsePair(const std::string &flag,
                                    const std::string &text);

} // namespace zero_tools

#endif // ZERO_TOOLS_ZERO_RUN_FLAGS_H
