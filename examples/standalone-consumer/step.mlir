// The training step of one linear layer under a squared loss, by hand.
zero.param @weight : tensor<6x4xf32> zeros

func.func @step(%x: tensor<8x4xf32> {zero.input = "x"}, %y: tensor<8x6xf32> {zero.input = "y"},
                %lr: tensor<f32> {zero.hyper = "lr"}, %step: tensor<i64> {zero.hyper = "step"})
    -> (tensor<f32> {zero.output = "loss", zero.across = "mean"}) {
  %w = zero.read @weight : tensor<6x4xf32>
  %p = train.matmul %x, %w {transpose_b} : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %d = train.sub %p, %y : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %s = train.mul %d, %d : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %loss = train.reduce_mean %s axes [0, 1] : (tensor<8x6xf32>) -> tensor<f32>
  %scale = arith.constant dense<0.0416666667> : tensor<f32>
  %g = train.mul %d, %scale : (tensor<8x6xf32>, tensor<f32>) -> tensor<8x6xf32>
  %dw = train.matmul %g, %x {transpose_a} : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %new = train.sgd %w, %dw, %lr : (tensor<6x4xf32>, tensor<6x4xf32>, tensor<f32>) -> tensor<6x4xf32>
  zero.assign @weight, %new : tensor<6x4xf32>
  return %loss : tensor<f32>
}
