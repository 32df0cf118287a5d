# runs.py - The training runs that PyTorch made references of, as data.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""RUNS by name; make_runs.py trains them with PyTorch, test/e2e with zero-run."""

DEFAULTS = dict(system="torch", ranks=1, accumulate=1, batch=8, steps=10, optimizer="adamw", lr=1e-3, weight_decay=0.01)
SGD = dict(optimizer="sgd", lr=0.05, momentum=0.9, weight_decay=0.0)
DYNAMIC = dict(init_scale=65536.0, scale_window=1000, delayed_shift=2, consecutive_hysteresis=False, min_scale=1.0)


def factor(run, step):
    """What the samples of a step are multiplied with, to make gradients overflow."""
    return run.get("large", {}).get(step, 1.0)


def scaling(power, **rest):
    return dict(DYNAMIC, init_scale=2.0 ** power, **rest)


def precision():
    runs = {}
    for model in ("mlp", "cnn", "gpt2"):
        for ranks in (1, 2, 4):
            runs[f"bf16 {model} ranks {ranks}"] = dict(model=model, system="fsdp2", ranks=ranks, batch=8 // ranks)
        runs[f"bf16 sgd {model}"] = dict(model=model, system="fsdp2", ranks=2, batch=4, **SGD)
        runs[f"bf16 autocast {model}"] = dict(model=model, system="autocast")
    for model in ("mlp", "gpt2"):
        runs[f"bf16 reduced in bf16 {model}"] = dict(model=model, system="fsdp2", ranks=2, batch=4, reduce="bf16")
        runs[f"bf16 accumulated {model}"] = dict(model=model, system="fsdp2", ranks=2, batch=2, accumulate=2)
        runs[f"bf16 clipped {model}"] = dict(model=model, system="fsdp2", ranks=2, batch=4, clip=0.25)
    runs["bf16 mlp ranks 8"] = dict(model="mlp", system="fsdp2", ranks=8, batch=1)
    return runs


def half():
    """The scale grows until it overflows, starts too high, or meets large samples."""
    runs = {}
    for model in ("mlp", "cnn", "gpt2"):
        runs[f"fp16 default {model}"] = dict(model=model, system="fp16", scaler=DYNAMIC)
        runs[f"fp16 too high {model}"] = dict(model=model, system="fp16", ranks=2, batch=4, steps=24,
                                              scaler=scaling(26, scale_window=3))
        runs[f"fp16 static {model}"] = dict(model=model, system="fp16", ranks=2, batch=4, scaler=512.0)
    for model in ("mlp", "gpt2"):
        runs[f"fp16 grows {model}"] = dict(model=model, system="fp16", ranks=2, batch=4, steps=40,
                                           scaler=scaling(10, scale_window=2, delayed_shift=1))
        runs[f"fp16 accumulated {model}"] = dict(model=model, system="fp16", ranks=2, batch=2, accumulate=2, steps=20,
                                                 scaler=scaling(22, scale_window=4), clip=0.5)
    runs["fp16 large samples mlp"] = dict(model="mlp", system="fp16", ranks=2, batch=4, steps=30,
                                          scaler=scaling(12, scale_window=5),
                                          large={s: 600.0 for s in (3, 4, 9, 17, 18, 19)})
    runs["fp16 scheduled mlp"] = dict(model="mlp", system="fp16", ranks=2, batch=4, steps=20,
                                      scaler=scaling(24, scale_window=3),
                                      schedule=("CosineAnnealingLR", {"T_max": 12, "eta_min": 1e-4}))
    return runs


def accumulation():
    runs = {}
    for model in ("mlp", "cnn", "gpt2"):
        for ranks, batch, micro in ((1, 4, 2), (1, 2, 4), (2, 2, 2), (2, 1, 4), (4, 1, 2)):
            if model != "cnn" or batch > 1:
                runs[f"accumulate {micro} {model} ranks {ranks}"] = dict(
                    model=model, ranks=ranks, batch=batch, accumulate=micro)
        runs[f"accumulate 2 sgd {model}"] = dict(model=model, ranks=2, batch=2, accumulate=2, **SGD)
    return runs


FROZEN = {"mlp": ["fc1.*"], "cnn": ["bn1.*", "conv.weight"], "gpt2": ["*.h.0.*", "*.wpe.weight"]}


def clipping():
    runs = {}
    for model in ("mlp", "cnn", "gpt2"):
        for name, rest in (("norm", dict(clip=0.3)), ("value", dict(clip_value=0.01))):
            base = dict(model=model, ranks=2, batch=4, **rest)
            runs[f"clip {name} {model}"] = base
            runs[f"clip {name} sgd {model}"] = dict(base, **SGD)
            runs[f"clip {name} frozen {model}"] = dict(base, freeze=FROZEN[model])
        runs[f"clip accumulated {model}"] = dict(model=model, ranks=2, batch=2, accumulate=2, clip=0.3)
        runs[f"frozen {model}"] = dict(model=model, ranks=2, batch=4, freeze=FROZEN[model])
    return runs


HEAD = {"mlp": "fc3.*", "cnn": "head.*", "gpt2": "*.ln_f.*"}


def groups():
    runs = {}
    for model in ("mlp", "cnn", "gpt2"):
        base = dict(model=model, ranks=2, batch=4, weight_decay=0.5)
        runs[f"groups no decay {model}"] = dict(base, groups=[("auto", {"weight_decay": 0.0})])
        runs[f"groups rates {model}"] = dict(base, groups=[(HEAD[model], {"lr": 5e-3}), ("*.weight", {"weight_decay": 0.1})])
        runs[f"groups sgd {model}"] = dict(base, **{**SGD, "weight_decay": 0.2},
                                           groups=[(HEAD[model], {"lr": 0.01, "weight_decay": 0.0})])
    return runs


WARMUP = {"start_factor": 0.1, "total_iters": 3}


def schedules():
    kinds = {
        "constant": ("ConstantLR", {"factor": 1.0, "total_iters": 0, "warmup": WARMUP}),
        "linear": ("LinearLR", {"start_factor": 1.0, "end_factor": 0.0, "total_iters": 9, "warmup": WARMUP}),
        "cosine": ("CosineAnnealingLR", {"T_max": 7, "eta_min": 1e-4, "warmup": WARMUP}),
        "polynomial": ("PolynomialLR", {"total_iters": 8, "power": 2.0, "warmup": WARMUP}),
    }
    runs = {f"schedule {name} mlp": dict(model="mlp", ranks=2, batch=4, schedule=kind) for name, kind in kinds.items()}
    runs["schedule cosine gpt2"] = dict(model="gpt2", ranks=2, batch=4, schedule=kinds["cosine"])
    runs["schedule cosine groups gpt2"] = dict(model="gpt2", ranks=2, batch=4, schedule=kinds["cosine"], weight_decay=0.5,
                                               groups=[("auto", {"weight_decay": 0.0})], clip=0.5)
    return runs


RUNS = {**accumulation(), **clipping(), **groups(), **schedules(), **half(), **precision()}
