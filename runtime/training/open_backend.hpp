#pragma once

#include <gpunn/experiment.hpp>

#include <memory>
#include <string>

#include "execution/backend.hpp"
#include "plugins/plugin.hpp"

namespace gpunn::training {

// Throws Error(missing) if a plugin that the experiment names can't be used, even if another backend could run it.
void require_named_plugins(const Experiment& experiment, const plugins::PluginRegistry& registry);

// The backend of this name as the experiment wants it: device, threads, precision, kernels, ...
std::unique_ptr<execution::Backend> open_backend(const Experiment& experiment, const plugins::PluginRegistry& registry,
                                                 const std::string& name);

}  // namespace gpunn::training
