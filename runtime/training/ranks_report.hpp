#pragma once

#include <gpunn/scaling.hpp>

#include "execution/compiler.hpp"
#include "training/division.hpp"

namespace gpunn::training {

// What passes between the ranks in a step, and when it can.
PlannedRanks describe_ranks(const execution::CompiledProgram& program, const Division& division);

}  // namespace gpunn::training
