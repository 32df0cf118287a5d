//===- MachineFile.cpp - Machines as JSON --------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and writes the JSON form of a machine.
//
//===----------------------------------------------------------------------===//

#include "zero/Cost/Json.h"
#include "zero/Cost/Machine.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <functional>

using namespace llvm;
using namespace mlir::zero;

static constexpr StringLiteral types[] = {"f64", "f32", "tf32", "bf16",
                                          "f16", "f8",  "i8"};
static constexpr StringLiteral collectives[] = {"all_gather", "reduce_scatter",
                                                "all_reduce"};

static std::string show(const json::Value &value) {
  std::string text = formatv("{0}", value);
  return text.size() > 40 ? text.substr(0, 37) + "..." : text;
}

namespace {
/// What a number must be.
enum class Range { Positive, NotNegative, Fraction };

/// Reads fields of one JSON object into a machine; keeps the first error.
class Reader {
public:
  Reader(StringRef file) : file(file) {}

  void machine(const json::Object &object, Machine &m);
  Error takeError() {
    return error.empty() ? Error::success()
                         : createStringError(inconvertibleErrorCode(), error);
  }
  bool failed() const { return !error.empty(); }
  void fail(const Twine &message) {
    if (error.empty())
      error = (file + ": " + message).str();
  }

private:
  std::string file, error;

  void wrong(const Twine &field, const json::Value &found, StringRef expected) {
    fail(field + " is " + show(found) + "; expected " + expected);
  }
  void unknown(const Twine &field, StringRef name, ArrayRef<StringRef> known) {
    StringRef close = closestName(name, known);
    fail("unknown field " + field +
         (close.empty() ? " (known: " + join(known, ", ") + ")"
                        : "; did you mean " + close.str() + "?"));
  }

  void number(const json::Value &value, const Twine &field, Range range,
              double &out);
  void integer(const json::Value &value, const Twine &field, int64_t minimum,
               int64_t &out);
  void bytes(const json::Value &value, const Twine &field, int64_t &out);
  void link(const json::Value &value, StringRef field, Link &out,
            std::map<std::string, Link> *overrides);
  void numbers(const json::Value &value, StringRef field, Range range,
               ArrayRef<StringRef> known, std::map<std::string, double> &out);
};
} // namespace

void Reader::number(const json::Value &value, const Twine &field, Range range,
                    double &out) {
  // Beyond these, sums of times would not be finite.
  constexpr double least = 1e-30, most = 1e30;
  StringRef expected = range == Range::Positive ? "a number from 1e-30 to 1e30"
                       : range == Range::Fraction
                           ? "a number above 0 and at most 1"
                           : "0 or a number from 1e-30 to 1e30";
  std::optional<double> number = value.getAsNumber();
  if (!number || !(*number >= 0 && *number <= most) ||
      (*number > 0 && *number < least) ||
      (range != Range::NotNegative && *number == 0) ||
      (range == Range::Fraction && *number > 1))
    return wrong(field, value, expected);
  out = *number;
}

void Reader::integer(const json::Value &value, const Twine &field,
                     int64_t minimum, int64_t &out) {
  std::optional<int64_t> number = value.getAsInteger();
  if (!number || *number < minimum)
    return wrong(field, value,
                 minimum ? "a whole number, 1 or more"
                         : "a whole number, 0 or more");
  out = *number;
}

void Reader::bytes(const json::Value &value, const Twine &field, int64_t &out) {
  std::optional<int64_t> number = value.getAsInteger();
  if (std::optional<StringRef> text = value.getAsString())
    number = parseByteSize(*text);
  if (!number || *number < 0)
    return wrong(field, value, "bytes, as a whole number or like \"80GiB\"");
  out = *number;
}

void Reader::link(const json::Value &value, StringRef field, Link &out,
                  std::map<std::string, Link> *overrides) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return wrong(field, value, "an object with latency and bandwidth");
  SmallVector<StringRef> known = {"latency", "bandwidth", "half_size",
                                  "own_part"};
  if (overrides)
    known.append(std::begin(collectives), std::end(collectives));
  for (const auto &[key, entry] : *object) {
    StringRef name = key;
    std::string path = (field + "." + name).str();
    if (name == "latency")
      number(entry, path, Range::NotNegative, out.latency);
    else if (name == "bandwidth")
      number(entry, path, Range::Positive, out.bandwidth);
    else if (name == "half_size")
      number(entry, path, Range::NotNegative, out.halfSizeBytes);
    else if (name == "own_part")
      number(entry, path, Range::NotNegative, out.ownPart);
    else if (!is_contained(known, name))
      unknown(path, name, known);
  }
  if (!overrides)
    return;
  // After the link's own fields: an override starts from them.
  for (StringRef name : collectives) {
    const json::Value *entry = object->get(name);
    if (!entry)
      continue;
    Link special = out;
    link(*entry, (field + "." + name).str(), special, nullptr);
    (*overrides)[name.str()] = special;
  }
}

