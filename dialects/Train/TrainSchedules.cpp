//===- TrainSchedules.cpp - Hyperparameters that change -------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kinds of #train.schedule, their numbers and their values.
//
//===----------------------------------------------------------------------===//

#include "dialects/Train/Train.h"

using namespace mlir;
using namespace mlir::train;

/// A number of a schedule, 0 where it is not given.
static double numberOf(ScheduleAttr schedule, StringRef name) {
  auto number = schedule.getNumbers().getAs<FloatAttr>(name);
  return number ? number.getValueAsDouble() : 0.0;
}

LogicalResult ScheduleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                   StringRef kind, DictionaryAttr numbers) {
  if (kind != "constant")
    return emitError() << "unknown schedule " << kind << ", expected constant";
  for (NamedAttribute number : numbers)
    if (!isa<FloatAttr>(number.getValue()))
      return emitError() << "number " << number.getName()
                         << " of the schedule is not a float";
  return success();
}

double mlir::train::evaluateSchedule(ScheduleAttr schedule, int64_t) {
  return numberOf(schedule, "lr");
}
