//===- OffloadChoice.cpp - What is worth offloading -----------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Orders what can be offloaded by its cost, and cuts the order into choices.
//
//===----------------------------------------------------------------------===//

#include "zero/Schedule/OffloadChoice.h"

#include "llvm/ADT/StringExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::zero;

bool mlir::zero::mayOffloadForSpeed(const CostModel &cost) {
  return cost.getMachine().constant("processor_cores") <= 0;
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

double OffloadLoad::longest() const {
  return std::max({compute, toHost, toDevice, host, diskRead, diskWrite});
}

double OffloadLoad::copies() const {
  return toHost + toDevice + host + diskRead + diskWrite;
}

OffloadLoad mlir::zero::operator+(OffloadLoad a, const OffloadLoad &b) {
  a.compute += b.compute;
  a.toHost += b.toHost;
  a.toDevice += b.toDevice;
  a.host += b.host;
  a.diskRead += b.diskRead;
  a.diskWrite += b.diskWrite;
  return a;
}

//===----------------------------------------------------------------------===//
// Selections
//===----------------------------------------------------------------------===//

/// Parts of all bytes that the nested choices free: finer where little is
/// needed, since there the next one costs the most in proportion.
static constexpr double kParts[] = {1.0 / 32, 1.0 / 16, 1.0 / 8, 3.0 / 16,
                                    1.0 / 4,  5.0 / 16, 3.0 / 8, 1.0 / 2,
                                    5.0 / 8,  3.0 / 4,  7.0 / 8, 1};

/// The groups in the order in which they go: always the one that makes the
/// busiest channel longer by the fewest seconds for its bytes; of equals, the
/// one that keeps channels busy for the fewest; then the last of the step,
/// whose gradient is complete first.
std::vector<size_t> OffloadChoices::cheapestFirst() const {
  std::vector<size_t> left(groups.size()), order;
  std::iota(left.begin(), left.end(), 0);
  OffloadLoad load;
  load.compute = compute;
  while (!left.empty()) {
    auto cost = [&](size_t group) {
      const OffloadGroup &g = groups[group];
      double bytes = std::max<int64_t>(g.bytes, 1);
      OffloadLoad then = load + g.host;
      return std::tuple((then.longest() - load.longest()) / bytes,
                        g.host.copies() / bytes, -int64_t(group));
    };
    auto best =
        std::min_element(left.begin(), left.end(),
                         [&](size_t a, size_t b) { return cost(a) < cost(b); });
    load = load + groups[*best].host;
    order.push_back(*best);
    left.erase(best);
  }
  return order;
}

void OffloadChoices::addSelection(std::vector<bool> selection) {
  if (!llvm::is_contained(selections, selection))
    selections.push_back(std::move(selection));
}

OffloadChoices::OffloadChoices(std::vector<OffloadGroup> list, double compute,
                               std::string states)
    : groups(std::move(list)), compute(compute), states(std::move(states)) {
  std::vector<bool> selection(groups.size());
  addSelection(selection);
  int64_t all = 0, freed = 0;
  for (const OffloadGroup &group : groups)
    all += group.bytes;
  std::vector<size_t> order = cheapestFirst();
  auto next = order.begin();
  for (double part : kParts) {
    for (; next != order.end() && (part == 1 || freed < part * all); ++next) {
      selection[*next] = true;
      freed += groups[*next].bytes;
    }
    addSelection(selection);
  }
  auto addKinds = [&](ArrayRef<OffloadKind> kinds) {
    for (auto [group, chosen] : llvm::enumerate(groups))
      selection[group] = llvm::is_contained(kinds, chosen.kind);
    addSelection(selection);
  };
  addKinds({OffloadKind::Optimizer});
  addKinds({OffloadKind::Gradients});
  addKinds({OffloadKind::Parameters});
  addKinds({OffloadKind::Activations});
  addKinds({OffloadKind::Optimizer, OffloadKind::Parameters});
  addKinds({OffloadKind::Optimizer, OffloadKind::Gradients,
            OffloadKind::Parameters});
}

bool OffloadChoices::isWhole(size_t number) const {
  const std::vector<bool> &selection = selections[number];
  for (size_t group = 1; group < groups.size(); ++group)
    for (size_t other = 0; other != group; ++other)
      if (groups[group].kind == groups[other].kind &&
          selection[group] != selection[other])
        return false;
  return true;
}

std::optional<OffloadLevel>
OffloadChoices::level(size_t number, int64_t hostBytes, bool disk) const {
  OffloadLevel level;
  level.memory.assign(groups.size(), Memory::Device);
  std::vector<size_t> chosen;
  for (size_t group = 0; group != groups.size(); ++group)
    if (selections[number][group]) {
      level.memory[group] = Memory::Host;
      level.hostBytes += groups[group].bytes;
      chosen.push_back(group);
    }
  level.deviceBytes = level.hostBytes;
  if (hostBytes >= 0 && level.hostBytes > hostBytes && !disk)
    return std::nullopt;
  // To the disk goes first what keeps it busy for the fewest seconds.
  auto added = [&](size_t group) {
    const OffloadGroup &g = groups[group];
    return (g.disk.copies() - g.host.copies()) / std::max<int64_t>(g.bytes, 1);
  };
  llvm::stable_sort(chosen,
                    [&](size_t a, size_t b) { return added(a) < added(b); });
  for (size_t group : chosen) {
    if (hostBytes < 0 || level.hostBytes <= hostBytes)
      break;
    level.memory[group] = Memory::Disk;
    level.hostBytes -= groups[group].bytes;
    level.diskBytes += groups[group].bytes;
  }
  level.load.compute = compute;
  for (auto [group, memory] : llvm::zip_equal(groups, level.memory))
    if (memory != Memory::Device)
      level.load =
          level.load + (memory == Memory::Disk ? group.disk : group.host);
  level.rules = makeRules(level.memory);
  return level;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// A pattern that matches `name` alone.
static std::string exactly(StringRef name) {
  std::string pattern;
  for (char c : name) {
    if (StringRef("*?[]{}\\^").contains(c))
      pattern += '\\';
    pattern += c;
  }
  return pattern;
}

/// Patterns for the names of `group`: one for its layer where that matches no
/// other name of its kind.
static std::vector<std::string> patternsFor(const OffloadGroup &group,
                                            ArrayRef<OffloadGroup> all) {
  std::vector<std::string> each;
  for (const std::string &name : group.names)
    each.push_back(exactly(name));
  if (each.size() < 2 || group.unit.empty())
    return each;
  std::string prefix = group.unit + ".";
  for (const OffloadGroup &other : all)
    if (other.kind == group.kind)
      for (const std::string &name : other.names)
        if (StringRef(name).starts_with(prefix) != (&other == &group))
          return each;
  return {exactly(prefix) + "*"};
}

std::vector<OffloadRule>
OffloadChoices::makeRules(ArrayRef<Memory> memory) const {
  std::vector<OffloadRule> rules;
  for (OffloadKind kind : {OffloadKind::Optimizer, OffloadKind::Gradients,
                           OffloadKind::Parameters, OffloadKind::Activations}) {
    SmallVector<size_t> members;
    for (size_t group = 0; group != groups.size(); ++group)
      if (groups[group].kind == kind)
        members.push_back(group);
    if (members.empty())
      continue;
    Memory first = memory[members.front()];
    if (llvm::all_of(members, [&](size_t m) { return memory[m] == first; })) {
      if (first != Memory::Device)
        rules.push_back({kind, "*", first, 1});
      continue;
    }
    for (size_t member : members)
      if (memory[member] != Memory::Device)
        for (std::string &pattern : patternsFor(groups[member], groups))
          rules.push_back({kind, std::move(pattern), memory[member], 1});
  }
  return rules;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// "layers 0-2, 5" of ascending numbers.
static std::string listNumbers(ArrayRef<int64_t> numbers) {
  std::string text = numbers.size() > 1 ? "layers " : "layer ";
  for (size_t i = 0; i != numbers.size();) {
    size_t end = i + 1;
    while (end != numbers.size() && numbers[end] == numbers[end - 1] + 1)
      ++end;
    text += (i ? ", " : "") + std::to_string(numbers[i]);
    if (end - i > 1)
      text += "-" + std::to_string(numbers[end - 1]);
    i = end;
  }
  return text;
}

/// Most units without a number that a sentence names.
static constexpr size_t kMaxNames = 4;

/// "layers 0-17 and wte" of units like "h.0" and "wte".
static std::string listUnits(ArrayRef<StringRef> units) {
  std::vector<int64_t> numbers;
  SmallVector<std::string> rest;
  for (StringRef unit : units) {
    StringRef last = unit.contains('.') ? unit.rsplit('.').second : unit;
    int64_t number;
    if (last.getAsInteger(10, number))
      rest.push_back(last.str());
    else
      numbers.push_back(number);
  }
  llvm::sort(numbers);
  numbers.erase(llvm::unique(numbers), numbers.end());
  std::string text = numbers.empty() ? "" : listNumbers(numbers);
  if (rest.size() > kMaxNames) {
    size_t others = rest.size() - kMaxNames + 1;
    rest.resize(kMaxNames - 1);
    rest.push_back(std::to_string(others) + " others");
  }
  if (!rest.empty())
    text += (text.empty() ? "" : " and ") + llvm::join(rest, ", ");
  return text;
}

std::string OffloadChoices::describe(const OffloadLevel &level) const {
  std::string text;
  for (OffloadKind kind : {OffloadKind::Optimizer, OffloadKind::Gradients,
                           OffloadKind::Parameters, OffloadKind::Activations})
    for (Memory memory : {Memory::Host, Memory::Disk}) {
      std::vector<StringRef> units;
      size_t of = 0;
      for (auto [group, place] : llvm::zip_equal(groups, level.memory)) {
        of += group.kind == kind;
        if (group.kind == kind && place == memory)
          units.push_back(group.unit.empty() ? group.names.front()
                                             : group.unit);
      }
      if (units.empty())
        continue;
      std::string what = kind == OffloadKind::Optimizer
                             ? states
                             : stringifyOffloadKind(kind).str();
      text += (text.empty() ? "" : "; ") + what + " of " +
              (units.size() == of ? "all layers" : listUnits(units));
      if (memory == Memory::Disk)
        text += " to disk";
    }
  return text;
}
