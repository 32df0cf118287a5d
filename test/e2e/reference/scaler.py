# scaler.py - DeepSpeed's rule of the dynamic loss scale, and how its tables are written.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of the rule, checked against the real class by make_tables.py."""
import re


def letters(given, overflows):
    """One letter a step (see make_tables.py)."""
    scale, left, since, text = given["init_scale"], given["delayed_shift"], 0, ""
    for overflow in overflows:
        letter, since = ".", since + 1
        if overflow:
            since = 0
            if left > 1:
                letter, left = "h", left - 1
            else:
                letter = "!" if scale == given["min_scale"] else "-"
                scale = max(scale / 2, given["min_scale"])
        else:
            if given["consecutive_hysteresis"]:
                left = given["delayed_shift"]
            if since > 1 and (since - 1) % given["scale_window"] == 0:
                letter, scale, left = "+", scale * 2, given["delayed_shift"]
        text += letter
    return text


def scales(given, text):
    """The scale in use at each step, and after the last."""
    seen = [given["init_scale"]]
    for letter in text:
        scale = seen[-1]
        seen.append({"+": scale * 2, "-": max(scale / 2, given["min_scale"])}.get(letter, scale))
    return seen


def overflows(text):
    return [letter in "h-!" for letter in text]


def pack(text):
    return re.sub(r"(.)\1{2,}", lambda m: f"{len(m[0])}{m[1]}", text)


def unpack(text):
    return re.sub(r"(\d+)(\D)", lambda m: int(m[1]) * m[2], text)


def parse(line):
    """(settings, letters) of a line of loss_scales.txt."""
    init, window, hysteresis, consecutive, minimum, text = line.split()
    return dict(init_scale=float(init), scale_window=int(window), delayed_shift=int(hysteresis),
                consecutive_hysteresis=consecutive == "1", min_scale=float(minimum)), unpack(text)
