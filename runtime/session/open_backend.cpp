#include "session/open_backend.hpp"

#include <gpunn/error.hpp>
#include <gpunn/plugins.hpp>

#include <filesystem>
#include <system_error>

#include "config/checked_backends.hpp"
#include "distributed/processors.hpp"

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

namespace {

// Ranks share a plugin's only device, as the processors of the host.
int device_of_rank(int first, int devices, const RankPlace& place) {
  if (devices == 1) return first;
  if (first + place.local_world <= devices) return first + place.local_rank;
  throw Error("this machine has " + std::to_string(devices) + " devices and " + std::to_string(place.local_world) +
                  " ranks" + (first > 0 ? ", from device " + std::to_string(first) + " on" : "") +
                  ": start as many ranks as there are devices",
              ExitCode::usage);
}

}  // namespace

std::unique_ptr<execution::Backend> open_backend(const Experiment& experiment, const plugins::PluginRegistry& registry,
                                                 const std::string& name, const distributed::Team* team) {
  auto device = static_cast<int>(experiment.device), threads = static_cast<int>(experiment.threads);
  if (team != nullptr) {
    device = device_of_rank(device, registry.chain(name).front()->devices(), team->place());
    if (threads == 0) threads = distributed::processors_of_rank(team->place());
  }
  return std::make_unique<execution::Backend>(
      registry, name,
      execution::BackendOptions{
          .device = device,
          .threads = threads,
          .precision = experiment.precision,
          .deterministic = experiment.deterministic,
          .host_copies = experiment.host_copies,
          .streams = static_cast<int>(experiment.streams),
          .subgraphs = experiment.subgraphs,
          // Ranks that each take what their own clock prefers would update their parameters to other bits.
          .alternatives = experiment.alternatives && team == nullptr && !config::checked_backends(experiment.backend),
          .kernels = experiment.kernels,
          // Of two backends it may be the other that has them.
          .kernels_where_named =
              experiment.kernels_where_named || config::checked_backends(experiment.backend).has_value()});
}

}  // namespace gpunn::training
