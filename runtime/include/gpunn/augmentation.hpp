#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/export.h>

#include <cstdint>

namespace gpunn {

// Returns training samples as the first steps of a training see them: augmented, in the order of the batches, in the
// units of the data set. There are at least `rows` of them, and at most an epoch's. A sample that mixup makes of two
// has the label of the first. The other parts of the result are empty. The experiment's backend computes the samples.
GPUNN_API Dataset augmented_samples(const Experiment& experiment, int64_t rows);

}  // namespace gpunn
