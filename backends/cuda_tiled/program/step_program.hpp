// Whole training steps as claims of the program extension.
#pragma once

#include <gpunn/program.hpp>

#include <cstddef>
#include <memory>

namespace gpunn::cuda_tiled {

plugin::ProgramClaim claim_step(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);
std::unique_ptr<plugin::Program> create_step(const plugin::ProgramDesc& desc, std::size_t first, std::size_t count);

}  // namespace gpunn::cuda_tiled
