//===- DeepSpeedTest.cpp - Tests of what becomes of keys ------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Settings, refusals and notes, one rule a test.
//
//===----------------------------------------------------------------------===//

#include "Questions.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

using namespace config_tests;

namespace {

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

TEST(KeyTable, IsConsistent) {
  llvm::StringSet<> names, sections;
  for (const ConfigKey &key : deepSpeedKeys()) {
    llvm::StringRef path = key.path;
    EXPECT_TRUE(names.insert(path).second) << key.path << " stands twice";
    if (key.type == ConfigType::Section)
      sections.insert(path);
    if (path.contains('.')) {
      EXPECT_TRUE(sections.count(path.rsplit('.').first)) << key.path;
    }
    EXPECT_TRUE(*key.note) << key.path;
    EXPECT_LE(key.min, key.max) << key.path;
    EXPECT_EQ(llvm::StringRef(key.note).find('\n'), llvm::StringRef::npos);
  }
  EXPECT_GT(names.size(), 200u);
}

/// Every default that DeepSpeed documents is accepted.
TEST(KeyTable, DefaultsAreAccepted) {
  for (const ConfigKey &key : deepSpeedKeys()) {
    llvm::StringRef path = key.path, value = key.defaultValue;
    if (value.empty() || value == "[...]" || key.type == ConfigType::Section)
      continue;
    std::string text = value.str();
    // Parameters need a type: below. Accumulation alone says no batch.
    if (path.starts_with("optimizer.") || path.starts_with("scheduler.") ||
        path == "gradient_accumulation_steps")
      continue;
    while (!path.empty()) {
      auto [section, name] = path.rsplit('.');
      if (name.empty())
        std::swap(section, name);
      text = "{'" + name.str() + "': " + text + "}";
      path = section;
    }
    EXPECT_EQ(refusals(text), "") << text;
  }
}

TEST(KeyTable, DefaultsOfParametersAreAccepted) {
  for (const ConfigKey &key : deepSpeedKeys()) {
    llvm::StringRef path = key.path, kinds = key.kinds;
    if (kinds.empty() || !*key.defaultValue)
      continue;
    std::string type = kinds.split('|').first.str();
    std::string section = path.split('.').first.str();
    std::string needed;
    if (type == "OneCycle")
      needed = ", 'cycle_min_lr': 0.1, 'cycle_max_lr': 1";
    if (type == "WarmupCosineLR")
      needed = ", 'total_num_steps': 10";
    EXPECT_EQ(refusals("{'" + section + "': {'type': '" + type +
                       "', 'params': {'" + path.rsplit('.').second.str() +
                       "': " + key.defaultValue + needed + "}}}"),
              "")
        << key.path;
  }
}

TEST(KeyTable, PrintsAsMarkdown) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printKeyTable(os);
  EXPECT_NE(text.find("| `zero_optimization.stage` | a whole number from 0 to "
                      "3 | `0` | used | --zero-stage |\n"),
            text.npos);
  EXPECT_NE(text.find("`zero_optimization.stage3_max_live_parameters`, "
                      "`max_live_parameters`"),
            text.npos);
  EXPECT_NE(text.find("refused unless false"), text.npos);
  EXPECT_NE(text.find("refused if on"), text.npos);
}

/// docs/config-keys.md shows the table. With ZERO_UPDATE_EXPECTED=1 in the
/// environment the page is written instead.
TEST(KeyTable, IsInTheDocs) {
  std::string page =
      "<!-- Made from lib/Config/*Keys.cpp by script/update-docs. "
      "-->\n\n# Keys of a DeepSpeed config\n\nHow to read this: "
      "[configs.md](configs.md).\n\n";
  llvm::raw_string_ostream os(page);
  printKeyTable(os);
  if (std::getenv("ZERO_UPDATE_EXPECTED"))
    std::ofstream(ZERO_TEST_KEYS_PAGE, std::ios::binary) << page;
  std::ifstream in(ZERO_TEST_KEYS_PAGE, std::ios::binary);
  std::string found((std::istreambuf_iterator<char>(in)),
                    std::istreambuf_iterator<char>());
  EXPECT_TRUE(found == page) << "run script/update-docs";
}

