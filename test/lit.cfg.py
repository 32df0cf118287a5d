# lit.cfg.py - The lit suites of zero-opt.
#
# Part of the zero-opt project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Our tools and LLVM's (FileCheck, not, split-file, count, mlir-opt) are found
# on PATH, so a RUN line names them as a user would. Substitutions:
#   %python    a Python; with the onnx package where the feature `onnx` is there
#   %models    test/models
#   %src_root  the root of the source tree
#   %zero_lib  the lib folder of the build tree (plugin libraries)
#   %fake_cuda variables for `env`: the program then finds 4 fake GPUs, which want
#              all freed (feature `fake-cuda`, see test/fake-cuda)
# %t is a file of the test's own; `rm -rf %t && mkdir %t` makes a folder of it.
import os
import subprocess

import lit.formats

config.name = "zero"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "unit", "models", "e2e"]
config.test_source_root = os.path.join(config.zero_source_dir, "test")
config.test_exec_root = os.path.join(config.zero_build_dir, "test")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.zero_build_dir, "bin"), config.llvm_tools_dir, config.environment["PATH"]]
)
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS", "HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions += [
    ("%python", config.zero_python),
    ("%models", os.path.join(config.test_source_root, "models")),
    ("%src_root", config.zero_source_dir),
    ("%zero_lib", os.path.join(config.zero_build_dir, "lib")),
]

fakes = os.path.join(config.test_exec_root, "fake-cuda", "lib")
config.substitutions.append(("%fake_cuda", f"LD_LIBRARY_PATH={fakes} FAKE_CUDA_DEVICES=4 FAKE_CUDA_LEAKS=1"))
if all(map(os.path.exists, (os.path.join(fakes, "libcuda.so.1"),
                            os.path.join(config.zero_build_dir, "lib", "libzero-rt-cuda.so")))):
    config.available_features.add("fake-cuda")

if subprocess.run([config.zero_python, "-c", "import onnx"], capture_output=True).returncode == 0:
    config.available_features.add("onnx")
if any(os.path.exists(f"{os.environ.get(name, default)}/nvvm/libdevice/libdevice.10.bc")
       for name, default in (("CUDA_HOME", "/usr/local/cuda"), ("CUDA_PATH", "/usr/local/cuda"))):
    config.available_features.add("libdevice")
    config.environment["CUDA_HOME"] = os.environ.get("CUDA_HOME", os.environ.get("CUDA_PATH", "/usr/local/cuda"))
if config.zero_sanitizer:
    config.available_features.add("sanitizer")
else:
    config.available_features.add("no-sanitizer")
