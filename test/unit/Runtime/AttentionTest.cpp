//===- AttentionTest.cpp - Tests of attention on the host -----------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention and its gradient against the products and the softmax that they
// stand for, in double precision.
//
//===----------------------------------------------------------------------===//

#include "PlanBuilder.h"
#include "runtime/core/NarrowFloat.h"

#include <array>
#include <cmath>

using namespace zrt;
using namespace zrt::test;

namespace {
using Sizes = std::vector<int64_t>;
using Floats = std::vector<float>;

int64_t count(const Sizes &sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

/// An attention: batch, heads, groups, queries, keys, sizes of both.
struct Form {
  int64_t b = 1, h = 2, g = 2, s = 3, t = 4, d = 5, e = 6;
  float scale = 0.5f;
  bool causal = false;
  Sizes mask = {};
  /// Queries, keys and values are [batch, length, heads, size] in memory.
  bool joined = false;
  /// Dropout of the probabilities; 0 samples: none of their own.
  double ratio = 0;
  int64_t samples = 0;
  int64_t dropoutKey = 0x123456789ABCDEF0, firstSample = 7;

  Sizes query() const { return {b, h, s, d}; }
  Sizes key() const { return {b, g, t, d}; }
  Sizes value() const { return {b, g, t, e}; }
  Sizes result() const { return {b, h, s, e}; }
};

Sizes stridesOf(const Sizes &sizes, bool joined) {
  if (joined)
    return {sizes[1] * sizes[2] * sizes[3], sizes[3], sizes[1] * sizes[3], 1};
  return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
}

/// A tensor by its indices.
struct View4 {
  const Floats &data;
  Sizes sizes, strides;
  View4(const Floats &data, const Sizes &sizes, bool joined)
      : data(data), sizes(sizes), strides(stridesOf(sizes, joined)) {}
  double at(int64_t b, int64_t h, int64_t i, int64_t j) const {
    auto index = [&](int64_t value, int dim) {
      return sizes[dim] == 1 ? 0 : value * strides[dim];
    };
    return data[index(b, 0) + index(h, 1) + index(i, 2) + index(j, 3)];
  }
};

/// Philox4x32-10 of two 64-bit halves of a counter.
std::array<uint32_t, 4> philox(uint64_t low, uint64_t high, uint64_t key) {
  std::array<uint32_t, 4> c = {uint32_t(low), uint32_t(low >> 32),
                               uint32_t(high), uint32_t(high >> 32)};
  for (uint32_t round = 0; round < 10; ++round) {
    uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
    uint32_t key0 = uint32_t(key) + round * 0x9E3779B9u;
    uint32_t key1 = uint32_t(key >> 32) + round * 0xBB67AE85u;
    c = {uint32_t(b >> 32) ^ c[1] ^ key0, uint32_t(b),
         uint32_t(a >> 32) ^ c[3] ^ key1, uint32_t(a)};
  }
  return c;
}

/// What dropout multiplies a probability by.
double dropoutOf(const Form &form, int64_t b, int64_t h, int64_t i, int64_t j) {
  int64_t rows = form.samples ? form.b / form.samples : form.b;
  uint64_t sample = form.samples ? form.firstSample + b / rows : 0;
  uint64_t offset = ((b % rows * form.h + h) * form.s + i) * form.t + j;
  uint32_t word =
      philox(offset / 4, sample, uint64_t(form.dropoutKey))[offset % 4];
  return std::ldexp(word >> 8, -24) >= form.ratio ? 1 / (1 - form.ratio) : 0;
}

struct Tensors {
  Floats query, key, value, mask, grad;
};

Tensors makeTensors(const Form &form) {
  Tensors tensors{numbers(1, count(form.query())),
                  numbers(2, count(form.key())),
                  numbers(3, count(form.value())), {},
                  numbers(4, count(form.result()))};
  if (!form.mask.empty())
    tensors.mask = numbers(5, count(form.mask));
  return tensors;
}

struct Results {
  Floats result, logsumexp, queryGrad, keyGrad, valueGrad;
};

/// The scores of one query, and its probabilities; all 0 where it sees nothing.
std::vector<double> probabilities(const Form &form, const Tensors &in,
                                  int64_t b, int64_t h, int64_t i,
                                  double &logsumexp) {
  View4 q(in.query, form.query(), form.joined);
  View4 k(in.key, form.key(), form.joined);
  std::vector<double> row(form.t, -INFINITY);
  double most = -INFINITY, sum = 0;
  for (int64_t j = 0; j < form.t; ++j) {
    if (form.causal && j > i)
      continue;
    double score = 0;
    for (int64_t d = 0; d < form.d; ++d)
      score += q.at(b, h, i, d) * k.at(b, h / (form.h / form.g), j, d);
    row[j] = score * form.scale;
    if (!form.mask.empty())
      row[j] += View4(in.mask, form.mask, false).at(b, h, i, j);
    most = std::max(most, row[j]);
  }
  for (double &score : row)
    sum += most == -INFINITY ? 0 : std::exp(score - most);
  logsumexp = most == -INFINITY ? most : most + std::log(sum);
  for (double &score : row)
    score = most == -INFINITY ? 0 : std::exp(score - logsumexp);
  return row;
}

Results reference(const Form &form, const Tensors &in) {
  std::vector<double> y(count(form.result())), dq(count(form.query())),
      dk(count(form.key())), dv(count(form.value()));
  Results out;
  View4 q(in.query, form.query(), form.joined);
  View4 k(in.key, form.key(), form.joined);
  View4 v(in.value, form.value(), form.joined);
  View4 dy(in.grad, form.result(), false);
  auto place = [](const Sizes &sizes, int64_t b, int64_t h, int64_t i,
                  int64_t j) {
    return ((b * sizes[1] + h) * sizes[2] + i) * sizes[3] + j;
  };
  for (int64_t b = 0; b < form.b; ++b)
    for (int64_t h = 0; h < form.h; ++h)
      for (int64_t i = 0; i < form.s; ++i) {
        double lse, mean = 0;
        std::vector<double> p = probabilities(form, in, b, h, i, lse);
        out.logsumexp.push_back(float(lse));
        int64_t group = h / (form.h / form.g);
        std::vector<double> dp(form.t);
        for (int64_t j = 0; j < form.t; ++j) {
          double kept = dropoutOf(form, b, h, i, j), weight = p[j] * kept;
          for (int64_t e = 0; e < form.e; ++e) {
            y[place(form.result(), b, h, i, e)] +=
                weight * v.at(b, group, j, e);
            dv[place(form.value(), b, group, j, e)] +=
                weight * dy.at(b, h, i, e);
            dp[j] += kept * dy.at(b, h, i, e) * v.at(b, group, j, e);
          }
          mean += p[j] * dp[j];
        }
        for (int64_t j = 0; j < form.t; ++j)
          for (int64_t d = 0; d < form.d; ++d) {
            double ds = p[j] * (dp[j] - mean) * form.scale;
            dq[place(form.query(), b, h, i, d)] += ds * k.at(b, group, j, d);
            dk[place(form.key(), b, group, j, d)] += ds * q.at(b, h, i, d);
          }
      }
  out.result.assign(y.begin(), y.end());
  out.queryGrad.assign(dq.begin(), dq.end());
  out.keyGrad.assign(dk.begin(), dk.end());
  out.valueGrad.assign(dv.begin(), dv.end());
  return out;
}

void addNumber(fb::CommandT &call, const char *name, double value) {
  auto attr = std::make_unique<fb::AttrT>();
  attr->name = name;
  attr->floats = {value};
  call.attrs.push_back(std::move(attr));
}

/// Attention and its gradient, one after the other.
PlanBuilder planOf(const Form &form, fb::DType type = fb::DType_F32) {
  PlanBuilder plan(1);
  uint32_t q = plan.input("q", {count(form.query())}, type);
  uint32_t k = plan.input("k", {count(form.key())}, type);
  uint32_t v = plan.input("v", {count(form.value())}, type);
  uint32_t dy = plan.input("dy", form.result(), type);
  uint32_t mask = form.mask.empty() ? 0 : plan.input("mask", form.mask);
  uint32_t dropoutKey = 0, first = 0;
  if (form.ratio > 0) {
    dropoutKey = plan.input("key", {}, fb::DType_I64);
    first = plan.input("first", {}, fb::DType_I64);
  }
  uint32_t y = plan.buffer("y", form.result(), type);
  uint32_t lse = plan.buffer("lse", {form.b, form.h, form.s});
  uint32_t dq = plan.buffer("dq", form.query(), type);
  uint32_t dk = plan.buffer("dk", form.key(), type);
  uint32_t dv = plan.buffer("dv", form.value(), type);
  auto start = [&](const char *name) -> fb::CommandT & {
    fb::CommandT &call = plan.command(fb::Op_Call, name);
    addNumber(call, "scale", form.scale);
    if (form.causal)
      plan.attr(call, "causal", {1});
    if (form.ratio > 0)
      addNumber(call, "ratio", form.ratio);
    if (form.samples)
      plan.attr(call, "samples", {form.samples});
    return call;
  };
  auto inputs = [&](fb::CommandT &call) {
    for (auto [buffer, sizes] : {std::pair(q, form.query()),
                                 std::pair(k, form.key()),
                                 std::pair(v, form.value())})
      plan.operand(call, buffer, 0, sizes, stridesOf(sizes, form.joined));
  };
  auto options = [&](fb::CommandT &call) {
    for (uint32_t buffer : {mask, dropoutKey, first})
      if (buffer)
        plan.operand(call, buffer);
  };
  fb::CommandT &forward = start("attention");
  inputs(forward);
  options(forward);
  plan.operand(forward, y);
  plan.operand(forward, lse);
  fb::CommandT &backward = start("attention_grad");
  plan.operand(backward, dy);
  inputs(backward);
  plan.operand(backward, y);
  plan.operand(backward, lse);
  options(backward);
  for (uint32_t buffer : {dq, dk, dv})
    plan.operand(backward, buffer);
  for (uint32_t buffer : {y, lse, dq, dk, dv})
    plan.output(buffer);
  return plan;
}

void giveDropout(Running &running, const Form &form) {
  if (form.ratio == 0)
    return;
  running.set("key", 0, std::vector<int64_t>{form.dropoutKey});
  running.set("first", 0, std::vector<int64_t>{form.firstSample});
}

Results run(const Form &form, const Tensors &in, uint32_t threads = 1) {
  zrt_session_options options = {};
  options.threads_per_rank = threads;
  Running running(planOf(form), options);
  running.set("q", 0, in.query);
  running.set("k", 0, in.key);
  running.set("v", 0, in.value);
  running.set("dy", 0, in.grad);
  if (!in.mask.empty())
    running.set("mask", 0, in.mask);
  giveDropout(running, form);
  running.step();
  return {running.get(0), running.get(1), running.get(2), running.get(3),
          running.get(4)};
}

void expectNear(const char *what, const Floats &got, const Floats &expected,
                double tolerance) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(expected[i])) {
      EXPECT_EQ(got[i], expected[i]) << what << ", element " << i;
      continue;
    }
    ASSERT_NEAR(got[i], expected[i],
                tolerance * (1 + std::abs(double(expected[i]))))
        << what << ", element " << i;
  }
}

