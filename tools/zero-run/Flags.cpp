//===- Flags.cpp - Command line flags -------------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parsing of flags and the text of --help.
//
//===----------------------------------------------------------------------===//

#include "Flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

using namespace zero_tools;

Flags::Flags(std::string usage) : usage(std::move(usage)) {}

Flags::Flag &Flags::add(const std::string &name, const std::string &argument,
                        const std::string &help) {
  Flag &flag = flags.emplace_back();
  flag.name = name;
  flag.argument = argument;
  flag.help = help;
  return flag;
}

void Flags::text(const std::string &name, std::string *value,
                 const std::string &argument, const std::string &help) {
  add(name, argument, help).set = [value](const std::string &text) {
    *value = text;
  };
}

void Flags::list(const std::string &name, std::vector<std::string> *values,
                 const std::string &argument, const std::string &help) {
  Flag &flag = add(name, argument, help);
  flag.repeats = true;
  flag.set = [values](const std::string &text) { values->push_back(text); };
}

/// Reads all of `text` as a T.
template <typename T>
static std::optional<T> parseAll(const std::string &text) {
  T value;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

void Flags::integer(const std::string &name, std::optional<int64_t> *value,
                    int64_t min, int64_t max, const std::string &argument,
                    const std::string &help) {
  add(name, argument, help).set = [=](const std::string &text) {
    *value = parseAll<int64_t>(text);
    if (!*value || **value < min || **value > max)
      throw FlagError(name + " '" + text + "': expected a whole number " +
                      (max == INT64_MAX ? "of at least " + std::to_string(min)
                                        : "from " + std::to_string(min) +
                                              " to " + std::to_string(max)));
  };
}

void Flags::number(const std::string &name, std::optional<double> *value,
                   double min, const std::string &argument,
                   const std::string &help) {
  add(name, argument, help).set = [=](const std::string &text) {
    *value = parseF32(name, text, min);
  };
}

double zero_tools::parseF32(const std::string &where, const std::string &text,
                            double min) {
  double value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  bool isNumber = end == text.data() + text.size() && !text.empty() &&
                  error != std::errc::invalid_argument && text[0] != '-' &&
                  (error != std::errc() || std::isfinite(value));
  if (!isNumber || (error == std::errc() && value < min))
    throw FlagError(where + " '" + text + "': expected a number of at least " +
                    std::to_string(int64_t(min)));
  if (error != std::errc() || !std::isfinite(float(value)) ||
      (value != 0 && float(value) == 0))
    throw FlagError(where + " '" + text +
                    "' is outside the range of f32, 1.4e-45 to 3.4e38");
  return value;
}

void Flags::toggle(const std::string &name, bool *value,
                   const std::string &help) {
  Flag &flag = add(name, "", help);
  flag.hasValue = false;
  flag.set = [value](const std::string &) { *value = true; };
}

void Flags::unavailable(const std::string &name, bool hasValue) {
  Flag &flag = add(name, "", "");
  flag.hasValue = hasValue;
  flag.hidden = true;
  flag.set = [name](const std::string &) {
    throw FlagError("not available yet: " + name);
  };
}

Flags::Flag &Flags::find(const std::string &name) {
  for (Flag &flag : flags)
    if (flag.name == name)
      return flag;
  throw FlagError("unknown flag " + name + ", see --help");
}

bool Flags::given(const std::string &name) const {
  return std::any_of(flags.begin(), flags.end(), [&](const Flag &flag) {
    return flag.name == name && flag.given;
  });
}

std::set<std::string> Flags::givenNames() const {
  std::set<std::string> names;
  for (const Flag &flag : flags)
    if (flag.given)
      names.insert(flag.name);
  return names;
}

std::optional<std::vector<std::string>> Flags::parse(int argc, char **argv) {
  std::vector<std::string> others;
  for (Flag &flag : flags)
    flag.given = false;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      printHelp();
      return std::nullopt;
    }
    if (name.size() < 2 || name[0] != '-') {
      others.push_back(name);
      continue;
    }
    size_t equals = name.find('=');
    bool inlineValue = equals != name.npos;
    std::string value = inlineValue ? name.substr(equals + 1) : "";
    Flag &flag = find(name.substr(0, equals));
    if (inlineValue && !flag.hasValue)
      throw FlagError(flag.name + " takes no value");
    if (flag.hasValue && !inlineValue && !flag.hidden) {
      if (i + 1 == argc)
        throw FlagError(flag.name + " needs a value");
      value = argv[++i];
    }
    // A variable that a script did not set, not a value.
    if (flag.hasValue && value.empty() && !flag.hidden)
      throw FlagError(flag.name + " has an empty value");
    if (flag.given && !flag.repeats)
      throw FlagError(flag.name + " is given twice");
    flag.given = true;
    flag.set(value);
  }
  return others;
}

void Flags::printHelp() const {
  std::puts(usage.c_str());
  for (const Flag &flag : flags) {
    if (flag.hidden)
      continue;
    std::string left =
        "  " + flag.name + (flag.argument.empty() ? "" : " " + flag.argument);
    if (left.size() > 25)
      left += "\n" + std::string(26, ' ');
    std::printf("%-26s%s\n", left.c_str(), flag.help.c_str());
  }
  std::puts("  --help                  print this text");
}

std::pair<double, double> zero_tools::parsePair(const std::string &flag,
                                                const std::string &text) {
  size_t comma = text.find(',');
  auto first = parseAll<double>(text.substr(0, comma));
  auto second = comma == text.npos ? std::nullopt
                                   : parseAll<double>(text.substr(comma + 1));
  if (!first || !second)
    throw FlagError(flag + " '" + text + "': expected two numbers 'a,b'");
  return {*first, *second};
}

std::map<std::string, std::string>
zero_tools::parseNamedFiles(const std::string &flag,
                            const std::vector<std::string> &texts) {
  std::map<std::string, std::string> files;
  for (const std::string &text : texts) {
    size_t equals = text.rfind('=');
    if (equals == text.npos || !equals)
      throw FlagError(flag + " '" + text + "': expected NAME=FILE");
    if (!files.emplace(text.substr(0, equals), text.substr(equals + 1)).second)
      throw FlagError(flag + " '" + text + "': the name is given twice");
  }
  return files;
}