void Reader::numbers(const json::Value &value, StringRef field, Range range,
                     ArrayRef<StringRef> known,
                     std::map<std::string, double> &out) {
  const json::Object *object = value.getAsObject();
  if (!object)
    return wrong(field, value, "an object of numbers");
  for (const auto &[key, entry] : *object) {
    StringRef name = key;
    std::string path = (field + "." + name).str();
    if (!is_contained(known, name))
      unknown(path, name, known);
    double number = 0;
    this->number(entry, path, range, number);
    out[name.str()] = number;
  }
}

void Reader::machine(const json::Object &object, Machine &m) {
  SmallVector<StringRef> constantNames;
  for (const MachineConstant &constant : machineConstants())
    constantNames.push_back(constant.name);
  SmallVector<StringRef> typeNames(std::begin(types), std::end(types));

  using Field = std::function<void(const json::Value &)>;
  std::vector<std::pair<StringRef, Field>> fields;
  auto add = [&](StringRef name, Field field) {
    fields.push_back({name, std::move(field)});
  };
  auto addNumber = [&](StringRef name, Range range, double &out) {
    add(name, [this, name, range, &out](const json::Value &v) {
      number(v, name, range, out);
    });
  };
  auto addBytes = [&](StringRef name, int64_t &out) {
    add(name,
        [this, name, &out](const json::Value &v) { bytes(v, name, out); });
  };
  auto addLink = [&](StringRef name, Link &out,
                     std::map<std::string, Link> *overrides = nullptr) {
    add(name, [this, name, &out, overrides](const json::Value &v) {
      link(v, name, out, overrides);
    });
  };
  add("base", [](const json::Value &) {}); // read before
  add("name", [&](const json::Value &v) {
    std::optional<StringRef> text = v.getAsString();
    if (!text || text->empty())
      return wrong("name", v, "a string");
    m.name = text->str();
  });
  add("nodes", [&](const json::Value &v) { integer(v, "nodes", 1, m.nodes); });
  add("ranks_per_node", [&](const json::Value &v) {
    integer(v, "ranks_per_node", 1, m.ranksPerNode);
  });
  addBytes("memory", m.memoryBytes);
  addBytes("reserved_memory", m.reservedBytes);
  addBytes("host_memory", m.hostMemoryBytes);
  add("peak_flops", [&](const json::Value &v) {
    numbers(v, "peak_flops", Range::Positive, typeNames, m.peakFlops);
  });
  addNumber("matmul_efficiency", Range::Fraction, m.matmulEfficiency);
  addNumber("matmul_half_flops", Range::NotNegative, m.matmulHalfFlops);
  addNumber("memory_bandwidth", Range::Positive, m.memoryBandwidth);
  addNumber("kernel_latency", Range::NotNegative, m.kernelLatency);
  addLink("intra_node", m.intraNode, &m.intraNodeOf);
  addLink("inter_node", m.interNode, &m.interNodeOf);
  addLink("host_to_device", m.hostToDevice);
  addLink("device_to_host", m.deviceToHost);
  addLink("disk_read", m.diskRead);
  addLink("disk_write", m.diskWrite);
  addNumber("host_bandwidth", Range::Positive, m.hostBandwidth);
  addNumber("host_flops", Range::Positive, m.hostFlops);
  add("constants", [&](const json::Value &v) {
    numbers(v, "constants", Range::NotNegative, constantNames, m.constants);
  });

  SmallVector<StringRef> names;
  for (const auto &field : fields)
    names.push_back(field.first);
  for (const auto &[key, value] : object)
    if (!is_contained(names, StringRef(key)))
      unknown(StringRef(key), key, names);
  for (const auto &[name, field] : fields)
    if (const json::Value *value = object.get(name))
      field(*value);
}

/// What every machine must say.
static void checkComplete(Reader &reader, const Machine &m) {
  if (m.memoryBytes <= 0)
    reader.fail("memory is missing or 0; expected the bytes of a rank's "
                "device, like \"80GiB\"");
  if (m.reservedBytes >= m.memoryBytes && m.memoryBytes > 0)
    reader.fail("reserved_memory is " + Twine(m.reservedBytes) +
                "; expected less than memory, " + Twine(m.memoryBytes));
  if (m.peakFlops.empty())
    reader.fail("peak_flops is missing; expected an object like "
                "{\"f32\": 6.7e13, \"bf16\": 9.89e14}");
  if (m.memoryBandwidth <= 0)
    reader.fail("memory_bandwidth is missing; expected bytes per second");
  if (m.intraNode.bandwidth <= 0 && m.ranksPerNode > 1)
    reader.fail("intra_node.bandwidth is missing; expected bytes per second "
                "and rank, one way");
}

