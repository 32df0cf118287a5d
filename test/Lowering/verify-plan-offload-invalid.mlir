// Programs with memory of the host and of a disk that are not safe to run.
// RUN: zero-opt %s --split-input-file --zero-verify --verify-diagnostics

func.func private @k(%a: memref<8xf32>) attributes {plan.kernel}

// An update that does not wait for the gradient's copy.
plan.program @race ranks(2) {
  %dev = plan.arena device bytes(64)
  %host = plan.arena host bytes(64)
  %g = plan.buffer %dev[0] gradient : memref<8xf32>
  %h = plan.buffer %host[0] gradient : memref<8xf32>
  %e0 = plan.event
  %e1 = plan.event
  plan.fill %g signal(%e0) : memref<8xf32>
  plan.copy %g -> %h stream("to_host") wait(%e0) signal(%e1) : memref<8xf32> -> memref<8xf32>
  // expected-error @+1 {{may still use it: no event orders them}}
  plan.launch @k(%h) writes [0] host stream("host") wait(%e0) : memref<8xf32>
  plan.fill %g wait(%e1) : memref<8xf32>
}

// -----

// The window of the next bucket while the last is still written to the disk.
plan.program @window ranks(2) {
  %dev = plan.arena device bytes(64)
  %host = plan.arena host bytes(8192)
  %disk = plan.arena disk bytes(8192)
  %g = plan.buffer %dev[0] activation : memref<8xf32>
  %d0 = plan.buffer %disk[0] state capacity(4096) : memref<8xf32>
  %d1 = plan.buffer %disk[4096] state capacity(4096) : memref<8xf32>
  plan.parameter "a" %d0 state : memref<8xf32>
  plan.parameter "b" %d1 state : memref<8xf32>
  %w0 = plan.buffer %host[0] state capacity(4096) : memref<8xf32>
  // expected-error @+1 {{takes bytes [0, 4096) while a buffer of type memref<8xf32> at offset 0 may still be in use; it is first used by command 2 ('plan.copy' on stream "disk_read")}}
  %w1 = plan.buffer %host[0] state capacity(4096) : memref<8xf32>
  %e0 = plan.event
  %e1 = plan.event
  plan.copy %d0 -> %w0 stream("disk_read") signal(%e0) : memref<8xf32> -> memref<8xf32>
  plan.copy %w0 -> %d0 stream("disk_write") wait(%e0) signal(%e1) : memref<8xf32> -> memref<8xf32>
  plan.copy %d1 -> %w1 stream("disk_read") : memref<8xf32> -> memref<8xf32>
  plan.fill %g wait(%e1) : memref<8xf32>
}

// -----

// A copy in host memory does not last from step to step because of its kind.
plan.program @not_lasting ranks(2) {
  %host = plan.arena host bytes(8192)
  %a = plan.buffer %host[0] state : memref<8xf32>
  %b = plan.buffer %host[4096] state : memref<8xf32>
  // expected-error @+1 {{reads a buffer of type memref<8xf32>, which nothing has written}}
  plan.copy %a -> %b stream("host") : memref<8xf32> -> memref<8xf32>
}

// -----

plan.program @over ranks(2) budget(100) {
  // expected-error @+1 {{takes 256 bytes of host memory, which is 56 over the budget of 200}}
  %host = plan.arena host bytes(256) budget(200)
}

// -----

plan.program @blocks ranks(2) {
  %host = plan.arena host bytes(8192)
  %disk = plan.arena disk bytes(8192)
  %d = plan.buffer %disk[4096] state capacity(4096) : memref<8xf32>
  plan.parameter "a" %d state : memref<8xf32>
  %h = plan.buffer %host[64] state capacity(4096) : memref<8xf32>
  // expected-error @+1 {{moves bytes [64, 4160) of host memory between host and disk; expects multiples of 4096}}
  plan.copy %d -> %h stream("disk_read") : memref<8xf32> -> memref<8xf32>
}

// -----

plan.program @fill ranks(2) {
  %disk = plan.arena disk bytes(8192)
  %d = plan.buffer %disk[4096] state capacity(4096) : memref<8xf32>
  // expected-error @+1 {{fills a buffer on disk, which only copies reach}}
  plan.fill %d : memref<8xf32>
}
