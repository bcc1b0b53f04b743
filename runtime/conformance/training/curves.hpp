#pragma once

#include "conformance/training/samples.hpp"
#include "conformance/workbench.hpp"

namespace gpunn::conformance {

// What the losses of two backends that are both right may differ by, as a share of the reference's.
//
// Rounding makes each number of a step wrong by some units of roundoff u of what products are rounded to, and each step
// goes on from weights that were moved by the one before: differences grow as the training's own sensitivity makes
// them, here about tenfold in ten steps at first, and slower when the learning rate falls. While they are small they
// are a matter of rounding alone, and are compared step by step. Later a ReLU or a maximum goes the other way at a
// sample near the border, and single batches tell little: then means over a stretch of steps are compared, of which a
// wrong gradient, a stale learning rate or a wrong dropout mask still is far off.
struct CurveTolerance {
  int64_t early_steps;  // compared one by one
  double early;         // each
  int64_t stretch;      // steps of a mean
  double late;          // each mean, as a share, or of `floor` where the loss is below it
  double floor;
};
CurveTolerance curve_tolerance(Precision precision);

// Trains on the backend and on the reference, from one seed: the losses agree, fall, and end in a good accuracy.
void run_curve(const SampleTraining& sample, Workbench& bench, CheckCase& result);

}  // namespace gpunn::conformance