void check(const Form &form, const Tensors &in, double tolerance = 1e-5) {
  Results got = run(form, in), expected = reference(form, in);
  expectNear("result", got.result, expected.result, tolerance);
  expectNear("logsumexp", got.logsumexp, expected.logsumexp, tolerance);
  expectNear("queries", got.queryGrad, expected.queryGrad, tolerance);
  expectNear("keys", got.keyGrad, expected.keyGrad, tolerance);
  expectNear("values", got.valueGrad, expected.valueGrad, tolerance);
}

void check(const Form &form) { check(form, makeTensors(form)); }

template <typename Narrow>
void checkNarrow(const Form &form, fb::DType type, double tolerance) {
  Tensors in = makeTensors(form);
  Running running(planOf(form, type));
  auto give = [&](const char *name, Floats &values) {
    std::vector<Narrow> narrow;
    for (float &value : values) {
      narrow.push_back(Narrow::round(value));
      value = narrow.back().widen();
    }
    running.set(name, 0, narrow);
  };
  give("q", in.query);
  give("k", in.key);
  give("v", in.value);
  give("dy", in.grad);
  giveDropout(running, form);
  running.step();
  Results expected = reference(form, in);
  auto take = [&](uint32_t output, const char *what, const Floats &numbers) {
    Floats wide;
    for (Narrow value : running.get<Narrow>(output))
      wide.push_back(value.widen());
    expectNear(what, wide, numbers, tolerance);
  };
  take(0, "result", expected.result);
  take(2, "queries", expected.queryGrad);
  take(3, "keys", expected.keyGrad);
  take(4, "values", expected.valueGrad);
}
} // namespace

