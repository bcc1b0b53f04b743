#pragma once

#include "conformance/training/samples.hpp"
#include "conformance/workbench.hpp"

namespace gpunn::conformance {

// How far fused subgraphs may be from the ops that they replace, a few steps after the same state.
//
// Both are right up to rounding. Each tensor is judged as a whole, by its Euclidean norm, since single elements may
// differ by a full step: a maximum that nearly ties goes either way, and so does a gradient under Adam that is all
// rounding. The change that the steps make to a tensor may be off by a thousandth of it, and by a fiftieth if the
// optimizer divides by the gradient. A sample left out, a stale learning rate or an element not written is off by more.
// Beyond that a subgraph may be off by what changes of the parameters' last bits make of the same steps op by op.
//
// Products of less precision are allowed 32 units of their roundoff. A sum that nearly cancels, or a maximum that
// changes for many samples, may exceed any number of units. So a subgraph that differs from the ops in low precision
// also passes if it agrees with the same ops in fp32.
struct SubgraphTolerance {
  double change;  // of a tensor, as a share of its change
  double loss;    // as a share of the loss
};
SubgraphTolerance subgraph_tolerance(const FusedTraining& training, Precision precision);

// Trains with fused subgraphs and op by op, again and again from the same state, and requires the same results. If the
// subgraphs are said to be deterministic, a third training, with several steps a launch, must give the bits of the
// first.
void run_fused(const FusedTraining& training, Workbench& bench, CheckCase& result);

}  // namespace gpunn::conformance
