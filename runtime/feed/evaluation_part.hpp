#pragma once

#include <gpunn/data.hpp>

namespace gpunn::training {

// The data set with that part as its `test`, and its `validation` empty: while training the validation samples, later
// the test samples. Where the set lacks the part that is asked for, it is the other one; `evaluated` names it. Its
// `digest` is of all parts.
Dataset load_for(const DataConfig& config, EvaluationPart part);

// The same of a data set of the calling program. Of resumed trainings and of checkpoints the digest of the rows counts.
enum class Digest { none, whole };
Dataset prepared_for(Dataset dataset, const DataConfig& config, EvaluationPart part, Digest digest = Digest::whole);

// The same of load_sizes(), as a training would have it: for a plan.
Dataset sizes_for_training(const DataConfig& config);

// Of one sample: [C, H, W] or [features].
Shape sample_shape(const Dataset& set);

}  // namespace gpunn::training
