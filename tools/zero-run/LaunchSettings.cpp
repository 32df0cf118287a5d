//===- LaunchSettings.cpp - Which process this is -------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See LaunchSettings.h.
//
//===----------------------------------------------------------------------===//

#include "LaunchSettings.h"

#include <charconv>
#include <cstdlib>
#include <stdexcept>
#include <vector>

using namespace zero_tools;

/// Where processes meet when nobody says a port: torchrun's default.
static constexpr uint16_t defaultPort = 29500;

std::optional<std::string>
zero_tools::environmentVariable(const std::string &name) {
  const char *value = std::getenv(name.c_str());
  if (!value || !*value)
    return std::nullopt;
  return value;
}

namespace {

/// The variables of a launcher.
struct Launcher {
  const char *name, *rank, *size, *localRank, *localSize;
};

/// A number and the variable or flag that says it.
struct Said {
  std::string name;
  uint32_t value = 0;
  std::string text() const { return name + "=" + std::to_string(value); }
};

/// What one launcher says.
struct Found {
  std::string launcher;
  Said rank, size;
  std::optional<Said> localRank, localSize;

  std::string text() const {
    return rank.text() + " " + size.text() + " (" + launcher + ")";
  }
  bool agrees(const Found &other) const {
    return rank.value == other.rank.value && size.value == other.size.value;
  }
};

} // namespace

static constexpr Launcher torchrun = {"torchrun", "RANK", "WORLD_SIZE",
                                      "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
/// In the order in which they are believed.
static constexpr Launcher others[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
     "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"}};
static constexpr Launcher slurm = {"SLURM step", "SLURM_PROCID", "SLURM_NTASKS",
                                   "SLURM_LOCALID", ""};
/// Steps that srun has not started: the batch script, an interactive shell.
static constexpr uint64_t firstSpecialStep = 4294967290;

[[noreturn]] static void fail(const std::string &text) {
  throw std::runtime_error(text);
}

static std::optional<Said> said(const Environment &environment,
                                const char *name) {
  std::optional<std::string> text = environment(name);
  if (!text)
    return std::nullopt;
  Said result = {name, 0};
  auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), result.value);
  if (error != std::errc() || end != text->data() + text->size())
    fail(std::string(name) + "='" + *text + "': expected a whole number");
  return result;
}

static void checkRange(const Said &rank, const Said &size) {
  if (!size.value)
    fail(size.text() + ": there has to be a process");
  if (rank.value >= size.value)
    fail(rank.text() + " and " + size.text() + ": ranks go from 0 to " +
         std::to_string(size.value - 1));
}

/// What a launcher says; nothing where it has set neither rank nor size.
static std::optional<Found> find(const Launcher &launcher,
                                 const Environment &environment) {
  std::optional<Said> rank = said(environment, launcher.rank);
  std::optional<Said> size = said(environment, launcher.size);
  if (!rank && !size)
    return std::nullopt;
  if (!rank || !size)
    fail((rank ? rank : size)->text() + " is set (" + launcher.name + ") and " +
         (rank ? launcher.size : launcher.rank) + " is not");
  Found found = {launcher.name, *rank, *size,
                 said(environment, launcher.localRank),
                 said(environment, launcher.localSize)};
  checkRange(*rank, *size);
  if (found.localRank && found.localSize)
    checkRange(*found.localRank, *found.localSize);
  return found;
}

/// A shell of salloc has SLURM's variables too, and is one process.
static std::optional<Found> findSlurm(const Environment &environment) {
  std::optional<std::string> step = environment("SLURM_STEP_ID");
  if (!step)
    step = environment("SLURM_STEPID");
  uint64_t number = 0;
  if (!step ||
      std::from_chars(step->data(), step->data() + step->size(), number).ec !=
          std::errc() ||
      number >= firstSpecialStep)
    return std::nullopt;
  Launcher names = slurm;
  if (environment("SLURM_STEP_NUM_TASKS"))
    names.size = "SLURM_STEP_NUM_TASKS";
  return find(names, environment);
}

static std::optional<Found> findOther(const Environment &environment) {
  for (const Launcher &launcher : others)
    if (auto found = find(launcher, environment))
      return found;
  return findSlurm(environment);
}

/// What is missing of torchrun's set, and what there is of it.
struct TorchrunSet {
  std::vector<Said> numbers;
  std::string present, missing;
};

static TorchrunSet torchrunSet(const Environment &environment) {
  TorchrunSet set;
  for (const char *name : {"RANK", "WORLD_SIZE", "LOCAL_RANK"})
    if (auto number = said(environment, name))
      set.numbers.push_back(*number);
  for (const char *name :
       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    std::optional<std::string> value = environment(name);
    std::string &list = value ? set.present : set.missing;
    list += (list.empty() ? "" : ", ") + std::string(name) +
            (value ? "=" + *value : "");
  }
  return set;
}

/// A few variables of torchrun beside another launcher: scripts copy them, and
/// then they say the same.
static void checkPartial(const TorchrunSet &set,
                         const std::optional<Found> &other) {
  if (!other)
    fail(set.present + " of torchrun's variables are set, and " + set.missing +
         " are not: set all of them or none");
  for (const Said &number : set.numbers) {
    const std::optional<Said> same = number.name == "RANK" ? other->rank
                                     : number.name == "WORLD_SIZE"
                                         ? other->size
                                         : other->localRank;
    if (same && same->value != number.value)
      fail(number.text() + " (torchrun) contradicts " + same->text() + " (" +
           other->launcher + "): unset one of them");
  }
}

