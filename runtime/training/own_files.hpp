#pragma once

#include <gpunn/experiment.hpp>

#include <filesystem>

namespace gpunn::training {

// Throws Error(usage) where a file that the user asks for (a page, a chart, a timeline) can't be written, or would
// replace what a run keeps in its folder, or a file that the experiment reads.
void require_output(const std::filesystem::path& file, const Experiment* experiment = nullptr);

}  // namespace gpunn::training
