# loops.py - Cases of models in which the data or loops say what is computed.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models of make_loop_models.py, a mixture of experts and recurrent layers: losses, norms
and parameters are PyTorch's, and stages give the same bits."""
import kinds

MODELS = ("moe", "recurrent")
PLACES = ((1, 0), (2, 0), (2, 1), (2, 2), (2, 3), (4, 3))


def add_cases(cases, tools):
    trainer = kinds.Trainer(tools)
    for name in MODELS:
        for ranks, stage in PLACES:
            for optimizer in ("adamw", "sgd") if stage == 3 else ("adamw",):
                cases.add(f"loops {name} {optimizer} ranks {ranks} stage {stage}", kinds.close_to_pytorch, trainer, name,
                          "ts_train", optimizer, ranks, stage)
        cases.add(f"loops {name} stages", kinds.stages_agree, trainer, name, "ts_train", "adamw", 2, (0, 1, 2, 3))
