// What zero-verify finds in a program that was edited, each rule once.
// RUN: zero-opt %s -split-input-file --zero-verify -verify-diagnostics

plan.program @ahead ranks(2) {
  %dev = plan.arena device bytes(256)
  %a = plan.buffer %dev[0] parameter : memref<4xf32>
  %b = plan.buffer %dev[64] gathered : memref<8xf32>
  %c = plan.buffer %dev[128] activation : memref<4xf32>
  %e = plan.event
  plan.fill %c : memref<4xf32>
  // expected-error @+1 {{may begin before compute reaches it: it waits for no event that implies command 0 ('plan.fill' on stream "compute")}}
  plan.all_gather %a -> %b elements [8] chunks [4] stream("all_gather") signal(%e) : memref<4xf32> -> memref<8xf32>
  plan.copy %b -> %b wait(%e) : memref<8xf32> -> memref<8xf32>
}

// -----

plan.program @unordered ranks(2) {
  %dev = plan.arena device bytes(256)
  %a = plan.buffer %dev[0] parameter : memref<4xf32>
  plan.parameter "w" %a trained : memref<4xf32>
  %b = plan.buffer %dev[64] gathered : memref<8xf32>
  %c = plan.buffer %dev[128] activation : memref<8xf32>
  %e = plan.event
  plan.all_gather %a -> %b elements [8] chunks [4] stream("all_gather") signal(%e) : memref<4xf32> -> memref<8xf32>
  // expected-error @+1 {{uses a buffer of type memref<8xf32> while command 0 ('plan.all_gather' on stream "all_gather") may still use it: no event orders them}}
  plan.copy %b -> %c : memref<8xf32> -> memref<8xf32>
  plan.fill %c wait(%e) : memref<8xf32>
}

// -----

plan.program @unwritten ranks(2) {
  %dev = plan.arena device bytes(256)
  %b = plan.buffer %dev[64] activation : memref<8xf32>
  %c = plan.buffer %dev[128] activation : memref<8xf32>
  // expected-error @+1 {{reads a buffer of type memref<8xf32>, which nothing has written}}
  plan.copy %b -> %c : memref<8xf32> -> memref<8xf32>
}

// -----

plan.program @released ranks(2) {
  %dev = plan.arena device bytes(256)
  %b = plan.buffer %dev[64] gathered : memref<8xf32>
  %c = plan.buffer %dev[128] activation : memref<8xf32>
  plan.fill %b : memref<8xf32>
  plan.release %b : memref<8xf32>
  // expected-error @+1 {{uses a buffer of type memref<8xf32> after command 1 ('plan.release' on stream "compute") released it}}
  plan.copy %b -> %c : memref<8xf32> -> memref<8xf32>
}

// -----

plan.program @no_output ranks(2) {
  %dev = plan.arena device bytes(256)
  %b = plan.buffer %dev[64] activation : memref<8xf32>
  // expected-error @+1 {{is written by no command}}
  plan.output "y" %b same : memref<8xf32>
}

// -----

plan.program @overlap ranks(2) {
  %dev = plan.arena device bytes(256)
  %a = plan.buffer %dev[0] parameter : memref<8xf32>
  plan.parameter "w" %a trained : memref<8xf32>
  // expected-error @+1 {{takes bytes [16, 48) while 'w' at offset 0 may still be in use; it is first used by command 0 ('plan.fill' on stream "compute")}}
  %b = plan.buffer %dev[16] activation : memref<8xf32>
  plan.fill %b : memref<8xf32>
}

// -----

plan.program @output_overlap ranks(2) {
  %dev = plan.arena device bytes(256)
  %a = plan.buffer %dev[0] parameter : memref<8xf32>
  plan.parameter "w" %a trained : memref<8xf32>
  // expected-error @+1 {{may still be in use; it is first used by the output}}
  %b = plan.buffer %dev[16] input : memref<8xf32>
  plan.input "y" %b data : memref<8xf32>
  plan.output "y" %b same : memref<8xf32>
}

// -----

plan.program @unawaited ranks(2) {
  %dev = plan.arena device bytes(256)
  %a = plan.buffer %dev[0] activation : memref<8xf32>
  // expected-error @+1 {{is awaited by no command: a wait was lost}}
  %e = plan.event
  plan.fill %a signal(%e) : memref<8xf32>
}

// -----

plan.program @over ranks(2) budget(100) {
  // expected-error @+1 {{takes 256 bytes of device memory, which is 156 over the budget of 100}}
  %dev = plan.arena device bytes(256)
}

// -----

// expected-error @+1 {{orders its commands otherwise than the program it was made as}}
plan.program @order ranks(2) order(1) {
  %dev = plan.arena device bytes(256)
  %a = plan.buffer %dev[0] parameter : memref<8xf32>
  plan.parameter "w" %a trained : memref<8xf32>
  plan.all_reduce %a -> %a elements [8] chunks [8] : memref<8xf32> -> memref<8xf32>
}

// -----

// All streams are done where a micro-batch ends; its events are of the past.
plan.program @late ranks(2) micro_batches(2) {
  %dev = plan.arena device bytes(256)
  %a = plan.buffer %dev[0] parameter : memref<4xf32>
  %b = plan.buffer %dev[64] gathered : memref<8xf32>
  %c = plan.buffer %dev[128] activation : memref<8xf32>
  %e = plan.event
  plan.all_gather %a -> %b elements [8] chunks [4] stream("all_gather") signal(%e) : memref<4xf32> -> memref<8xf32>
  plan.copy %b -> %c wait(%e) : memref<8xf32> -> memref<8xf32>
  plan.micro_batch_end
  // expected-error @+1 {{waits for an event of the micro-batches before the last, which are done}}
  plan.fill %c wait(%e) : memref<8xf32>
}

// -----

// What a micro-batch writes is not there in the next one.
plan.program @lost ranks(2) micro_batches(2) {
  %dev = plan.arena device bytes(256)
  %b = plan.buffer %dev[64] activation : memref<8xf32>
  %c = plan.buffer %dev[128] activation : memref<8xf32>
  // expected-error @+1 {{reads a buffer of type memref<8xf32>, which nothing has written}}
  plan.copy %b -> %c : memref<8xf32> -> memref<8xf32>
  plan.micro_batch_end
  plan.fill %b : memref<8xf32>
}
