#pragma once

#include "conformance/training/samples.hpp"
#include "conformance/workbench.hpp"

namespace gpunn::conformance {

// How far a fused subgraph may be from the ops that it stands for, a few steps after the same state.
//
// Both are right to rounding, and each tensor is judged as a whole, by its Euclidean norm, since single elements may
// part company: a maximum that nearly ties, or under Adam a gradient that is all rounding, goes either way and then
// makes a full step of its own. What the steps changed in a tensor may be off by a thousandth of that change, under
// optimizers that divide by the gradient by a fiftieth; a sample left out, a stale learning rate or an element not
// written is off by more. Products of less precision are allowed 32 units of their roundoff; but a sum that rounding
// nearly cancels, or a maximum that it changes for many samples, is off by any number of them. So a subgraph that
// departs from the ops that round is right where it agrees with the same ops in fp32.
struct SubgraphTolerance {
  double change;  // of a tensor, as a share of its change
  double loss;    // as a share of the loss
};
SubgraphTolerance subgraph_tolerance(const FusedTraining& training, Precision precision);

// Trains with what the backend fuses and op by op, again and again from the same state: the two keep the same. Where
// the subgraphs are said to be deterministic, a third training, several steps at a launch, gives the bits of the first.
void run_fused(const FusedTraining& training, Workbench& bench, CheckCase& result);

}  // namespace gpunn::conformance
