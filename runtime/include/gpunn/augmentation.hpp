#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/export.h>

#include <cstdint>

namespace gpunn {

// The training samples as the first steps of a training get them: augmented, batch after batch, at least `rows` of them
// and at most an epoch's, in the units of the data set. A sample that mixup makes of two has the label of the first.
// The other parts are empty. The experiment's backend computes them.
GPUNN_API Dataset augmented_samples(const Experiment& experiment, int64_t rows);

}  // namespace gpunn
