#include "training/open_backend.hpp"

#include <gpunn/error.hpp>
#include <gpunn/plugins.hpp>

#include <filesystem>
#include <system_error>

#include "config/checked_backends.hpp"

namespace gpunn::training {

void require_named_plugins(const Experiment& experiment, const plugins::PluginRegistry& registry) {
  for (const std::filesystem::path& path : experiment.plugins) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) continue;
    for (const PluginReport& report : registry.files()) {
      const bool same =
          report.path == path.lexically_normal() || std::filesystem::equivalent(report.path, path, ignored);
      if (!same || report.status == PluginStatus::ok) continue;
      throw Error(
          "plugin " + path.string() + " can't be used: " + std::string(name_of(report.status)) + ", " + report.detail,
          ExitCode::missing);
    }
  }
}

std::unique_ptr<execution::Backend> open_backend(const Experiment& experiment, const plugins::PluginRegistry& registry,
                                                 const std::string& name) {
  return std::make_unique<execution::Backend>(
      registry, name,
      execution::BackendOptions{
          .device = static_cast<int>(experiment.device),
          .threads = static_cast<int>(experiment.threads),
          .precision = experiment.precision,
          .deterministic = experiment.deterministic,
          .host_copies = experiment.host_copies,
          .streams = static_cast<int>(experiment.streams),
          .subgraphs = experiment.subgraphs,
          .alternatives = experiment.alternatives && !config::checked_backends(experiment.backend),
          .kernels = experiment.kernels,
          // Of two backends it may be the other that has them.
          .kernels_where_named =
              experiment.kernels_where_named || config::checked_backends(experiment.backend).has_value()});
}

}  // namespace gpunn::training
