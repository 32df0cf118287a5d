//===- ImportFuzzer.cpp - Any bytes as a model ----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libFuzzer's target for the importer: an input is written as a model into a
// folder that also holds what a hostile one would point at, and imported. Each
// either imports or ends in an error; nothing outside the folder is opened.
//
//===----------------------------------------------------------------------===//

#include "FolderGuard.h"
#include "WireMutator.h"

#include "lib/Import/Evaluator.h"
#include "lib/Import/GraphImporter.h"
#include "zero/Import/Import.h"

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace mlir;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

// Types and attributes live as long as their context: a new one now and then
// bounds what a long run holds.
static constexpr unsigned inputsOfContext = 256;

namespace {
/// The folder of the model, with files of all the kinds a model can name.
struct Folder {
  std::string path, outside;
  Folder();
  ~Folder();
  std::string file(const char *name) const { return path + "/" + name; }
  void put(const std::string &file, const char *bytes, size_t size) const;
};
} // namespace

void Folder::put(const std::string &file, const char *bytes,
                 size_t size) const {
  std::ofstream(file, std::ios::binary | std::ios::trunc)
      .write(bytes, std::streamsize(size));
}

Folder::Folder() {
  const char *base = getenv("TMPDIR");
  outside = std::string(base ? base : "/tmp") + "/zero-fuzz-XXXXXX";
  if (!mkdtemp(outside.data())) {
    perror(outside.c_str());
    exit(1);
  }
  char *real = realpath(outside.c_str(), nullptr);
  outside = real;
  free(real);
  path = outside + "/model";
  mkdir(path.c_str(), 0700);
  mkdir(file("sub").c_str(), 0700);
  char bytes[4096];
  for (size_t i = 0; i < sizeof(bytes); ++i)
    bytes[i] = char(i);
  for (const std::string &name :
       {file("w.bin"), file("sub/w.bin"), outside + "/w.bin"})
    put(name, bytes, sizeof(bytes));
  bool made = !symlink("/etc/passwd", file("link.bin").c_str()) &&
              !symlink("..", file("up").c_str()) &&
              !link((outside + "/w.bin").c_str(), file("hard.bin").c_str()) &&
              !mkfifo(file("fifo.bin").c_str(), 0600);
  if (!made) {
    perror(path.c_str());
    exit(1);
  }
}

Folder::~Folder() {
  for (const char *name : {"w.bin", "sub/w.bin", "link.bin", "up", "hard.bin",
                           "fifo.bin", "m.onnx", "m.safetensors"})
    unlink(file(name).c_str());
  rmdir(file("sub").c_str());
  rmdir(path.c_str());
  unlink((outside + "/w.bin").c_str());
  rmdir(outside.c_str());
}

static Folder &folder() {
  static Folder made;
  return made;
}

static const zero_fuzz::Dictionary &dictionary() {
  static const zero_fuzz::Dictionary made = [] {
    zero_fuzz::Dictionary words;
    for (const auto &entry : zero::onnx_import::handlers()) {
      auto [domain, op] = entry.first().rsplit(':');
      words.operators.push_back((op.empty() ? domain : op).str());
    }
    std::sort(words.operators.begin(), words.operators.end());
    words.words = {"",
                   "axis",
                   "axes",
                   "perm",
                   "value",
                   "to",
                   "location",
                   "offset",
                   "length",
                   "checksum",
                   "w.bin",
                   "sub/w.bin",
                   "../w.bin",
                   "up/w.bin",
                   "link.bin",
                   "hard.bin",
                   "fifo.bin",
                   ".",
                   "..",
                   "/etc/passwd",
                   "sub/../w.bin",
                   "./w.bin",
                   "-1",
                   "18446744073709551615",
                   "4294967296",
                   "com.microsoft",
                   "ai.onnx.preview.training",
                   "batch",
                   "keepdims",
                   "auto_pad",
                   "SAME_UPPER",
                   "group",
                   "kernel_shape",
                   "pads",
                   "strides",
                   "dilations",
                   "then_branch",
                   "else_branch",
                   "body"};
    return words;
  }();
  return made;
}

static void import(const std::string &path, bool training, bool weights) {
  static std::unique_ptr<MLIRContext> context;
  static unsigned used = 0;
  if (!context || ++used % inputsOfContext == 0)
    context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  unsigned errors = 0;
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) {
    errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    std::string text;
    llvm::raw_string_ostream os(text);
    zero::printImportDiagnostic(os, "fuzz", diagnostic);
  });
  zero::ImportOptions options;
  for (const char *name : {"batch", "seq", "N", "M", "batch_size"})
    options.dims[name] = 2;
  options.training = training;
  if (weights) {
    options.weightsPath = folder().file("m.safetensors");
    options.weightsName = "m.safetensors";
  }
  FailureOr<OwningOpRef<ModuleOp>> module =
      zero::importOnnx(path, *context, options);
  if (failed(module) != (errors == 1)) {
    fprintf(stderr, "import %s with %u errors\n",
            failed(module) ? "failed" : "succeeded", errors);
    abort();
  }
}

extern "C" int LLVMFuzzerInitialize(int *, char ***) {
  zero_fuzz::guardFolder(folder().path);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string path = folder().file("m.onnx");
  folder().put(path, reinterpret_cast<const char *>(data), size);
  // Which way it is imported has to depend on the input alone.
  unsigned way = unsigned(size % 8);
  import(path, /*training=*/way & 1, /*weights=*/way == 2);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  std::string model(reinterpret_cast<char *>(data), size);
  zero_fuzz::WireMutator mutator(dictionary(), seed);
  if (seed % 8 == 0 || !mutator.mutate(model) || model.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  memcpy(data, model.data(), model.size());
  return model.size();
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t aSize,
                                            const uint8_t *b, size_t bSize,
                                            uint8_t *out, size_t maxSize,
                                            unsigned seed) {
  std::string model(reinterpret_cast<const char *>(a), aSize);
  zero_fuzz::WireMutator mutator(dictionary(), seed);
  if (!mutator.cross(model,
                     std::string(reinterpret_cast<const char *>(b), bSize)) ||
      model.size() > maxSize)
    return 0;
  memcpy(out, model.data(), model.size());
  return model.size();
}
