#pragma once

#include <gpunn/experiment.hpp>

#include <filesystem>

namespace gpunn::training {

// Throws Error(usage) if a requested file (a page, a chart, a timeline) can't be written, or would replace a file of a
// run folder or of the experiment.
void require_output(const std::filesystem::path& file, const Experiment* experiment = nullptr);

}  // namespace gpunn::training
