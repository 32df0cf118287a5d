// What zero-offload refuses, one line each.
// RUN: not zero-opt %s --zero-offload=rules=optimizr=host 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: error: offload rule 'optimizr=host': unknown kind 'optimizr'; expects optimizer, gradients, parameters or activations
// RUN: not zero-opt %s --zero-offload=rules=optimizer 2>&1 | FileCheck %s --check-prefix=FORM
// FORM: error: offload rule 'optimizer': expects KIND[@GLOB]=device|host|disk[:RATIO], such as optimizer=host
// RUN: not zero-opt %s --zero-offload=rules=optimizer=cpu 2>&1 | FileCheck %s --check-prefix=MEMORY
// MEMORY: error: offload rule 'optimizer=cpu': expects device, host or disk, not 'cpu'
// RUN: not zero-opt %s --zero-offload=rules=optimizer=host:1.5 2>&1 | FileCheck %s --check-prefix=RATIO
// RATIO: error: offload rule 'optimizer=host:1.5': expects a ratio from 0 to 1, not '1.5'
// RUN: not zero-opt %s --zero-offload=rules=optimizer=host:half 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: error: offload rule 'optimizer=host:half': expects a ratio from 0 to 1, not 'half'
// RUN: not zero-opt %s --zero-offload='rules=optimizer@a[b=host' 2>&1 | FileCheck %s --check-prefix=GLOB
// GLOB: error: offload rule 'optimizer@a[b=host': 'a[b' is no pattern:
// RUN: not zero-opt %s --zero-offload='rules=parameters@h.*=host' 2>&1 | FileCheck %s --check-prefix=MATCH
// MATCH: error: offload rule 'parameters@h.*=host' matches nothing: the first name of its kind is 'w'
// RUN: not zero-opt %s --zero-offload=rules=activations=disk:0.5 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: offload rule 'activations=disk:0.5' matches nothing: the step has no activations that could be moved
// RUN: not zero-opt %s --zero-offload=rules=parameters=host --zero-offload=rules=parameters=disk 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: error: is already offloaded; give all rules to one zero-offload
// RUN: sed 's/zero.stage/zero.planned_peak = 1 : i64, zero.stage/' %s | not zero-opt --zero-offload=rules=parameters=host 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: is already scheduled; zero-offload stands before zero-schedule
// RUN: sed s/zero.stage/was.stage/ %s | not zero-opt --zero-offload=rules=parameters=host 2>&1 | FileCheck %s --check-prefix=WHOLE
// WHOLE: error: is not partitioned, so there is nothing to offload; run zero-partition first
// RUN: sed /shard.grid/d %s | not zero-opt --zero-offload=rules=parameters=host 2>&1 | FileCheck %s --check-prefix=GRID
// GRID: error: has no shard.grid; run zero-annotate first
module attributes {zero.stage = 0 : i64} {
  shard.grid @dp(shape = 4)
  zero.param @w : tensor<8xf32>
  func.func @step(%x: tensor<8xf32> {zero.input = "x"}) -> tensor<8xf32> {
    %w = zero.read @w : tensor<8xf32>
    %y = arith.addf %x, %w : tensor<8xf32>
    return %y : tensor<8xf32>
  }
}
