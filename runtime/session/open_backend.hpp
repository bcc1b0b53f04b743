#pragma once

#include <gpunn/experiment.hpp>

#include <memory>
#include <string>

#include "distributed/team.hpp"
#include "execution/backend.hpp"
#include "plugins/plugin.hpp"

namespace gpunn::training {

// Throws Error(missing) if a plugin that the experiment names can't be used, even if another backend could run it.
void require_named_plugins(const Experiment& experiment, const plugins::PluginRegistry& registry);

// Opens the backend of this name with the experiment's settings: device, threads, precision, kernels, ... A rank of a
// team takes the device with its number on its machine, counted from the experiment's, and its share of the processors.
std::unique_ptr<execution::Backend> open_backend(const Experiment& experiment, const plugins::PluginRegistry& registry,
                                                 const std::string& name, const distributed::Team* team = nullptr);

}  // namespace gpunn::training
