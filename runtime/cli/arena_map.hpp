#pragma once

#include <gpunn/plan.hpp>

#include <string>

namespace gpunn::cli {

// The arena over a step as text: a table of its tensors in the order of their offsets, and a drawing of at most
// `columns` by 24 characters, in which a column is a moment of the step (the first op at the left), a row a range of
// offsets (0 at the top), and a letter the tensor that is there then.
std::string arena_map(const PlanReport& report, std::size_t columns);

}  // namespace gpunn::cli
