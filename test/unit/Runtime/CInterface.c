//===- CInterface.c - The C interface from C ------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Holds zero-rt.h to be C.
//
//===----------------------------------------------------------------------===//

#include "zero-rt/zero-rt.h"

#include <string.h>

/* Nonzero if a C program gets a status, no handle and a message. */
int refusesFromC(void) {
  zrt_program *program = (zrt_program *)&program;
  zrt_status status = zrt_program_load_bytes("ZPLN", 4, &program);
  zrt_program_destroy(program);
  return status == ZRT_ERROR_FORMAT && program == NULL &&
         strstr(zrt_last_error(), "not a zplan program") != NULL;
}
