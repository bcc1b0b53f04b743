#pragma once

#include <vector>

#include "graph/graph.hpp"
#include "inference/forward_program.hpp"

namespace gpunn::interchange {

// A model that makes images of images, with the same ops and weights for images of every size: its program for
// kOtherSizes other sizes, of as many rows as `program` has. Nothing for other models, whose samples have one size.
std::vector<graph::Graph> programs_of_other_sizes(const inference::ForwardModel& model,
                                                  const inference::ForwardProgram& program, int64_t rows,
                                                  inference::BatchNorms norms);

}  // namespace gpunn::interchange
