#pragma once

#include "conformance/training/samples.hpp"
#include "conformance/workbench.hpp"

namespace gpunn::conformance {

// What the losses of two backends that are both right may differ by, as a share of the reference's.
//
// Rounding makes each number of a step wrong by some units of roundoff, and each step goes on from the weights that the
// one before has made. Where nothing is chosen, as in the MLP, that grows slowly: the losses of one seed on the CPU's
// baseline code and on its AVX-512 code (other orders of summing) differ by 2e-8 in the first 20 steps and by 1e-6
// after 300. A thousand times that is allowed, at each step.
//
// A maximum over a window in which two values nearly tie may go to the other one. Its gradient then goes to another
// pixel, and the two trainings part: in 17 seeds of the CNN the losses of the first 20 steps differed by at most 1e-6,
// but in 8 of them single losses by half their value in the end, and means over 20 steps by up to 0.06. So the first
// steps are compared one by one, at a hundred times what was seen, and later ones by their means, at three times. A
// wrong gradient is far off in the first steps; a stale learning rate, counter or dropout mask in both.
//
// With products of less precision a step is off by that precision's roundoff from the start: 16 units of it are allowed
// to the first steps, and means are compared behind them.
struct CurveTolerance {
  int64_t early_steps;  // compared one by one
  double early;         // each
  double each;          // every later step; 0: not compared one by one
  int64_t stretch;      // steps of a mean
  double late;          // each mean
  double floor;         // a mean below is compared as if it were this
};
CurveTolerance curve_tolerance(const SampleTraining& sample, Precision precision);

// Trains on the backend and on the reference, from one seed: the losses agree, fall, and end in a good accuracy.
void run_curve(const SampleTraining& sample, Workbench& bench, CheckCase& result);

}  // namespace gpunn::conformance