//===----------------------------------------------------------------------===//
// Names, types, ranges
//===----------------------------------------------------------------------===//

TEST(DeepSpeed, UnknownKeys) {
  const std::pair<const char *, const char *> cases[] = {
      {"{'gradient_cliping': 1}",
       "gradient_cliping: unknown key; did you mean 'gradient_clipping'?"},
      {"{'zero_optimisation': {}}",
       "zero_optimisation: unknown key; did you mean 'zero_optimization'?"},
      {"{'zero_optimization': {'stag': 1}}",
       "zero_optimization.stag: unknown key; did you mean 'stage'?"},
      {"{'zero_optimization': {'Stage': 1}}",
       "zero_optimization.Stage: unknown key; did you mean 'stage'?"},
      {"{'zero_optimization': {'offload_param': {'divice': 'cpu'}}}",
       "zero_optimization.offload_param.divice: unknown key; did you mean "
       "'device'?"},
      {"{'fp16': {'enabled': true, 'hystersis': 2}}",
       "fp16.hystersis: unknown key; did you mean 'hysteresis'?"},
      {"{'fp16': {'hystersis': 2}}", // also where the section is off
       "fp16.hystersis: unknown key; did you mean 'hysteresis'?"},
      {"{'optimizer': {'type': 'Adam', 'params': {'weight_deacy': 0}}}",
       "optimizer.params.weight_deacy: unknown key; did you mean "
       "'weight_decay'?"},
      {"{'overlap_comm': true}",
       "overlap_comm: unknown key; it belongs in 'zero_optimization'"},
      {"{'zero_optimization': {'gradient_clipping': 1}}",
       "zero_optimization.gradient_clipping: unknown key; it belongs at the "
       "top level"},
      {"{'quantum_mode': 1}", "quantum_mode: unknown key"},
      {"{'a\\nb\\u0007': 1}", "a\\x0Ab\\x07: unknown key"},
  };
  for (const auto &[text, message] : cases)
    EXPECT_EQ(refusals(text), message);
}

TEST(DeepSpeed, CommentsAreNoKeys) {
  EXPECT_EQ(refusals("{'_comment': [{}], 'fp16': {'_x': 1}, '_': {'a': {}}}"),
            "");
}

