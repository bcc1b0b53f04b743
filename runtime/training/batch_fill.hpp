#pragma once

#include <gpunn/batch_source.hpp>
#include <gpunn/data.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "training/batch_ops.hpp"
#include "training/sampling.hpp"

namespace gpunn::training {

// Writes the batch of a step to the front of the two arrays, samples and what they are to be learnt from, which have
// room for a full batch, and returns how many rows it has.
using BatchFill = std::function<int64_t(int64_t step, std::span<std::byte> samples, std::span<std::byte> targets)>;

// Rows of the split, which has to stay where it is, as the sampling picks them.
BatchFill fill_from_split(const Split& split, const SplitType& type, const Sampling& sampling);

// Batches of the calling program, of which a training of so many steps is asked for no more. Throws Error(usage) where
// one has no rows, or more than there is room for.
BatchFill fill_from_source(BatchSource& source, const SplitType& type, int64_t steps);

}  // namespace gpunn::training
