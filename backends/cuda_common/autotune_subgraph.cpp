#include "cuda_common/autotune_subgraph.hpp"

#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "cuda_common/check.hpp"
#include "cuda_common/trial.hpp"
#include "cuda_common/trial_timer.hpp"
#include "cuda_common/workspace.hpp"

namespace gpunn::cuda {
namespace {

using plugin::ProgramDesc;
using plugin::Subgraph;

// The values of the ops [first, first + count) in scratch memory, all random, and a stream to run subgraphs on.
class SubgraphTrial {
 public:
  SubgraphTrial(TunedDevice& device, const ProgramDesc& desc, const std::set<int32_t>& ids, uint64_t workspace_bytes)
      : scratch_(room_of_all(desc, ids) + workspace_aligned(workspace_bytes)),
        stream_(device.index()),
        timer_(stream_, device.index()),
        tensors_(ids.size()),
        values_(desc.values()) {
    std::size_t placed = 0;
    for (const int32_t id : ids) {
      gpunn_tensor& tensor = tensors_[placed++];
      tensor = desc.tensor(id);
      tensor.data = scratch_.take(bytes_of(tensor));
      values_[static_cast<std::size_t>(id)] = &tensor;
      if (tensor.dtype == GPUNN_F32 || ops::is_half(tensor.dtype))
        fill_uniform(tensor.data, tensor.dtype, plugin::element_count(tensor), static_cast<uint32_t>(placed),
                     stream_.handle());
      else
        stream_.fill(tensor.data, 0x7F, bytes_of(tensor));  // a count of rows: all
    }
    raw_.struct_size = sizeof(raw_);
    raw_.n_values = static_cast<uint32_t>(values_.size());
    raw_.values = values_.data();
    raw_.workspace = scratch_.take(workspace_bytes);
    raw_.workspace_bytes = workspace_bytes;
  }

  double milliseconds(Subgraph& subgraph) {
    const plugin::SubgraphArgs args(raw_);
    subgraph.enqueue(stream_, args);  // loads its kernels
    stream_.synchronize();
    return timer_.milliseconds([&] { subgraph.enqueue(stream_, args); });
  }

 private:
  static uint64_t room_of_all(const ProgramDesc& desc, const std::set<int32_t>& ids) {
    uint64_t bytes = 0;
    for (const int32_t id : ids) bytes += workspace_aligned(bytes_of(desc.tensor(id)));
    return bytes;
  }

  Scratch scratch_;
  CudaStream stream_;
  TrialTimer timer_;
  std::vector<gpunn_tensor> tensors_;
  std::vector<const gpunn_tensor*> values_;
  gpunn_subgraph_args raw_{};
};

std::set<int32_t> values_of(const ProgramDesc& desc, std::size_t first, std::size_t count) {
  std::set<int32_t> ids;
  for (std::size_t op = first; op < first + count; ++op) {
    for (const int32_t id : desc.inputs(op)) ids.insert(id);
    for (const int32_t id : desc.outputs(op)) ids.insert(id);
  }
  return ids;
}

std::optional<std::size_t> cached(TunedDevice& device, const SubgraphTask& task) {
  const std::optional<std::string> name = device.tuning_cache().find(task.key);
  const auto found = std::ranges::find(task.candidates, name.value_or(""), &SubgraphCandidate::name);
  if (found == task.candidates.end()) return std::nullopt;
  return static_cast<std::size_t>(found - task.candidates.begin());
}

std::size_t fastest(TunedDevice& device, SubgraphTrial& trial, const SubgraphTask& task) {
  double best = std::numeric_limits<double>::infinity();
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < task.candidates.size(); ++i) {
    const SubgraphCandidate& candidate = task.candidates[i];
    try {
      const double time = trial.milliseconds(*candidate.make());
      device.log(GPUNN_LOG_DEBUG,
                 task.key + ": " + candidate.name + " takes " + std::to_string(time * 1e3) + " microseconds");
      if (time >= best) continue;
      best = time;
      chosen = i;
    } catch (const plugin::Failure& failure) {
      if (failure.status() == GPUNN_DEVICE_LOST) throw;
      device.log(GPUNN_LOG_DEBUG, task.key + ": " + candidate.name + " does not run: " + failure.what());
    }
  }
  return chosen;
}

}  // namespace

std::unique_ptr<Subgraph> choose_subgraph(TunedDevice& device, const ProgramDesc& desc, std::size_t first,
                                          std::size_t count, const SubgraphTask& task) {
  check(cudaSetDevice(device.index()), "choosing the device");
  if (desc.require_deterministic()) return task.candidates.front().make();
  if (const std::optional<std::size_t> known = cached(device, task)) return task.candidates[*known].make();
  std::optional<SubgraphTrial> trial;
  try {
    trial.emplace(device, desc, values_of(desc, first, count), task.workspace_bytes);
  } catch (const plugin::Failure& failure) {
    if (failure.status() != GPUNN_OUT_OF_MEMORY) throw;
    device.log(GPUNN_LOG_WARNING, task.key + ": not tuned, there is no memory to try ways on");
    return task.candidates.front().make();
  }
  const SubgraphCandidate& chosen = task.candidates[fastest(device, *trial, task)];
  device.tuning_cache().store(task.key, chosen.name);
  return chosen.make();
}

}  // namespace gpunn::cuda