TEST(Attention, Plain) {
  check({});
  check({2, 3, 3, 1, 1, 1, 1});
  check({1, 1, 1, 17, 33, 16, 8, 0.25f});
}

/// More queries than a block has, more keys than queries and the reverse.
TEST(Attention, Blocks) {
  check({2, 2, 2, 150, 170, 8, 8, 0.3f});
  check({1, 2, 2, 150, 90, 8, 8, 0.3f, /*causal=*/true});
  check({1, 2, 2, 70, 200, 8, 8, 0.3f, /*causal=*/true});
}

TEST(Attention, Groups) {
  check({2, 6, 2, 9, 11, 4, 3, 0.5f, /*causal=*/true});
  check({1, 4, 1, 70, 5, 4, 3, 0.5f});
}

TEST(Attention, Masks) {
  for (Sizes mask : {Sizes{1, 1, 1, 7},
                     {2, 1, 1, 7},
                     {1, 1, 5, 7},
                     {1, 4, 5, 1},
                     {2, 4, 5, 7},
                     {1, 1, 1, 1}})
    for (bool causal : {false, true})
      check({2, 4, 2, 5, 7, 4, 4, 0.5f, causal, mask});
}

/// Heads cut from [batch, length, heads * size].
TEST(Attention, StridedOperands) {
  check({2, 4, 2, 66, 9, 4, 8, 0.5f, /*causal=*/true, {}, /*joined=*/true});
}

