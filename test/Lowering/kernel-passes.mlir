// RUN: zero-opt --kernel-fuse --split-input-file %s | FileCheck %s --check-prefix=FUSE
// RUN: zero-opt --kernel-pass-destinations --split-input-file %s | FileCheck %s --check-prefix=DEST

// A chain is one loop. Booleans cross the boundary as bytes. Of the operands
// only the tied one is written.
// FUSE-LABEL: func.func @chain
// FUSE-SAME: %[[P:.*]]: tensor<4xf32>, %{{.*}}: tensor<4xi8>) -> tensor<4xf32>
// FUSE: linalg.generic
// FUSE-SAME: outs(%[[P]] : tensor<4xf32>)
// FUSE-DAG: arith.cmpi ne
// FUSE-DAG: math.exp
// FUSE: arith.select
// FUSE-NOT: linalg.generic

// DEST-LABEL: func.func @chain
// DEST-SAME: (%[[P:.*]]: memref<4xf32>, %[[C:.*]]: memref<4xi1>)
// DEST: bufferization.to_tensor %[[P]] restrict writable
// DEST: bufferization.to_tensor %[[C]] restrict : memref<4xi1>
// DEST: bufferization.materialize_in_destination %{{.*}} in writable %[[P]]
// DEST-NEXT: return
func.func @chain(%p: tensor<4xf32>, %c: tensor<4xi1>) -> tensor<4xf32>
    attributes {plan.kernel, plan.tied = array<i64: 0>} {
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.exp ins(%p : tensor<4xf32>) outs(%e : tensor<4xf32>)
      -> tensor<4xf32>
  %1 = linalg.select ins(%c, %0, %p : tensor<4xi1>, tensor<4xf32>, tensor<4xf32>)
      outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// In a loop over rows only the row of the producer is computed.
// FUSE-LABEL: func.func @rows
// FUSE-NOT: linalg.generic
// FUSE: scf.for
// FUSE: %[[ROW:.*]] = tensor.extract_slice %{{.*}} to tensor<8xf32>
// FUSE: linalg.generic {{.*}} ins(%[[ROW]] : tensor<8xf32>)
// FUSE: math.exp
// FUSE: arith.addf

// DEST-LABEL: func.func @rows
// DEST-SAME: (%{{.*}}: memref<4x8xf32>, %[[OUT:.*]]: memref<4xf32>)
// DEST: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[OUT]]
func.func @rows(%x: tensor<4x8xf32>) -> tensor<4xf32> attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.exp ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>)
      -> tensor<4x8xf32>
  %r = tensor.empty() : tensor<4xf32>
  %1 = scf.for %i = %c0 to %c4 step %c1 iter_args(%o = %r) -> tensor<4xf32> {
    %row = tensor.extract_slice %0[%i, 0] [1, 8] [1, 1]
        : tensor<4x8xf32> to tensor<8xf32>
    %s = tensor.empty() : tensor<f32>
    %z = linalg.fill ins(%zero : f32) outs(%s : tensor<f32>) -> tensor<f32>
    %sum = linalg.reduce { arith.addf } ins(%row : tensor<8xf32>)
        outs(%z : tensor<f32>) dimensions = [0]
    %v = tensor.extract %sum[] : tensor<f32>
    %n = tensor.insert %v into %o[%i] : tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %1 : tensor<4xf32>
}
