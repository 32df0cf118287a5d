// zero-reorder moves compute among equals: here each large tensor is made when it
// is needed, so that they do not live at the same time. What is computed stays.
// RUN: zero-opt %s --zero-reorder=machine=h100 --zero-verify -o %t
// RUN: FileCheck %s < %t
// RUN: grep -o "train\.[a-z_]* .*" %t | sed "s/%%[a-z_0-9#]*//g" | sort > %t.after
// RUN: zero-opt %s | grep -o "train\.[a-z_]* .*" | sed "s/%%[a-z_0-9#]*//g" | sort > %t.before
// RUN: diff %t.before %t.after

// CHECK-LABEL: func.func @step
// CHECK: train.softmax
// CHECK-NEXT: train.reduce_sum
// CHECK-NEXT: train.softmax
// CHECK-NEXT: train.reduce_sum
// CHECK: zero.all_reduce
shard.grid @dp(shape = 8)
func.func @step(%x: tensor<4096x8192xf32> {zero.input = "x"}, %y: tensor<4096x8192xf32> {zero.input = "y"}) -> tensor<4096xf32> {
  %a = train.softmax %x axis 1 : tensor<4096x8192xf32>
  %b = train.softmax %y axis 1 : tensor<4096x8192xf32>
  %s = train.reduce_sum %a axes [1] : (tensor<4096x8192xf32>) -> tensor<4096xf32>
  %t = train.reduce_sum %b axes [1] : (tensor<4096x8192xf32>) -> tensor<4096xf32>
  %u = train.add %s, %t : tensor<4096xf32>
  %r = zero.all_reduce %u average on @dp : (tensor<4096xf32>) -> tensor<4096xf32>
  return %r : tensor<4096xf32>
}
