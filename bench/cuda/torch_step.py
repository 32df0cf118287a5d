# torch_step.py - Steps of the measured models under PyTorch on one GPU.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch_step.py {gpt|llama} STEPS WARMUP BATCH LENGTH VOCABULARY LAYERS WIDTH HEADS HIDDEN GROUPS
Prints JSON: milliseconds of each step, eager and compiled. bf16 as PyTorch's users train:
autocast over f32 parameters, fused AdamW."""
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def attend(q, k, v, heads, groups):
    b, t = q.shape[:2]
    q, k, v = (x.view(b, t, n, -1).transpose(1, 2) for x, n in ((q, heads), (k, groups), (v, groups)))
    if groups != heads:
        k, v = (x.repeat_interleave(heads // groups, dim=1) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, -1)


class GptBlock(nn.Module):
    def __init__(self, width, heads, hidden, groups):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.proj = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        q, k, v = self.c_attn(self.ln_1(x)).chunk(3, dim=2)
        x = x + self.c_proj(attend(q, k, v, self.heads, self.heads))
        return x + self.proj(F.gelu(self.fc(self.ln_2(x))))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, hidden, groups):
        super().__init__()
        size = width // heads
        self.heads, self.groups = heads, groups
        self.norm_1, self.norm_2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.o = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, groups * size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        y = self.norm_1(x)
        x = x + self.o(attend(self.q(y), self.k(y), self.v(y), self.heads, self.groups))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self, kind, length, vocabulary, layers, width, heads, hidden, groups):
        super().__init__()
        block = GptBlock if kind == "gpt" else LlamaBlock
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width) if kind == "gpt" else None
        self.blocks = nn.ModuleList(block(width, heads, hidden, groups) for _ in range(layers))
        self.norm = nn.LayerNorm(width) if kind == "gpt" else nn.RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        if kind == "gpt":
            self.head.weight = self.tokens.weight

    def forward(self, tokens):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions.weight
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten())


def measure(model, tokens, steps, warmup):
    """Milliseconds of each step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    times = []
    for step in range(warmup + steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(tokens)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        if step >= warmup:
            times.append(1e3 * (time.perf_counter() - begin))
    return times


def main():
    kind, *numbers = sys.argv[1:]
    steps, warmup, batch, length, vocabulary, layers, width, heads, hidden, groups = map(int, numbers)
    torch.manual_seed(0)
    torch.set_default_device("cuda")
    tokens = torch.randint(vocabulary, (batch, length))
    model = Model(kind, length, vocabulary, layers, width, heads, hidden, groups)
    result = {"torch": torch.__version__, "eager": measure(model, tokens, steps, warmup)}
    print(json.dumps(result), flush=True)  # compiling may take longer than there is time
    result["compiled"] = measure(torch.compile(model), tokens, steps, warmup)
    print(json.dumps(result))


main()
