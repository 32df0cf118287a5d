//===- Check.cpp - Keys and values of a config ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Looks up each key of a file and checks its value.
//
//===----------------------------------------------------------------------===//

#include "Reader.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir::zero;
using llvm::StringRef;
using llvm::Twine;

using Kind = ConfigValue::Kind;

std::string mlir::zero::showNumber(double value) {
  for (int digits = 6; digits < 17; ++digits) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << llvm::format("%.*g", digits, value);
    double back;
    if (!StringRef(text).getAsDouble(back) && back == value)
      return text;
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format("%.17g", value);
  return text;
}

/// Unknown keys that are told what they may have been meant to be.
static constexpr size_t kMaxHints = 50;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The whole number of `value`, which may be written 1e9 or 5.0.
static std::optional<int64_t> wholeNumber(const ConfigValue &value) {
  int64_t exact;
  if (value.kind != Kind::Number)
    return std::nullopt;
  if (!StringRef(value.text).getAsInteger(10, exact))
    return exact;
  // The comparisons are false for NaN.
  if (!(value.number == std::floor(value.number) &&
        std::fabs(value.number) < 9.2e18))
    return std::nullopt;
  return int64_t(value.number);
}

static bool inRange(const ConfigKey &key, double number) {
  return number >= key.min && number <= key.max;
}

/// DeepSpeed takes several names of types, in capitals too.
static std::string canonicalDtype(StringRef name) {
  std::string lower = name.lower();
  StringRef rest = lower;
  rest.consume_front("torch.");
  if (rest == "float16" || rest == "half")
    return "fp16";
  if (rest == "bfloat16")
    return "bf16";
  if (rest == "float32" || rest == "float")
    return "fp32";
  return rest.str();
}

static bool hasType(const ConfigKey &key, const ConfigValue &value) {
  if (key.infinite && value.kind == Kind::Number && value.number > 0 &&
      std::isinf(value.number))
    return true;
  switch (key.type) {
  case ConfigType::Bool:
    return value.kind == Kind::Bool;
  case ConfigType::Integer: {
    std::optional<int64_t> number = wholeNumber(value);
    return number && inRange(key, double(*number));
  }
  case ConfigType::Number:
    return value.kind == Kind::Number && inRange(key, value.number);
  case ConfigType::Text:
    return value.kind == Kind::Text &&
           (!*key.choices || keys::among(value.text, key.choices));
  case ConfigType::Dtype:
    return value.kind == Kind::Text &&
           keys::among(canonicalDtype(value.text), key.choices);
  case ConfigType::Pair:
    return value.kind == Kind::List && value.items.size() == 2 &&
           llvm::all_of(value.items, [&](const ConfigValue &item) {
             return item.kind == Kind::Number && inRange(key, item.number);
           });
  case ConfigType::List:
    return value.kind == Kind::List;
  case ConfigType::Section:
    return value.kind == Kind::Object;
  case ConfigType::Open:
    break;
  }
  return value.kind == Kind::Object || value.kind == Kind::List ||
         value.kind == Kind::Bool;
}

/// The upper end of a range whose expectation does not name it.
static std::string boundHint(const ConfigKey &key, const ConfigValue &value) {
  bool over = value.kind == Kind::Number && value.number > key.max;
  for (const ConfigValue &item : value.items)
    over |= item.kind == Kind::Number && item.number > key.max;
  if (!over || key.max < 1e9)
    return "";
  return " and at most " + showNumber(key.max);
}

/// Numbers and truth values in quotes.
static std::string quotesHint(const ConfigKey &key, const ConfigValue &value) {
  double number;
  bool wantsNumber =
      key.type == ConfigType::Integer || key.type == ConfigType::Number;
  if (value.kind != Kind::Text)
    return "";
  StringRef text = value.text;
  if ((wantsNumber && !text.getAsDouble(number)) ||
      (key.type == ConfigType::Bool &&
       (text.equals_insensitive("true") || text.equals_insensitive("false"))))
    return ", without quotes";
  return "";
}

/// Whether `value` is one of `harmless`, which have | between them.
static bool isHarmless(const ConfigValue &value, StringRef harmless) {
  if (value.kind == Kind::Null)
    return true;
  if (value.kind == Kind::Text)
    return keys::among(value.text, harmless);
  if (value.kind == Kind::Number &&
      keys::among(showNumber(value.number), harmless))
    return true;
  return keys::among(value.print(), harmless);
}

/// Whether an `enabled` somewhere inside is true.
static bool anyEnabled(const ConfigValue &value) {
  for (const auto &[name, member] : value.members)
    if ((name == "enabled" && member.kind == Kind::Bool && member.boolean) ||
        anyEnabled(member))
      return true;
  return llvm::any_of(value.items, anyEnabled);
}

