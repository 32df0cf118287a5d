//===- LeastSquares.cpp - Fits of a few constants ------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LeastSquares.h"

#include <cmath>

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

/// Solves a x = b, `a` symmetric and positive definite (Cholesky).
static Vector solve(Matrix a, Vector b) {
  size_t n = b.size();
  for (size_t j = 0; j != n; ++j) {
    for (size_t k = 0; k != j; ++k)
      a[j][j] -= a[j][k] * a[j][k];
    a[j][j] = std::sqrt(a[j][j]);
    for (size_t i = j + 1; i != n; ++i) {
      for (size_t k = 0; k != j; ++k)
        a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (size_t i = 0; i != n; ++i) {
    for (size_t k = 0; k != i; ++k)
      b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (size_t i = n; i-- != 0;) {
    for (size_t k = i + 1; k != n; ++k)
      b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

Vector
RobustFit::run(Vector x,
               const std::function<Vector(const Vector &)> &residuals) const {
  const Vector start = x;
  size_t n = x.size();
  auto cost = [&](const Vector &r, const Vector &at) {
    double sum = 0;
    for (double value : r)
      sum += 2 * scale * scale *
             (std::sqrt(1 + value * value / (scale * scale)) - 1);
    for (size_t i = 0; i != n; ++i)
      sum += prior * (at[i] - start[i]) * (at[i] - start[i]);
    return sum;
  };
  Vector r = residuals(x);
  double best = cost(r, x), damping = 1e-3;
  for (int iteration = 0; iteration != iterations; ++iteration) {
    Matrix jacobian(n), normal(n, Vector(n, 0));
    Vector gradient(n, 0);
    for (size_t i = 0; i != n; ++i) {
      Vector moved = x;
      moved[i] += 1e-4;
      jacobian[i] = residuals(moved);
      for (size_t row = 0; row != r.size(); ++row)
        jacobian[i][row] = (jacobian[i][row] - r[row]) / 1e-4;
    }
    for (size_t row = 0; row != r.size(); ++row) {
      double weight = 1 / std::sqrt(1 + r[row] * r[row] / (scale * scale));
      for (size_t i = 0; i != n; ++i) {
        gradient[i] -= weight * jacobian[i][row] * r[row];
        for (size_t j = 0; j != n; ++j)
          normal[i][j] += weight * jacobian[i][row] * jacobian[j][row];
      }
    }
    for (size_t i = 0; i != n; ++i) {
      gradient[i] -= prior * (x[i] - start[i]);
      normal[i][i] += prior;
    }
    bool improved = false;
    for (int attempt = 0; attempt != 12 && !improved; ++attempt) {
      Matrix damped = normal;
      for (size_t i = 0; i != n; ++i)
        damped[i][i] += damping * (normal[i][i] + 1e-9);
      Vector step = solve(damped, gradient), next = x;
      for (size_t i = 0; i != n; ++i)
        next[i] += step[i];
      Vector nextResiduals = residuals(next);
      double value = cost(nextResiduals, next);
      improved = value < best;
      damping *= improved ? 0.3 : 4;
      if (!improved)
        continue;
      bool done = best - value < 1e-9 * best;
      x = next;
      r = nextResiduals;
      best = value;
      if (done)
        return x;
    }
    if (!improved)
      break;
  }
  return x;
}