/// What the environment says; nothing: this process is alone.
static std::optional<Found> findAny(const Environment &environment) {
  TorchrunSet set = torchrunSet(environment);
  std::optional<Found> other = findOther(environment);
  // Address and port alone belong to any launcher.
  if (set.numbers.empty())
    return other;
  if (!set.missing.empty()) {
    checkPartial(set, other);
    return other;
  }
  Found found = *find(torchrun, environment);
  // torchrun itself may have been started by another launcher, one a machine.
  bool nested = environment("TORCHELASTIC_RUN_ID").has_value();
  if (other && other->size.value > 1 && !other->agrees(found) && !nested)
    fail(found.text() + " contradicts " + other->text() +
         ": unset the variables of one of them");
  return found;
}

static std::optional<Said> flag(const char *name,
                                const std::optional<int64_t> &value) {
  if (!value)
    return std::nullopt;
  return Said{name, uint32_t(*value)};
}

/// Flags that say one of rank and size have to agree with the environment.
static void checkFlag(const std::optional<Said> &given, const Said &found,
                      const std::string &launcher) {
  if (given && given->value != found.value)
    fail(given->name + " " + std::to_string(given->value) + " contradicts " +
         found.text() + " (" + launcher +
         "); --rank and --world-size together take the place of it");
}

static std::optional<Found> withFlags(const LaunchFlags &flags,
                                      const Environment &environment) {
  std::optional<Said> rank = flag("--rank", flags.rank);
  std::optional<Said> size = flag("--world-size", flags.worldSize);
  std::optional<Said> local = flag("--local-rank", flags.localRank);
  if (rank && size) {
    checkRange(*rank, *size);
    return Found{"--rank and --world-size", *rank, *size, local, std::nullopt};
  }
  std::optional<Found> found = findAny(environment);
  if (found) {
    checkFlag(rank, found->rank, found->launcher);
    checkFlag(size, found->size, found->launcher);
    if (local)
      found->localRank = local;
    return found;
  }
  if (rank || size)
    fail((rank ? "--rank" : "--world-size") + std::string(" is given and ") +
         (rank ? "--world-size" : "--rank") +
         " is not, nor does the environment say it");
  if (local)
    fail("--local-rank is given, but neither flags nor environment say that "
         "there are other processes");
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Where process 0 is
//===----------------------------------------------------------------------===//

std::string zero_tools::firstHost(const std::string &name,
                                  const std::string &list) {
  std::string host;
  auto bad = [&]() { fail(name + "='" + list + "': is no list of hosts"); };
  for (size_t at = 0; at < list.size() && list[at] != ',';) {
    if (list[at] == ']')
      bad();
    if (list[at] != '[') {
      host += list[at++];
      continue;
    }
    size_t close = list.find(']', at);
    size_t end = list.find_first_of(",-]", at);
    if (close == list.npos || end == at + 1)
      bad();
    host.append(list, at + 1, end - at - 1);
    at = close + 1;
  }
  if (host.empty())
    bad();
  return host;
}

/// A port above those that systems give to connections, the same for all
/// processes of a job: two jobs on one machine rarely meet.
static uint16_t portOfJob(const std::string &job) {
  uint32_t hash = 2166136261u; // FNV-1a
  for (char c : job)
    hash = (hash ^ uint8_t(c)) * 16777619u;
  return uint16_t(61440 + hash % 4096);
}

static uint16_t portOf(const Found &found, const Environment &environment) {
  if (auto port = said(environment, "MASTER_PORT")) {
    if (!port->value || port->value > 65535)
      fail(port->text() + ": expected a port from 1 to 65535");
    // There torchrun itself listens.
    bool taken = found.launcher == torchrun.name &&
                 environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
    return taken ? portOfJob("torchrun " + std::to_string(port->value))
                 : uint16_t(port->value);
  }
  for (const char *name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"})
    if (auto job = environment(name))
      return portOfJob(*job);
  if (found.launcher == slurm.name)
    return portOfJob(environment("SLURM_JOB_ID").value_or("") + "." +
                     environment("SLURM_STEP_ID").value_or(""));
  return defaultPort;
}

static std::string addressOf(const Found &found,
                             const Environment &environment) {
  if (auto address = environment("MASTER_ADDR"))
    return *address;
  if (found.launcher == slurm.name)
    for (const char *name : {"SLURM_STEP_NODELIST", "SLURM_NODELIST"})
      if (auto list = environment(name))
        return firstHost(name, *list);
  bool oneMachine =
      found.localSize && found.localSize->value == found.size.value;
  if (oneMachine)
    return "127.0.0.1";
  fail("where is process 0? " + found.text() +
       " does not say that all processes are on one machine: give "
       "--master-addr or MASTER_ADDR");
}

LaunchSettings zero_tools::launchSettings(const LaunchFlags &flags,
                                          const Environment &environment) {
  std::optional<Found> found = withFlags(flags, environment);
  LaunchSettings settings;
  if (!found || found->size.value == 1) {
    settings.source = found ? found->launcher : "";
    return settings;
  }
  settings.rank = found->rank.value;
  settings.size = found->size.value;
  settings.source = found->launcher;
  if (found->localRank) {
    settings.localRank = found->localRank->value;
    settings.localSize =
        found->localSize ? found->localSize->value : settings.localRank + 1;
  }
  settings.address = flags.masterAddress.empty()
                         ? addressOf(*found, environment)
                         : flags.masterAddress;
  settings.port = flags.masterPort ? uint16_t(*flags.masterPort)
                                   : portOf(*found, environment);
  return settings;
}
