#include "session/memory_check.hpp"

#include <algorithm>
#include <string_view>

#include "common/host_memory.hpp"
#include "common/text.hpp"
#include "execution/backend.hpp"
#include "program/optimizer_ops.hpp"

namespace gpunn::training {

namespace {

// The largest batch below `batch` whose arena fits; 0: none. A larger batch never has a smaller arena, but for the
// workspaces that a library asks for; so the batch that is found is one that fits, if not always the very largest.
int64_t largest_batch(const MemoryNeed& need, uint64_t free, int64_t batch,
                      const std::function<uint64_t(int64_t batch)>& arena_of) {
  int64_t fits = 0;
  int64_t too_large = batch;
  while (fits + 1 < too_large) {
    const int64_t middle = fits + (too_large - fits) / 2;
    if (need.persistent + need.data + arena_of(middle) <= free) {
      fits = middle;
    } else {
      too_large = middle;
    }
  }
  return fits;
}

bool computes_on_host(const gpunn_device_info& device) { return std::string_view(device.memory_domain) == "host"; }

}  // namespace

gpunn_device_info with_host_limits(gpunn_device_info device) {
  if (!computes_on_host(device) || device.free_bytes == 0) return device;
  const uint64_t free = free_host_memory();
  if (free > 0) device.free_bytes = std::min(device.free_bytes, free);
  return device;
}

void require_memory_for_weights(const Experiment& experiment, const ParameterLayout& parameters,
                                const ParameterLayout& buffers, const gpunn_device_info& given) {
  const uint64_t all = parameters.type().bytes();
  const uint64_t trained = static_cast<uint64_t>(parameters.trained) * sizeof(float);
  uint64_t arrays = 1;  // the gradients
  for (const OptimizerState& state : optimizer_states(experiment.optimizer)) {
    arrays += static_cast<uint64_t>(state.arrays());
  }
  const uint64_t model = all + buffers.type().bytes();
  const uint64_t kept = model + (experiment.ema > 0 ? model : 0) + arrays * trained;
  int64_t largest = 0;
  for (const nn::Parameter& parameter : parameters.parameters) {
    largest = std::max(largest, element_count(parameter.shape));
  }
  const uint64_t made_on_host = all + static_cast<uint64_t>(largest) * sizeof(float);
  const gpunn_device_info device = with_host_limits(given);
  const std::string weights = experiment.file.string() + ": the model's " + std::to_string(parameters.count()) +
                              " weights, with their gradients and the optimizer's states,";
  const uint64_t on_device = kept + (computes_on_host(device) ? made_on_host : 0);
  if (device.free_bytes > 0 && on_device > device.free_bytes) {
    throw execution::OutOfMemory(weights + " need " + human_bytes(on_device) + ", and " +
                                 human_bytes(device.free_bytes) + " of the " + human_bytes(device.total_bytes) +
                                 " of '" + device.name + "' are free; make the model smaller");
  }
  if (!computes_on_host(device)) {
    require_host_memory(made_on_host, experiment.file.string() + ": to draw the model's first weights");
  }
}

void require_memory(const std::string& where, const MemoryNeed& need, const gpunn_device_info& device, int64_t batch,
                    const std::function<uint64_t(int64_t batch)>& arena_of) {
  if (device.free_bytes == 0 || need.total() <= device.free_bytes) return;
  std::string text = where + ": the training needs " + human_bytes(need.total()) + " of device memory (" +
                     human_bytes(need.arena) + " for activations, " + human_bytes(need.persistent) +
                     " for parameters and their states, " + human_bytes(need.data) + " for data), and " +
                     human_bytes(device.free_bytes) + " of the " + human_bytes(device.total_bytes) + " of '" +
                     device.name + "' are free";
  if (arena_of) {
    const int64_t fits = largest_batch(need, device.free_bytes, batch, arena_of);
    text += fits > 0 ? "; the largest data.batch_size that fits is " + std::to_string(fits) + ", " +
                           std::to_string(batch) + " was asked for"
                     : "; not even a data.batch_size of 1 fits: try data.residency=stream, a smaller model or another "
                       "device";
  }
  throw execution::OutOfMemory(text);
}

}  // namespace gpunn::training