/// A query that sees no key gives zeros, and gradients of zero.
TEST(Attention, QueryThatSeesNothing) {
  Form form{1, 1, 1, 3, 4, 2, 2, 0.5f, false, {1, 1, 3, 4}};
  Tensors in = makeTensors(form);
  std::fill_n(in.mask.begin() + 4, 4, -INFINITY);
  check(form, in);
  Results got = run(form, in);
  EXPECT_EQ(got.result[2], 0);
  EXPECT_EQ(got.queryGrad[2], 0);
}

/// A row of the least f32 is no reason to see nothing: all keys count alike.
TEST(Attention, LowestMaskIsNoInfinity) {
  Form form{1, 1, 1, 1, 4, 2, 1, 0.5f, false, {1, 1, 1, 4}};
  Tensors in = makeTensors(form);
  in.mask.assign(4, std::numeric_limits<float>::lowest());
  in.value = {1, 2, 3, 6};
  Results got = run(form, in);
  EXPECT_FLOAT_EQ(got.result[0], 3);
  for (float grad : got.valueGrad)
    EXPECT_FLOAT_EQ(grad, in.grad[0] / 4);
}

/// Large scores neither overflow nor lose the differences.
TEST(Attention, LargeScores) {
  Form form{1, 1, 1, 2, 40, 3, 2, 1000.0f};
  check(form, makeTensors(form), 2e-3);
}

TEST(Attention, NarrowTypes) {
  Form form{2, 4, 2, 70, 30, 8, 8, 0.5f, /*causal=*/true};
  checkNarrow<BFloat16>(form, fb::DType_BF16, 1e-2);
  checkNarrow<Half>(form, fb::DType_F16, 2e-3);
}

/// Sums have one order, whoever computes them.
TEST(Attention, ThreadsGiveTheSameBits) {
  Form form{2, 4, 2, 150, 170, 16, 16, 0.3f, /*causal=*/true};
  Tensors in = makeTensors(form);
  Results one = run(form, in, 1);
  for (uint32_t threads : {2, 3, 5}) {
    Results many = run(form, in, threads);
    EXPECT_EQ(one.result, many.result);
    EXPECT_EQ(one.queryGrad, many.queryGrad);
    EXPECT_EQ(one.keyGrad, many.keyGrad);
    EXPECT_EQ(one.valueGrad, many.valueGrad);
  }
}

