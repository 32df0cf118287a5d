# expect_errors.py - Runs zero-import on many bad models.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Usage: expect_errors.py TEST, in the folder of the models. Lines of TEST:

    # ERROR ARGUMENTS: MESSAGE    the import fails with this one line and status 1
    # WARN ARGUMENTS: MESSAGE     it succeeds; MESSAGE is one of its lines
    # OK ARGUMENTS                it succeeds without a word

MESSAGE may hold {{regular expressions}}. ARGUMENTS are a model and flags."""
import re
import shlex
import subprocess
import sys


def matches(pattern, text):
    parts = re.split(r"\{\{(.*?)\}\}", pattern)
    return re.fullmatch("".join(f"(?:{p})" if i % 2 else re.escape(p) for i, p in enumerate(parts)), text)


bad = ran = 0
for line in open(sys.argv[1]):
    found = re.match(r"# (ERROR|WARN|OK) (.*?)(?:: (.*))?$", line.rstrip("\n"))
    if not found:
        continue
    kind, arguments, message = found.groups()
    ran += 1
    run = subprocess.run(["zero-import", *shlex.split(arguments), "-o", "out.mlir"], capture_output=True, text=True, timeout=60)
    lines = run.stderr.splitlines()
    wanted = {"ERROR": "zero-import: error: ", "WARN": "zero-import: {{warning|remark}}: ", "OK": ""}[kind] + (message or "")
    if kind == "ERROR":
        good = run.returncode == 1 and len(lines) == 1 and matches(wanted, lines[0])
    elif kind == "WARN":
        good = run.returncode == 0 and any(matches(wanted, l) for l in lines)
    else:
        good = run.returncode == 0 and not lines
    if not good:
        bad += 1
        print(f"{arguments}: expected {kind} {wanted!r}\n  got status {run.returncode}: {run.stderr.strip()!r}")
print(f"{ran} imports, {bad} not as expected")
sys.exit(bad != 0 or ran == 0)
