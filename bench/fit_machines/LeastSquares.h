//===- LeastSquares.h - Fits of a few constants -----------------*- C++ -*-===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_BENCH_FIT_MACHINES_LEASTSQUARES_H
#define ZERO_BENCH_FIT_MACHINES_LEASTSQUARES_H

#include <functional>
#include <vector>

/// Minimizes sum of rho(r_i(x)) + prior * |x - x0|^2 by Levenberg-Marquardt,
/// rho(r) = 2 s^2 (sqrt(1 + (r/s)^2) - 1): far outliers count linearly.
struct RobustFit {
  double scale = 0.03; ///< s
  double prior = 1e-3;
  int iterations = 60;

  std::vector<double>
  run(std::vector<double> x,
      const std::function<std::vector<double>(const std::vector<double> &)>
          &residuals) const;
};

#endif // ZERO_BENCH_FIT_MACHINES_LEASTSQUARES_H
