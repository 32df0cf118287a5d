//===- SamePrograms.cpp - All processes run one program -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See SamePrograms.h.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/SamePrograms.h"

#include "runtime/io/Hash.h"

using namespace zrt;

void zrt::checkSamePrograms(ProcessGroup &processes, const Program &program) {
  Hash hash;
  hash.update(program.bytes);
  std::vector<std::string> all = processes.allGather(hash.text());
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      fail(ZRT_ERROR_ARGUMENT, "the processes have different programs: rank 0 ",
           all[0], ", rank ", rank, " ", all[rank],
           "; give all of them the same file");
  if (program.ranks != processes.size())
    fail(ZRT_ERROR_ARGUMENT, "the program is for ", program.ranks,
         program.ranks == 1 ? " rank" : " ranks", ", but ", processes.size(),
         processes.size() == 1 ? " process runs it" : " processes run it",
         ": start one for each rank");
}
