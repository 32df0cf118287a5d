// A training step without one op of this project: linalg and arith on tensors,
// as another compiler could emit it. Roles on arguments and results say what is
// a parameter, what replaces it, and what comes from the data.
//
//   zero-opt --zero-outline-state --zero-stage=3 --zero-ranks=4 linalg-step.mlir
//   zero-run linalg-step.mlir --ranks 4 --zero-stage 3 --batch 8 --data D.safetensors --lr 0.002 --steps 10
//
// It learns to reproduce its input: h = x w^T, loss = |h - x|^2 / 2, plain SGD.
#ik = affine_map<(i, j, k) -> (i, k)>
#jk = affine_map<(i, j, k) -> (j, k)>
#ki = affine_map<(i, j, k) -> (k, i)>
#kj = affine_map<(i, j, k) -> (k, j)>
#ij = affine_map<(i, j, k) -> (i, j)>
#id = affine_map<(i, j) -> (i, j)>
#scalar = affine_map<(i, j) -> ()>
func.func @step(
    %w: tensor<20x20xf32> {zero.role = "param", zero.name = "w"},
    %x: tensor<8x20xf32> {zero.role = "input", zero.name = "x"},
    %lr: tensor<f32> {zero.role = "hyper", zero.name = "lr"})
    -> (tensor<20x20xf32> {zero.role = "param", zero.of = "w"},
        tensor<f32> {zero.role = "output", zero.name = "loss", zero.across = "mean"}) {
  %zero = arith.constant 0.0 : f32
  // Forward.
  %e0 = tensor.empty() : tensor<8x20xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8x20xf32>) -> tensor<8x20xf32>
  %h = linalg.matmul indexing_maps = [#ik, #jk, #ij]
      ins(%x, %w : tensor<8x20xf32>, tensor<20x20xf32>) outs(%z0 : tensor<8x20xf32>) -> tensor<8x20xf32>
  %d = arith.subf %h, %x : tensor<8x20xf32>
  %e1 = tensor.empty() : tensor<f32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<f32>) -> tensor<f32>
  %loss = linalg.generic {indexing_maps = [#id, #scalar], iterator_types = ["reduction", "reduction"]}
      ins(%d : tensor<8x20xf32>) outs(%z1 : tensor<f32>) {
    ^bb0(%v: f32, %sum: f32):
      %half = arith.constant 0.5 : f32
      %square = arith.mulf %v, %v : f32
      %part = arith.mulf %square, %half : f32
      %next = arith.addf %sum, %part : f32
      linalg.yield %next : f32
  } -> tensor<f32>
  // Backward.
  %e2 = tensor.empty() : tensor<20x20xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<20x20xf32>) -> tensor<20x20xf32>
  %dw = linalg.matmul indexing_maps = [#ki, #kj, #ij]
      ins(%d, %x : tensor<8x20xf32>, tensor<8x20xf32>) outs(%z2 : tensor<20x20xf32>) -> tensor<20x20xf32>
  // Update.
  %new = linalg.generic {indexing_maps = [#id, #scalar, #id], iterator_types = ["parallel", "parallel"]}
      ins(%dw, %lr : tensor<20x20xf32>, tensor<f32>) outs(%w : tensor<20x20xf32>) {
    ^bb0(%g: f32, %rate: f32, %p: f32):
      %change = arith.mulf %g, %rate : f32
      %value = arith.subf %p, %change : f32
      linalg.yield %value : f32
  } -> tensor<20x20xf32>
  return %new, %loss : tensor<20x20xf32>, tensor<f32>
}
