zero.param @w : tensor<8xf32> zeros
func.func @step(%x: tensor<8xf32> {zero.input = "x"}) {
  %w = zero.read @w : tensor<8xf32>
  %s = train.add %x, %w : tensor<8xf32>
  %y = train.sin %s : tensor<8xf32>
  zero.assign @w, %y : tensor<8xf32>
  return
}
