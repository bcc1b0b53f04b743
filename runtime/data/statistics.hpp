#pragma once

#include <gpunn/data.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fields/moments.hpp"

namespace gpunn::data {

// Samples that are made when they are wanted are measured on this many of them, which gives the mean and the deviation
// to 1 %.
inline constexpr int64_t kMeasuredSamples = 2048;

// Sets mean and stddev to those of the training samples, channel by channel (feature by feature of [rows, features]),
// and adds a note for each channel that was rounded too coarsely before.
void normalise_by_training_samples(Dataset& set);

// The same for the other inputs that models take normalised and whose mean is not known.
void normalise_further_inputs(Dataset& set);

// Sets the mean and deviation of each target column from the training rows, with the same notes.
void measure_targets(Dataset& set);

// Adds a note for each target column that f32 would round too coarsely: the targets are learnt in their own units.
void note_rounded_targets(Dataset& set);

// The distance from a number to the next one that this floating-point type holds.
double step_at(double number, DType type);
// Whether numbers of this type around `largest` lie too far apart for a column of this deviation: the column has fewer
// steps than a byte has, 256. A uniform column of 256 steps has a deviation of 74 steps.
bool is_coarse(double largest, double stddev, DType type);

}  // namespace gpunn::data
