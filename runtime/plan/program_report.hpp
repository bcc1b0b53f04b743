#pragma once

#include <gpunn/plan.hpp>

#include "execution/backend.hpp"
#include "execution/steps/compiler.hpp"

namespace gpunn::training {

// The ops, subgraphs and tensors of a program for `report`, whose chain is that of the backend.
void describe_program(const execution::CompiledProgram& program, const execution::Backend& backend, PlanReport& report);

}  // namespace gpunn::training