TEST(DeepSpeed, TypesAndRanges) {
  const std::pair<const char *, const char *> cases[] = {
      {"{'zero_optimization': {'stage': 4}}",
       "zero_optimization.stage: found 4; expected a whole number from 0 to 3"},
      {"{'zero_optimization': {'stage': 'three'}}",
       "zero_optimization.stage: found \"three\"; expected a whole number from "
       "0 to 3"},
      {"{'zero_optimization': {'stage': '3'}}",
       "zero_optimization.stage: found \"3\"; expected a whole number from 0 "
       "to 3, without quotes"},
      {"{'zero_optimization': {'reduce_bucket_size': 0.5}}",
       "zero_optimization.reduce_bucket_size: found 0.5; expected a whole "
       "number of at least 0"},
      {"{'zero_optimization': {'reduce_bucket_size': -1}}",
       "zero_optimization.reduce_bucket_size: found -1; expected a whole "
       "number of at least 0"},
      {"{'zero_optimization': {'overlap_comm': 'true'}}",
       "zero_optimization.overlap_comm: found \"true\"; expected true or "
       "false, without quotes"},
      {"{'zero_optimization': {'overlap_comm': 1}}",
       "zero_optimization.overlap_comm: found 1; expected true or false"},
      {"{'zero_optimization': 3}",
       "zero_optimization: found 3; expected an object"},
      {"{'fp16': true}", "fp16: found true; expected an object"},
      {"{'fp16': 'auto'}", "fp16: found \"auto\"; expected an object"},
      {"{'gradient_clipping': [1]}",
       "gradient_clipping: found [1]; expected a number of at least 0"},
      {"{'gradient_clipping': -1}",
       "gradient_clipping: found -1; expected a number of at least 0"},
      {"{'train_batch_size': 0}",
       "train_batch_size: found 0; expected a whole number of at least 1"},
      {"{'optimizer': {'type': 'Adam', 'params': {'betas': [0.9]}}}",
       "optimizer.params.betas: found [0.9]; expected a list of two numbers "
       "from 0 to 1"},
      {"{'optimizer': {'type': 'Adam', 'params': {'betas': [0.9, 2]}}}",
       "optimizer.params.betas: found [0.9, 2]; expected a list of two numbers "
       "from 0 to 1"},
      {"{'communication_data_type': 'int8'}",
       "communication_data_type: found \"int8\"; expected \"fp32\", \"fp16\" "
       "or \"bf16\""},
      {"{'zero_optimization': {'stage': 3, 'offload_param': {'device': "
       "'disk'}}}",
       "zero_optimization.offload_param.device: found \"disk\"; expected "
       "\"none\", \"cpu\" or \"nvme\""},
      {"{'log_level': 3}", "log_level: found 3; expected a text"},
      {"{'compile': {'passes': 'z3'}}",
       "compile.passes: found \"z3\"; expected a list"},
      {"{'autotuning': 1}",
       "autotuning: found 1; expected an object or a list"},
  };
  for (const auto &[text, message] : cases)
    EXPECT_EQ(refusals(text), message);
}

TEST(DeepSpeed, NumbersAsPeopleWriteThem) {
  ConfigResult result = read("{'train_batch_size': 1.6e1, 'steps_per_print': "
                             "2e3, 'zero_optimization': {'stage': 2.0, "
                             "'reduce_bucket_size': 5E8}}");
  EXPECT_TRUE(result.refusals().empty());
  EXPECT_EQ(result.settings.stage, 2);
  EXPECT_EQ(result.settings.logEvery, 2000);
  EXPECT_EQ(result.settings.batch, 16);
}

/// What json.dumps makes of infinities and NaN.
TEST(DeepSpeed, NumbersThatJsonHasNot) {
  ConfigResult never = read("{'steps_per_print': Infinity}");
  EXPECT_EQ(never.settings.logEvery, 0);
  EXPECT_EQ(fate(never, "steps_per_print"), "used: --log-every 0");
  const std::pair<const char *, const char *> cases[] = {
      {"{'steps_per_print': -Infinity}",
       "steps_per_print: found -Infinity; expected a whole number of at least "
       "0"},
      {"{'steps_per_print': NaN}",
       "steps_per_print: found NaN; expected a whole number of at least 0"},
      {"{'gradient_clipping': Infinity}",
       "gradient_clipping: found Infinity; expected a number of at least 0 and "
       "at most 1e+12"},
      {"{'gradient_clipping': NaN}",
       "gradient_clipping: found NaN; expected a number of at least 0"},
      {"{'zero_optimization': {'reduce_bucket_size': Infinity}}",
       "zero_optimization.reduce_bucket_size: found Infinity; expected a whole "
       "number of at least 0 and at most 9.3e+18"},
      {"{'fp16': {'enabled': true, 'loss_scale': 1e39}}",
       "fp16.loss_scale: found 1e39; expected a number of at least 0 and at "
       "most 1e+38"},
      {"{'optimizer': {'type': 'Adam', 'params': {'betas': [0.9, NaN]}}}",
       "optimizer.params.betas: found [0.9, NaN]; expected a list of two "
       "numbers from 0 to 1"},
  };
  for (const auto &[text, message] : cases)
    EXPECT_EQ(refusals(text), message);
}