Expected<Machine> mlir::zero::parseMachine(StringRef text, StringRef file) {
  Expected<json::Value> value = parseJson(text);
  if (!value)
    return createStringError(file + " " + toString(value.takeError()));
  Reader reader(file);
  const json::Object *object = value->getAsObject();
  if (!object) {
    reader.fail("found " + show(*value) + "; expected a JSON object");
    return reader.takeError();
  }
  Machine machine;
  if (const json::Value *base = object->get("base")) {
    std::optional<StringRef> name = base->getAsString();
    StringRef preset = name ? machinePresetText(*name) : StringRef();
    if (preset.empty()) {
      reader.fail("base is " + show(*base) +
                  "; expected a preset: " + join(machinePresets(), ", "));
      return reader.takeError();
    }
    Expected<Machine> parsed = parseMachine(preset, *name);
    if (!parsed)
      return parsed.takeError();
    machine = std::move(*parsed);
  }
  if (machine.name.empty())
    machine.name = sys::path::stem(file).str();
  reader.machine(*object, machine);
  checkComplete(reader, machine);
  if (reader.failed())
    return reader.takeError();
  return machine;
}

Expected<Machine> mlir::zero::loadMachine(StringRef nameOrPath) {
  StringRef preset = machinePresetText(nameOrPath);
  if (!preset.empty())
    return parseMachine(preset, nameOrPath);
  if (!nameOrPath.ends_with(".json")) {
    std::vector<StringRef> names = machinePresets();
    StringRef close = closestName(nameOrPath, names);
    return createStringError(
        inconvertibleErrorCode(),
        "unknown machine '" + nameOrPath + "'; " +
            (close.empty() ? Twine() : "did you mean '" + close + "'? ") +
            "Presets: " + join(names, ", ") + "; or a file that ends in .json");
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(nameOrPath, /*IsText=*/true);
  if (!buffer)
    return createStringError(buffer.getError(),
                             nameOrPath + ": cannot read the machine: " +
                                 buffer.getError().message());
  return parseMachine((*buffer)->getBuffer(), nameOrPath);
}

static json::Object linkToJson(const Link &link) {
  return json::Object{{"latency", link.latency},
                      {"bandwidth", link.bandwidth},
                      {"half_size", link.halfSizeBytes},
                      {"own_part", link.ownPart}};
}

static json::Object numbersToJson(const std::map<std::string, double> &map) {
  json::Object object;
  for (const auto &[name, value] : map)
    object[name] = value;
  return object;
}

std::string mlir::zero::printMachine(const Machine &m) {
  std::string text;
  raw_string_ostream stream(text);
  json::OStream json(stream, /*IndentSize=*/2);
  auto link = [&](StringRef name, const Link &value,
                  const std::map<std::string, Link> &overrides = {}) {
    if (value.bandwidth == 0 && overrides.empty())
      return;
    json::Object object = linkToJson(value);
    for (const auto &[kind, special] : overrides)
      object[kind] = linkToJson(special);
    json.attribute(name, std::move(object));
  };
  json.objectBegin();
  json.attribute("name", m.name);
  json.attribute("nodes", m.nodes);
  json.attribute("ranks_per_node", m.ranksPerNode);
  json.attribute("memory", m.memoryBytes);
  json.attribute("reserved_memory", m.reservedBytes);
  json.attribute("host_memory", m.hostMemoryBytes);
  json.attribute("peak_flops", numbersToJson(m.peakFlops));
  json.attribute("matmul_efficiency", m.matmulEfficiency);
  json.attribute("matmul_half_flops", m.matmulHalfFlops);
  json.attribute("memory_bandwidth", m.memoryBandwidth);
  json.attribute("kernel_latency", m.kernelLatency);
  link("intra_node", m.intraNode, m.intraNodeOf);
  link("inter_node", m.interNode, m.interNodeOf);
  link("host_to_device", m.hostToDevice);
  link("device_to_host", m.deviceToHost);
  link("disk_read", m.diskRead);
  link("disk_write", m.diskWrite);
  if (m.hostBandwidth > 0)
    json.attribute("host_bandwidth", m.hostBandwidth);
  if (m.hostFlops > 0)
    json.attribute("host_flops", m.hostFlops);
  json.attribute("constants", numbersToJson(m.constants));
  json.objectEnd();
  stream << '\n';
  return text;
}
