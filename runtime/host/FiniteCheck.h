//===- FiniteCheck.h - The first tensor that is not finite ----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Looks at what each command writes, in all floating types, for NaN and
// infinity. The step goes on to its end and the first finding is chosen
// then: of the earliest micro-batch, of it the first command in the program's
// order, of it the lowest rank. So the choice does not depend on timing.
//
// An attention mask writes -inf where no harm comes of it: softmax makes zeros.
// Minus infinity alone is therefore no finding as long as the step's outputs
// are finite; a command that was seen to write it in such a step is not
// suspected later.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_HOST_FINITECHECK_H
#define ZERO_RT_HOST_FINITECHECK_H

#include "runtime/core/Program.h"
#include "runtime/host/FiniteScan.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace zrt::host {

class Rank;

class FiniteCheck {
public:
  explicit FiniteCheck(const Program &program);

  /// Looks at the inputs and, before the first step, at all state: called when
  /// the program begins to run, from one thread. `micro` counts the runs of a
  /// step from 0.
  void begin(uint32_t micro, const std::vector<std::unique_ptr<Rank>> &ranks);

  /// Looks at what a command has written. Each stream of each rank has
  /// one thread.
  void scan(const Rank &rank, uint32_t number, uint32_t stream, size_t command);

  /// What each process gives, by rank.
  using AllGather =
      std::function<std::vector<std::string>(const std::string &own)>;
  /// After the last micro-batch: what was found, in one line, unless the step
  /// was skipped for it. Forgets it. `ranks` are those of this process;
  /// `allGather` is empty where there is no other.
  std::optional<std::string>
  finish(const std::vector<std::unique_ptr<Rank>> &ranks, bool skipped,
         const AllGather &allGather);

private:
  struct Finding {
    uint32_t micro;
    /// Of the program; -1: before it, in an input or in state.
    int64_t command;
    uint32_t rank, buffer;
    std::vector<int64_t> sizes;
    NotFinite what;
  };
  /// A finding in words.
  struct Told {
    uint32_t micro;
    int64_t command;
    uint32_t rank;
    std::string text;
  };
  /// What one process has found, and all together.
  struct Found {
    std::optional<Told> first, negative; // see Worker
    bool outputsFinite = true;

    void add(const Found &other);
    std::string bytes() const;
    static Found fromBytes(const std::string &bytes);
  };
  /// What one thread has found.
  struct Worker {
    std::optional<Finding> first;       // NaN, inf
    std::optional<Finding> negative;    // -inf where none was before
    std::vector<uint8_t> wroteNegative; // by command, in this step
  };

  void look(const Rank &rank, uint32_t number, Worker &worker, int64_t command,
            uint32_t buffer, const View &view);
  std::vector<Operand> operandsOf(const Command &command) const;
  std::string placeOf(const Finding &finding) const;
  std::string describe(const Finding &finding) const;
  Found take(const std::vector<std::unique_ptr<Rank>> &ranks);
  bool outputsFinite(const std::vector<std::unique_ptr<Rank>> &ranks) const;

  const Program &program;
  uint32_t currentMicro = 0;
  bool stateSeen = false;
  std::vector<Worker> workers;                // [rank * numStreams + stream]
  std::vector<uint8_t> harmless;              // commands that write -inf
  std::vector<std::vector<Operand>> operands; // by command
};

} // namespace zrt::host

#endif // ZERO_RT_HOST_FINITECHECK_H
