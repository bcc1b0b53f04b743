#pragma once

#include <vector>

#include "ops/case.hpp"

namespace gpunn::ops {

// Cases that follow from an op's row and from those that its family lists: special values in each input, sizes that a
// kernel may take for granted to be smaller or rounder, more dimensions, labels and indices that name nothing, one
// tensor given as two inputs.
std::vector<Case> derived_cases(const Ops& of = all_ops());

}  // namespace gpunn::ops
