#!/usr/bin/env bash
# train.sh - Trains with a DeepSpeed config, stops half way, goes on, and compares.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# usage: train.sh BIN OUT     the folder of zero-run; where everything is written
#
# A small GPT-2 on two ranks. The run that was stopped and resumed ends with
# the same losses and the same weights, bit for bit, as the one that was not.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$1 out=$2 model=$here/../../test/models/gpt2
rm -rf "$out" && mkdir -p "$out"

run() {
  "$bin/zero-run" "$model/ts_train.onnx" --config "$here/ds_config.json" --loss causal-lm \
    --dim batch=1 --dim seq=16 --ranks 2 --data "$model/data.safetensors" "$@"
}

run --steps 40 --metrics "$out/whole.jsonl" --save-weights "$out/whole.safetensors"
run --steps 20 --metrics "$out/parts.jsonl" --checkpoint "$out/checkpoints" --checkpoint-every 10 --keep 2
run --steps 40 --metrics "$out/rest.jsonl" --resume "$out/checkpoints" --save-weights "$out/parts.safetensors"

cmp "$out/whole.safetensors" "$out/parts.safetensors"
echo "the same weights: resumed at step 20, and without a stop"
