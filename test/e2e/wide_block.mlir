// A block of the width of GPT-2 124M, for what its kernels compile to:
// embedding, attention, MLP, loss, with the gradients of all.
zero.param @wte : tensor<50257x768xf32> zeros unit("wte")
zero.param @ln.weight : tensor<768xf32> zeros unit("h")
zero.param @ln.bias : tensor<768xf32> zeros unit("h")
zero.param @fc.weight : tensor<768x3072xf32> zeros unit("h")
zero.param @fc.bias : tensor<3072xf32> zeros unit("h")
zero.param @proj.weight : tensor<3072x768xf32> zeros unit("h")
zero.param @proj.bias : tensor<768xf32> zeros unit("h")

func.func @forward(%ids: tensor<2x1024xi64> {zero.input = "input_ids"})
    -> (tensor<2048x50257xf32> {zero.output = "logits"}) {
  %wte = zero.read @wte : tensor<50257x768xf32>
  %w = zero.read @ln.weight : tensor<768xf32>
  %b = zero.read @ln.bias : tensor<768xf32>
  %x = train.gather %wte, %ids axis 0 : (tensor<50257x768xf32>, tensor<2x1024xi64>) -> tensor<2x1024x768xf32>
  %n, %mean, %rstd = train.layer_norm %x, %w, %b {axis = 2 : i64, epsilon = 1.0e-5 : f64}
    : (tensor<2x1024x768xf32>, tensor<768xf32>, tensor<768xf32>) -> (tensor<2x1024x768xf32>, tensor<2x1024x1xf32>, tensor<2x1024x1xf32>)

  %heads = train.reshape %n : tensor<2x1024x768xf32> to tensor<2x1024x12x64xf32>
  %q = train.transpose %heads [0, 2, 1, 3] : (tensor<2x1024x12x64xf32>) -> tensor<2x12x1024x64xf32>
  %s = train.matmul %q, %q {transpose_b} : (tensor<2x12x1024x64xf32>, tensor<2x12x1024x64xf32>) -> tensor<2x12x1024x1024xf32>
  %p = train.softmax %s axis 3 : tensor<2x12x1024x1024xf32>
  %o = train.matmul %p, %q : (tensor<2x12x1024x1024xf32>, tensor<2x12x1024x64xf32>) -> tensor<2x12x1024x64xf32>
  %t = train.transpose %o [0, 2, 1, 3] : (tensor<2x12x1024x64xf32>) -> tensor<2x1024x12x64xf32>
  %joined = train.reshape %t : tensor<2x1024x12x64xf32> to tensor<2048x768xf32>

  %fcw = zero.read @fc.weight : tensor<768x3072xf32>
  %fcb = zero.read @fc.bias : tensor<3072xf32>
  %h = train.gemm %joined, %fcw, %fcb : (tensor<2048x768xf32>, tensor<768x3072xf32>, tensor<3072xf32>) -> tensor<2048x3072xf32>
  %g = train.gelu %h {approximate = "tanh"} : tensor<2048x3072xf32>
  %e = train.gelu %g : tensor<2048x3072xf32>
  %pw = zero.read @proj.weight : tensor<3072x768xf32>
  %pb = zero.read @proj.bias : tensor<768xf32>
  %y = train.gemm %e, %pw, %pb : (tensor<2048x3072xf32>, tensor<3072x768xf32>, tensor<768xf32>) -> tensor<2048x768xf32>
  %logits = train.matmul %y, %wte {transpose_b} : (tensor<2048x768xf32>, tensor<50257x768xf32>) -> tensor<2048x50257xf32>
  return %logits : tensor<2048x50257xf32>
}