/// `form` with dropout.
Form dropping(Form form, double ratio = 0.3, int64_t samples = 0) {
  form.ratio = ratio;
  form.samples = samples;
  return form;
}

/// Philox's known answer for zeros (Random123, kat_vectors).
TEST(AttentionDropout, ReferenceDrawsPhilox) {
  EXPECT_EQ(philox(0, 0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d,
                                                      0xbc57ac4c, 0x9b00dbd8}));
}

/// Rows of all lengths modulo the words that are drawn at a time.
TEST(AttentionDropout, Plain) {
  for (int64_t keys : {1, 3, 4, 66, 127, 128, 131})
    check(dropping({1, 2, 2, 5, keys}));
  check(dropping({1, 2, 2, 70, 170, 8, 8, 0.3f}, 0.9));
}

TEST(AttentionDropout, CausalGroupsMasks) {
  check(dropping({1, 2, 2, 150, 90, 8, 8, 0.3f, /*causal=*/true}));
  check(dropping({2, 6, 2, 9, 11, 4, 3, 0.5f, /*causal=*/true}, 0.1, 2));
  check(dropping({2, 4, 2, 5, 7, 4, 4, 0.5f, /*causal=*/true, {2, 1, 1, 7}}));
  check(dropping({2, 4, 2, 66, 9, 4, 8, 0.5f, true, {}, /*joined=*/true}));
}

/// Samples of one row and of neighbouring ones, and numbers of more than 32
/// bits.
TEST(AttentionDropout, Samples) {
  for (int64_t samples : {0, 1, 2, 4}) {
    Form form = dropping({4, 2, 2, 5, 6}, 0.4, samples);
    check(form);
    form.firstSample = (int64_t(1) << 32) - 2;
    check(form);
  }
}

/// What a sample draws does not depend on the batch that it is in.
TEST(AttentionDropout, BatchesDrawTheSame) {
  Form all = dropping({4, 2, 2, 70, 33, 8, 8}, 0.4, 4);
  Form last = dropping({1, 2, 2, 70, 33, 8, 8}, 0.4, 1);
  last.firstSample = all.firstSample + 3;
  Tensors in = makeTensors(all), part = in;
  auto cut = [](Floats &numbers) {
    numbers.erase(numbers.begin(), numbers.end() - numbers.size() / 4);
  };
  for (Floats *numbers : {&part.query, &part.key, &part.value, &part.grad})
    cut(*numbers);
  Results whole = run(all, in), own = run(last, part);
  for (Floats *numbers :
       {&whole.result, &whole.queryGrad, &whole.keyGrad, &whole.valueGrad})
    cut(*numbers);
  EXPECT_EQ(whole.result, own.result);
  EXPECT_EQ(whole.queryGrad, own.queryGrad);
  EXPECT_EQ(whole.keyGrad, own.keyGrad);
  EXPECT_EQ(whole.valueGrad, own.valueGrad);
}

TEST(AttentionDropout, ThreadsGiveTheSameBits) {
  Form form = dropping({2, 4, 2, 150, 70, 16, 16, 0.3f, /*causal=*/true});
  Tensors in = makeTensors(form);
  Results one = run(form, in, 1), many = run(form, in, 3);
  EXPECT_EQ(one.result, many.result);
  EXPECT_EQ(one.queryGrad, many.queryGrad);
  EXPECT_EQ(one.keyGrad, many.keyGrad);
  EXPECT_EQ(one.valueGrad, many.valueGrad);
}

TEST(AttentionDropout, NarrowTypes) {
  Form form = dropping({2, 4, 2, 70, 30, 8, 8, 0.5f}, 0.25, 2);
  checkNarrow<BFloat16>(form, fb::DType_BF16, 1e-2);
  checkNarrow<Half>(form, fb::DType_F16, 2e-3);
}

