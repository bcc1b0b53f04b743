#pragma once

#include <cstdint>
#include <vector>

#include "distributed/team.hpp"
#include "training/layout.hpp"

namespace gpunn::training {

// The flat gradients in ranges that are added up over the ranks one by one, so that the sum of one range runs while the
// gradients of the next are computed. Whole neighbouring parameters, of `elements` or more where there are as many. In
// the order in which the gradients are done: last layers first.
std::vector<distributed::Share> gradient_buckets(const ParameterLayout& layout, int64_t elements);

}  // namespace gpunn::training
