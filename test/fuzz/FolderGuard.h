//===- FolderGuard.h - Who opens a file outside is stopped -----*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The linker puts these between the importer and open, openat and syscall
// (--wrap). What was opened is compared with the model's folder by its real
// path; a file elsewhere ends the process, which the fuzzer reports.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FUZZ_FOLDERGUARD_H
#define ZERO_TEST_FUZZ_FOLDERGUARD_H

#include <cstdint>
#include <string>

namespace zero_fuzz {

/// The real path of the folder that the importer may open files in.
void guardFolder(const std::string &folder);

/// How many files were opened since the start.
uint64_t openedFiles();

} // namespace zero_fuzz

#endif // ZERO_TEST_FUZZ_FOLDERGUARD_H