/// The gradients against central differences of the sum of the result times
/// the gradient by it.
TEST(AttentionDropout, CentralDifferences) {
  Form form = dropping({2, 2, 1, 3, 4, 2, 3, 0.7f, /*causal=*/true}, 0.4, 2);
  Tensors in = makeTensors(form);
  Results got = run(form, in);
  constexpr float step = 0x1p-6f;
  auto lossOf = [&] {
    Results results = reference(form, in);
    double loss = 0;
    for (size_t i = 0; i < results.result.size(); ++i)
      loss += double(results.result[i]) * in.grad[i];
    return loss;
  };
  for (auto [numbers, grad] :
       {std::pair(&in.query, &got.queryGrad), std::pair(&in.key, &got.keyGrad),
        std::pair(&in.value, &got.valueGrad)})
    for (size_t i = 0; i < numbers->size(); ++i) {
      float old = (*numbers)[i];
      (*numbers)[i] = old + step;
      double above = lossOf();
      (*numbers)[i] = old - step;
      double below = lossOf();
      (*numbers)[i] = old;
      EXPECT_NEAR((*grad)[i], (above - below) / (2 * step), 1e-4);
    }
}

TEST(AttentionDropout, Errors) {
  auto errorOf = [](const Form &form, auto change, size_t command = 0) {
    PlanBuilder plan = planOf(form);
    change(*plan.program.commands[command]);
    return sessionError(plan);
  };
  auto expect = [](const std::string &error, const char *text) {
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  auto nothing = [](fb::CommandT &) {};
  auto ratio = [](double value) {
    return [value](fb::CommandT &call) { call.attrs[1]->floats = {value}; };
  };
  Form form = dropping({4}, 0.5, 4);
  for (double value : {1.0, -0.5, double(NAN)})
    for (size_t command : {0, 1})
      expect(errorOf(form, ratio(value), command), "expected one in [0, 1)");
  expect(errorOf(dropping({4}, 0.5, 3), nothing),
         "an attention has 3 samples in a batch of 4");
  expect(errorOf(dropping({4}, 0.5, -1), nothing),
         "an attention has -1 samples in a batch of 4");
  auto swapped = [](size_t a, size_t b) {
    return [=](fb::CommandT &call) {
      std::swap(call.operands[a], call.operands[b]);
    };
  };
  expect(errorOf(form, swapped(2, 4)),
         "elements of type i64; library calls take f32, bf16 and f16");
  expect(errorOf(form, swapped(4, 5)),
         "operand 4 of attention is no scalar of i64");
  expect(errorOf(form, swapped(7, 8), 1),
         "operand 7 of attention_grad is no scalar of i64");
  expect(errorOf(form,
                 [](fb::CommandT &call) {
                   call.attrs.pop_back();
                   call.attrs.pop_back();
                 }),
         "an attention has 5 operands (6 with a mask), not 7");
  expect(errorOf(form,
                 [](fb::CommandT &call) {
                   call.operands[3]->sizes = {0};
                   call.operands[3]->strides = {1};
                 }),
         "an operand is empty");
}

TEST(Attention, Errors) {
  auto errorOf = [](const Form &form, auto change) {
    PlanBuilder plan = planOf(form);
    change(*plan.program.commands[0]);
    return sessionError(plan);
  };
  EXPECT_NE(errorOf({}, [](fb::CommandT &call) { call.attrs.clear(); })
                .find("an attention has no attribute scale"),
            std::string::npos);
  EXPECT_NE(errorOf({}, [](fb::CommandT &call) { call.operands.pop_back(); })
                .find("an attention has 5 operands (6 with a mask), not 4"),
            std::string::npos);
  EXPECT_NE(errorOf({},
                    [](fb::CommandT &call) {
                      std::swap(call.operands[1], call.operands[2]);
                    })
                .find("shapes do not fit: queries of 1x2x3x5, keys of 1x2x4x6"),
            std::string::npos);
  // 3 heads of queries, 2 of keys.
  EXPECT_NE(errorOf({1, 3, 2}, [](fb::CommandT &) {}).find("do not fit"),
            std::string::npos);
  EXPECT_NE(errorOf({},
                    [](fb::CommandT &call) {
                      call.operands[0]->sizes.assign(5, 1);
                      call.operands[0]->strides.assign(5, 1);
                    })
                .find("operand 0 of attention has 5 dimensions"),
            std::string::npos);
}
