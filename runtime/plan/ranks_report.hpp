#pragma once

#include <gpunn/scaling.hpp>

#include "execution/steps/compiler.hpp"
#include "program/division.hpp"

namespace gpunn::training {

// The data that ranks exchange in a step, and when.
PlannedRanks describe_ranks(const execution::CompiledProgram& program, const Division& division);

}  // namespace gpunn::training