bool ConfigReader::isOn(const ConfigKey &section,
                        const ConfigValue &object) const {
  if (section.type == ConfigType::Open)
    return (object.kind == Kind::Bool && object.boolean) || anyEnabled(object);
  const ConfigValue *enabled = object.find("enabled");
  if (!enabled)
    return false;
  // Of the sections that may be "auto", the flag --precision is the switch.
  if (enabled->isAuto())
    return flags.precision == StringRef(section.path);
  return enabled->kind == Kind::Bool && enabled->boolean;
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// Fails, with an entry, where a parameter is not of the file's optimizer or
/// scheduler.
bool ConfigReader::checkKind(const ConfigKey &key, const std::string &path,
                             const ConfigValue &value) {
  bool isOptimizer = StringRef(key.path).starts_with("optimizer.");
  const std::string &kind = isOptimizer ? optimizerKind : schedulerKind;
  if (!*key.kinds || kind.empty() || keys::among(kind, key.kinds))
    return true;
  std::string owners = key.kinds;
  for (size_t at; (at = owners.find('|')) != owners.npos;)
    owners.replace(at, 1, ", ");
  result.entries.push_back(
      {path, value.print(), ConfigVerdict::Refused,
       kind + " has no parameter of that name; it is one of " + owners});
  return false;
}

/// The verdict that the table alone gives.
void ConfigReader::judge(const ConfigKey &key, ConfigEntry &entry,
                         const ConfigValue &value) {
  entry.verdict = key.verdict;
  entry.becomes = key.note;
  if (value.kind == Kind::Null) {
    entry.verdict = ConfigVerdict::NoEffect;
    entry.becomes = "as if it were absent";
  } else if (key.verdict == ConfigVerdict::Refused) {
    bool harmless =
        key.switched ? !isOn(key, value) : isHarmless(value, key.harmless);
    if (harmless || value.isAuto()) {
      entry.verdict = ConfigVerdict::NoEffect;
      entry.becomes = key.switched ? "it is off" : "asks for nothing";
    }
  }
}

void ConfigReader::readContents(const ConfigKey &key, const std::string &path,
                                const ConfigValue &value, StringRef off) {
  std::string switchedOff;
  if (off.empty() && key.switched && !isOn(key, value))
    off = switchedOff = path + ".enabled is not true";
  else if (off.empty() && key.verdict == ConfigVerdict::Refused)
    off = switchedOff = path + " is refused";
  if (value.members.empty())
    result.entries.push_back(
        {path, value.print(), ConfigVerdict::NoEffect, "it is empty"});
  readSection(path, value, off);
}

/// A name from a file as a part of a line.
static std::string printable(StringRef name) {
  std::string shown;
  llvm::raw_string_ostream os(shown);
  for (unsigned char c : name.take_front(60))
    if (c < 0x20 || c >= 0x7F)
      os << "\\x" << llvm::hexdigit(c >> 4) << llvm::hexdigit(c & 15);
    else
      os << char(c);
  return shown + (name.size() > 60 ? "..." : "");
}

void ConfigReader::readKey(StringRef section, StringRef name,
                           const ConfigValue &value, StringRef off) {
  std::string path =
      (section + (section.empty() ? "" : ".") + printable(name)).str();
  // The file may call the section by another name.
  const ConfigKey *owner = section.empty() ? nullptr : keys::find(section);
  std::string place = owner ? owner->path : "";
  const ConfigKey *key =
      keys::find(place.empty() ? name.str() : place + "." + name.str());
  auto add = [&](ConfigVerdict verdict, const Twine &becomes) {
    result.entries.push_back({path, value.print(), verdict, becomes.str()});
  };
  // Parameters of an optimizer or scheduler that is refused are not ours.
  bool foreign = (place == "optimizer.params" && optimizerKind.empty()) ||
                 (place == "scheduler.params" && schedulerKind.empty());
  if (foreign)
    return add(ConfigVerdict::NoEffect,
               section.split('.').first + ".type is refused");
  if (!key) // a hint takes long to find: not for a whole file of strangers
    return add(ConfigVerdict::Refused,
               "unknown key" +
                   (++unknown > kMaxHints ? "" : keys::hint(place, name)));
  if (!seen.try_emplace(key->path, Seen{nullptr, 0}).second)
    return add(ConfigVerdict::Refused, "another name of " +
                                           StringRef(key->path) +
                                           ", which is there too");
  if (!checkKind(*key, path, value))
    return;
  bool typed = value.kind == Kind::Null || hasType(*key, value) ||
               (value.isAuto() && key->type != ConfigType::Section &&
                key->type != ConfigType::Open);
  // In an old file the whole of ZeRO is a truth value.
  if (key->type == ConfigType::Section && value.kind == Kind::Bool &&
      StringRef(key->path) == "zero_optimization")
    typed = true;
  if (!typed)
    return add(ConfigVerdict::Refused,
               "found " + value.print() + "; expected " +
                   keys::expectation(*key) + boundHint(*key, value) +
                   quotesHint(*key, value));
  bool isSection =
      key->type == ConfigType::Section && value.kind == Kind::Object;
  if (isSection && key->verdict != ConfigVerdict::Refused)
    return readContents(*key, path, value, off);
  ConfigEntry entry = {path, value.print(), key->verdict, key->note};
  judge(*key, entry, value);
  bool isSwitch = name == "enabled" && !off.empty();
  if (isSwitch && value.isAuto() && (place == "bf16" || place == "fp16"))
    entry = {path, entry.value, ConfigVerdict::NoEffect,
             "off; --precision " + place + " turns it on"};
  else if (isSwitch)
    entry = {path, entry.value, ConfigVerdict::NoEffect, "it is off"};
  else if (!off.empty() &&
           (!isSection || entry.verdict != ConfigVerdict::Refused))
    entry = {path, entry.value, ConfigVerdict::NoEffect, off.str()};
  else if (entry.verdict != ConfigVerdict::Refused && value.kind != Kind::Null)
    seen[key->path] = {&value, result.entries.size()};
  result.entries.push_back(std::move(entry));
  if (isSection)
    readContents(*key, path, value, off);
}

void ConfigReader::readSection(StringRef section, const ConfigValue &object,
                               StringRef off) {
  for (const auto &[name, value] : object.members)
    if (!StringRef(name).starts_with("_")) // a comment
      readKey(section, name, value, off);
}

//===----------------------------------------------------------------------===//
// What the file says
//===----------------------------------------------------------------------===//

const ConfigValue *ConfigReader::value(StringRef path) const {
  auto found = seen.find(path);
  return found == seen.end() ? nullptr : found->second.value;
}

bool ConfigReader::isAuto(StringRef path) const {
  const ConfigValue *found = value(path);
  return found && found->isAuto();
}

std::optional<double> ConfigReader::number(StringRef path) const {
  const ConfigValue *found = value(path);
  if (!found || found->kind != Kind::Number)
    return std::nullopt;
  return found->number;
}

std::optional<int64_t> ConfigReader::integer(StringRef path) const {
  const ConfigValue *found = value(path);
  return found ? wholeNumber(*found) : std::nullopt;
}

std::optional<bool> ConfigReader::boolean(StringRef path) const {
  const ConfigValue *found = value(path);
  if (!found || found->kind != Kind::Bool)
    return std::nullopt;
  return found->boolean;
}

std::optional<std::string> ConfigReader::text(StringRef path) const {
  const ConfigValue *found = value(path);
  if (!found || found->kind != Kind::Text || found->isAuto())
    return std::nullopt;
  const ConfigKey *key = keys::find(path);
  return key && key->type == ConfigType::Dtype ? canonicalDtype(found->text)
                                               : found->text;
}

ConfigEntry &ConfigReader::entry(StringRef path) {
  auto found = seen.find(path);
  if (found != seen.end() && found->second.value)
    return result.entries[found->second.entry];
  for (ConfigEntry &entry : result.entries)
    if (entry.path == path)
      return entry;
  result.entries.push_back({path.str(), "-", ConfigVerdict::Used, ""});
  return result.entries.back();
}

void ConfigReader::say(StringRef path, ConfigVerdict verdict,
                       const Twine &becomes) {
  ConfigEntry &row = entry(path);
  if (row.verdict == ConfigVerdict::Refused)
    return; // the first reason is the best
  row.becomes = becomes.str();
  row.verdict = verdict;
}

void ConfigReader::note(StringRef path, const Twine &text) {
  result.notes.push_back((path + ": " + text).str());
}

void ConfigReader::sayAndNote(StringRef path, ConfigVerdict verdict,
                              const Twine &becomes) {
  std::string text = becomes.str();
  say(path, verdict, text);
  if (entry(path).verdict == verdict)
    note(entry(path).path, text);
}

void ConfigReader::missing(StringRef path, StringRef flag) {
  if (complete)
    say(path, ConfigVerdict::Refused,
        "\"auto\" needs a value here; give " + flag);
  else
    say(path, ConfigVerdict::Used, "from " + flag);
}
