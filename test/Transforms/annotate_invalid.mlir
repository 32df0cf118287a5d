// Numbers of ranks and grids that make no sense, and an existing grid.
// RUN: not zero-opt %s --split-input-file --zero-annotate=ranks=0 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not zero-opt %s --split-input-file --zero-annotate=ranks=-2 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not zero-opt %s --split-input-file --zero-annotate=grid=2,0 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not zero-opt %s --split-input-file --zero-annotate='ranks=4 grid=4' 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not zero-opt %s --split-input-file --zero-annotate=ranks=4 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: zero-opt %s --zero-annotate=ranks=2 | FileCheck %s --check-prefix=SAME
// RUN: zero-opt %s --zero-annotate | FileCheck %s --check-prefix=SAME

// NONE: error: expects at least 1 rank, got 0
// NEGATIVE: error: expects at least 1 rank, got -2
// BOTH: error: is given a number of ranks and a grid; give one of them
// OTHER: error: 'shard.grid' op has shape [2], but [4] is asked for; remove the grid or the option
// SAME: shard.grid @mine(shape = 2)
// SAME-NOT: shard.grid
shard.grid @mine(shape = 2)