TEST(DeepSpeed, CompileAsPyTorchHasIt) {
  ConfigResult result = read("{'compile': {'disable': false, 'backend': "
                             "'inductor', 'kwargs': {}}}");
  EXPECT_TRUE(result.refusals().empty());
  EXPECT_EQ(fate(result, "compile.disable"),
            "no effect: the whole step is compiled already");
}

TEST(DeepSpeed, TwoNamesOfOneKey) {
  EXPECT_EQ(refusals("{'zero_optimization': {'prefetch_bucket_size': 1, "
                     "'stage3_prefetch_bucket_size': 1}}"),
            "zero_optimization.stage3_prefetch_bucket_size: another name of "
            "zero_optimization.stage3_prefetch_bucket_size, which is there "
            "too");
  EXPECT_EQ(refusals("{'bf16': {}, 'bfloat16': {'enabled': true}}"),
            "bfloat16: another name of bf16, which is there too");
}

TEST(DeepSpeed, NullIsAbsent) {
  ConfigResult result = read("{'train_batch_size': null, 'fp16': null, "
                             "'zero_optimization': {'stage': null}}");
  EXPECT_TRUE(result.refusals().empty());
  EXPECT_EQ(fate(result, "fp16"), "no effect: as if it were absent");
  EXPECT_FALSE(result.settings.stage);
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

TEST(Batches, OneOfThreeIsDerived) {
  struct Case {
    const char *text;
    int64_t ranks, micro, steps;
  } cases[] = {
      {"{'train_batch_size': 32, 'train_micro_batch_size_per_gpu': 2}", 4, 2,
       4},
      {"{'train_batch_size': 32, 'gradient_accumulation_steps': 4}", 4, 2, 4},
      {"{'train_batch_size': 32}", 4, 8, 1},
      {"{'train_batch_size': 32, 'train_micro_batch_size_per_gpu': 2, "
       "'gradient_accumulation_steps': 'auto'}",
       4, 2, 4},
      {"{'train_batch_size': 32, 'train_micro_batch_size_per_gpu': 'auto', "
       "'gradient_accumulation_steps': 'auto'}",
       4, 8, 1},
      {"{'train_batch_size': 32, 'train_micro_batch_size_per_gpu': 2, "
       "'gradient_accumulation_steps': 4}",
       4, 2, 4},
  };
  for (const Case &c : cases) {
    ConfigResult result = read(c.text, onRanks(c.ranks));
    EXPECT_TRUE(result.refusals().empty()) << c.text;
    EXPECT_EQ(result.settings.batch, c.micro) << c.text;
    EXPECT_EQ(result.settings.accumulate, c.steps) << c.text;
  }
}

TEST(Batches, RanksAreDerivedWhereNobodySaysThem) {
  std::string text = "{'train_batch_size': 32, 'gradient_accumulation_steps': "
                     "4, 'train_micro_batch_size_per_gpu': 2}";
  ConfigResult result = read(text);
  EXPECT_EQ(result.settings.ranks, 4);
  EXPECT_EQ(fate(result, "train_batch_size"), "used: --ranks 4: 32 / (2 x 4)");
  EXPECT_EQ(refusals("{'train_batch_size': 33, 'gradient_accumulation_steps': "
                     "4, 'train_micro_batch_size_per_gpu': 2}"),
            "train_batch_size: found 33; expected 2 x 4 times the number of "
            "ranks, at most 1024");
}

TEST(Batches, WithoutRanksTheyStayOpen) {
  std::string text = "{'train_batch_size': 32, "
                     "'train_micro_batch_size_per_gpu': 2, "
                     "'gradient_accumulation_steps': 'auto'}";
  ConfigQuestion question;
  question.anyRanks = true;
  ConfigResult result = read(text, question);
  EXPECT_FALSE(result.settings.accumulate);
  EXPECT_EQ(result.settings.batch, 2);
  EXPECT_EQ(fate(result, "gradient_accumulation_steps"),
            "used: train_batch_size / (micro-batch x ranks)");
}

TEST(Batches, ProductsThatAreNone) {
  EXPECT_EQ(refusals("{'train_batch_size': 33, 'gradient_accumulation_steps': "
                     "4, 'train_micro_batch_size_per_gpu': 2}",
                     onRanks(4)),
            "train_batch_size: found 33; 2 x 4 x 4 ranks is 32");
  EXPECT_EQ(refusals("{'train_batch_size': 30, "
                     "'train_micro_batch_size_per_gpu': 4}",
                     onRanks(2)),
            "train_batch_size: found 30; 4 x 3 x 2 ranks is 24");
  EXPECT_EQ(refusals("{'train_batch_size': 3, "
                     "'train_micro_batch_size_per_gpu': 4}"),
            "train_batch_size: found 3; 4 x 1 x 1 rank is 4; --ranks says how "
            "many ranks there are");
}

TEST(Batches, AccumulationAloneSaysNoBatch) {
  EXPECT_EQ(refusals("{'gradient_accumulation_steps': 4}"),
            "gradient_accumulation_steps: alone it says no batch; give "
            "train_batch_size or train_micro_batch_size_per_gpu");
  // "auto" says: the model's.
  EXPECT_EQ(refusals("{'gradient_accumulation_steps': 4, "
                     "'train_micro_batch_size_per_gpu': 'auto'}"),
            "");
  ConfigQuestion question;
  question.flags.batch = 2;
  EXPECT_EQ(refusals("{'gradient_accumulation_steps': 4}", question), "");
}

TEST(Batches, FlagsGoBefore) {
  ConfigQuestion question = onRanks(2);
  question.flags.accumulate = 8;
  ConfigResult result =
      read("{'train_batch_size': 16, 'gradient_accumulation_steps': 4, "
           "'train_micro_batch_size_per_gpu': 2}",
           question);
  EXPECT_TRUE(result.refusals().empty());
  EXPECT_EQ(result.settings.accumulate, 8);
  EXPECT_EQ(result.settings.batch, 2);
  EXPECT_TRUE(hasNote(result, "gradient_accumulation_steps: --accumulate 8 "
                              "goes before it"));
  EXPECT_TRUE(hasNote(result, "train_batch_size: the flags give other numbers "
                              "of samples"));
}

//===----------------------------------------------------------------------===//
// ZeRO
//===----------------------------------------------------------------------===//

TEST(Zero, FlagsGoBefore) {
  ConfigQuestion question;
  question.flags.stage = 2;
  ConfigResult result = read("{'zero_optimization': {'stage': 3}}", question);
  EXPECT_EQ(result.settings.stage, 2);
  EXPECT_TRUE(hasNote(result, "zero_optimization.stage: --zero-stage 2 goes "
                              "before it"));
  // The same is no contradiction.
  result = read("{'zero_optimization': {'stage': 2}}", question);
  EXPECT_EQ(fate(result, "zero_optimization.stage"), "used: --zero-stage 2");
  EXPECT_EQ(
      read("{'zero_optimization': {'stage': 'auto'}}", question).settings.stage,
      2);
  EXPECT_EQ(refusals("{'zero_optimization': {'stage': 'auto'}}"),
            "zero_optimization.stage: \"auto\" needs a value here; give "
            "--zero-stage");
}

TEST(Zero, OldForm) {
  EXPECT_EQ(read("{'zero_optimization': true}").settings.stage, 1);
  EXPECT_EQ(read("{'zero_optimization': false}").settings.stage, 0);
}

TEST(Zero, Overlap) {
  EXPECT_EQ(
      read("{'zero_optimization': {'overlap_comm': false}}").settings.schedule,
      "none");
  EXPECT_FALSE(read("{'zero_optimization': {'stage': 3}}").settings.schedule);
}

TEST(Zero, Grids) {
  auto grid = [](const char *keys, int64_t ranks) {
    return read(std::string("{'zero_optimization': {'stage': 3, ") + keys +
                    "}}",
                onRanks(ranks))
        .settings;
  };
  EXPECT_EQ(grid("'mics_shard_size': 4", 8).grid, (std::vector<int64_t>{2, 4}));
  EXPECT_FALSE(grid("'mics_shard_size': 4", 8).shardAll);
  EXPECT_TRUE(grid("'mics_shard_size': 8", 8).grid.empty());
  EXPECT_TRUE(grid("'mics_shard_size': -1", 8).grid.empty());
  EXPECT_EQ(grid("'zero_hpz_partition_size': 2", 8).grid,
            (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(grid("'zero_hpz_partition_size': 2", 8).shardAll, true);
  EXPECT_TRUE(grid("'zero_hpz_partition_size': 1", 8).grid.empty());
  std::string text =
      "{'zero_optimization': {'stage': 3, 'mics_shard_size': 3}}";
  EXPECT_EQ(refusals(text, onRanks(8)),
            "zero_optimization.mics_shard_size: found 3; expected a divisor of "
            "the 8 ranks");
  EXPECT_EQ(refusals(text), "zero_optimization.mics_shard_size: needs the "
                            "number of ranks; give --ranks");
  ConfigResult result = read("{'zero_optimization': {'stage': 2, "
                             "'mics_shard_size': 2}}",
                             onRanks(8));
  EXPECT_EQ(fate(result, "zero_optimization.mics_shard_size"),
            "no effect: for stage 3; DeepSpeed ignores it below");
  ConfigQuestion question = onRanks(8);
  question.flags.grid = {2, 4};
  result = read("{'zero_optimization': {'stage': 3, 'mics_shard_size': 2}}",
                question);
  EXPECT_TRUE(hasNote(result, "zero_optimization.mics_shard_size: --zero-grid "
                              "goes before it"));
}

TEST(Zero, WhatDeepSpeedIgnoresInSilence) {
  const std::pair<const char *, const char *> cases[] = {
      {"'stage': 3, 'max_live_parameters': 0",
       "zero_optimization.max_live_parameters: 0 says that no parameter may be "
       "gathered, which DeepSpeed ignores in silence; --memory bounds all "
       "bytes"},
  };
  for (const auto &[keys, note] : cases) {
    ConfigResult result =
        read(std::string("{'zero_optimization': {") + keys + "}}");
    EXPECT_TRUE(result.refusals().empty());
    EXPECT_TRUE(hasNote(result, note)) << note;
  }
}

//===----------------------------------------------------------------------===//
// Clipping, logs, the rest
//===----------------------------------------------------------------------===//

TEST(Clipping, AbsentIsDeepSpeedsDefault) {
  ConfigResult result = read("{}");
  EXPECT_EQ(result.settings.clipNorm, 1.0);
  EXPECT_TRUE(hasNote(result,
                      "gradient_clipping: absent: --clip 1, as DeepSpeed 0.19 "
                      "has it (older ones did not clip; 0 turns it off)"));
  EXPECT_EQ(read("{'gradient_clipping': 0}").settings.clipNorm, 0);
  EXPECT_EQ(read("{'gradient_clipping': 'auto'}").settings.clipNorm, 1.0);
  ConfigQuestion question;
  question.flags.clipNorm = 0;
  EXPECT_EQ(read("{}", question).settings.clipNorm, 0);
  EXPECT_TRUE(read("{}", question).notes.empty());
  question.flags = {};
  question.flags.clipValue = 0.5;
  EXPECT_FALSE(read("{}", question).settings.clipNorm);
  EXPECT_TRUE(hasNote(read("{'gradient_clipping': 1}", question),
                      "gradient_clipping: --clip-value goes before it"));
}

TEST(Logs, Monitors) {
  RunSettings settings =
      read("{'csv_monitor': {'enabled': true, 'output_path': 'out', "
           "'job_name': 'j'}, 'tensorboard': {'enabled': false}, "
           "'steps_per_print': 7}")
          .settings;
  EXPECT_EQ(settings.logs, std::vector<std::string>{"csv"});
  EXPECT_EQ(settings.logDir, "out/j");
  EXPECT_EQ(settings.metricNames, "deepspeed");
  EXPECT_EQ(settings.logEvery, 7);
  ConfigQuestion question;
  question.flags.logs = {"tensorboard"};
  ConfigResult result = read("{'csv_monitor': {'enabled': true}}", question);
  EXPECT_TRUE(hasNote(result, "csv_monitor.enabled: --log tensorboard goes "
                              "before it"));
}

TEST(DeepSpeed, WhatChangesTheTrainingIsRefused) {
  const std::pair<const char *, const char *> cases[] = {
      {"{'zero_optimization': {'zero_quantized_weights': true}}",
       "zero_optimization.zero_quantized_weights: quantized gathers change the "
       "values that are trained with"},
      {"{'zero_optimization': {'zero_quantized_gradients': true}}",
       "zero_optimization.zero_quantized_gradients: quantized reductions "
       "change the gradients"},
      {"{'zero_optimization': {'zero_quantized_nontrainable_weights': true}}",
       "zero_optimization.zero_quantized_nontrainable_weights: quantized "
       "weights change the values that are trained with"},
      {"{'zero_optimization': {'zeropp_loco_param': {'err_beta': 0.8}}}",
       "zero_optimization.zeropp_loco_param: quantized reductions change the "
       "gradients"},
      {"{'zero_optimization': {'zenflow': {'topk_ratio': 0.1}}}",
       "zero_optimization.zenflow: updates with old gradients change the "
       "training"},
      {"{'gradient_allreduce_op': 'sum'}",
       "gradient_allreduce_op: gradients are averaged over ranks and "
       "micro-batches; scale the loss instead"},
      {"{'sparse_attention': {'mode': 'fixed'}}",
       "sparse_attention: DeepSpeed has removed it; the model says what "
       "attention it has"},
      {"{'progressive_layer_drop': {'enabled': true}}",
       "progressive_layer_drop: DeepSpeed has removed it; a step has all "
       "layers"},
      {"{'compression_training': {'x': [{'enabled': true}]}}",
       "compression_training: pruning and quantization change the training"},
      {"{'quantize_training': {'enabled': true}}",
       "quantize_training: quantization changes the training"},
      {"{'data_efficiency': {'enabled': true}}",
       "data_efficiency: curricula and token dropping change the data; prepare "
       "it before"},
      {"{'curriculum_learning': {'enabled': true}}",
       "curriculum_learning: curricula change the data; prepare it before"},
      {"{'eigenvalue': {'enabled': true}}",
       "eigenvalue: eigenvalues serve quantization, which is not there"},
      {"{'elasticity': {'enabled': true}}",
       "elasticity: a plan is for a fixed number of ranks; resume its "
       "checkpoint on another with --resume"},
      {"{'hybrid_engine': {'enabled': true}}",
       "hybrid_engine: a plan trains; it does not generate"},
      {"{'tensor_parallel': {'autotp_size': 4}}",
       "tensor_parallel.autotp_size: state is cut over the ranks, compute is "
       "not"},
      {"{'expert_parallel': {'enabled': true}}",
       "expert_parallel: experts are computed where their tokens are"},
      {"{'sequence_parallel_size': 2}",
       "sequence_parallel_size: a sample is computed on one rank"},
  };
  for (const auto &[text, message] : cases)
    EXPECT_EQ(refusals(text), message);
}

TEST(DeepSpeed, Files) {
  auto errorOf = [](const std::string &path) {
    llvm::Expected<ConfigResult> result = readDeepSpeedConfigFile(path, {});
    return result ? "" : llvm::toString(result.takeError());
  };
  EXPECT_EQ(errorOf("no-such.json"),
            "no-such.json: cannot open: No such file or directory");
  EXPECT_EQ(errorOf("/"), "/: is no file");
  EXPECT_EQ(errorOf("/dev/null"), "/dev/null: is no file");
}

} // namespace
