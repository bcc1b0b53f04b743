#include "cuda_common/autotune.hpp"

#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>

#include "cuda_common/check.hpp"
#include "cuda_common/stream.hpp"
#include "cuda_common/trial.hpp"
#include "cuda_common/trial_timer.hpp"
#include "cuda_common/workspace.hpp"

namespace gpunn::cuda {
namespace {

using plugin::OpArgs;
using plugin::OpDesc;

constexpr double kPatienceSeconds = 4.0;  // for all candidates of one op

// The op's tensors in scratch memory, the inputs random, and a stream to run candidates on.
class Trial {
 public:
  Trial(TunedDevice& device, const OpDesc& desc, const TuningTask& task, uint64_t workspace_bytes)
      : scratch_(size_of(desc, workspace_bytes)), stream_(device.index()), timer_(stream_, device.index()) {
    for (std::size_t i = 0; i < desc.inputs(); ++i) inputs_.push_back(placed(desc.input(i)));
    for (std::size_t i = 0; i < desc.outputs(); ++i) outputs_.push_back(placed(desc.output(i)));
    reference_ = scratch_.take(bytes_of(desc.output(0)));
    differences_ = static_cast<unsigned*>(scratch_.take(sizeof(unsigned)));
    for (gpunn_tensor& tensor : inputs_) input_pointers_.push_back(&tensor);
    for (gpunn_tensor& tensor : outputs_) output_pointers_.push_back(&tensor);
    raw_.struct_size = sizeof(raw_);
    raw_.n_inputs = static_cast<uint32_t>(inputs_.size());
    raw_.n_outputs = static_cast<uint32_t>(outputs_.size());
    raw_.inputs = input_pointers_.data();
    raw_.outputs = output_pointers_.data();
    raw_.workspace = scratch_.take(workspace_bytes);
    raw_.workspace_bytes = workspace_bytes;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const int64_t n = plugin::element_count(inputs_[i]);
      fill_uniform(inputs_[i].data, inputs_[i].dtype, n, static_cast<uint32_t>(i + 1), stream_.handle());
      if (static_cast<int>(i) != task.nan_input) continue;
      // Bytes of ones are a NaN.
      const uint64_t size = ops::dtype_bytes(inputs_[i].dtype);
      stream_.fill(static_cast<char*>(inputs_[i].data) + (static_cast<uint64_t>(n) - 1) * size, 0xFF, size);
    }
    tolerance_ = static_cast<float>(0.02 * std::sqrt(static_cast<double>(task.terms) + 1.0));
  }

  // Throws where the candidate fails. Loads the candidate's kernels, too, which would otherwise be part of the times.
  void run(Algorithm& algorithm) {
    algorithm.run(OpArgs(raw_), stream_.handle());
    stream_.synchronize();
  }

  void keep_as_reference() {
    stream_.copy(reference_, outputs_[0].data, bytes_of(outputs_[0]), GPUNN_DEVICE_TO_DEVICE);
  }

  // Of the last run, with the reference.
  bool agrees() {
    unsigned count = 0;
    stream_.fill(differences_, 0, sizeof(count));
    count_differences(reference_, outputs_[0].data, outputs_[0].dtype, plugin::element_count(outputs_[0]), tolerance_,
                      differences_, stream_.handle());
    stream_.copy(&count, differences_, sizeof(count), GPUNN_DEVICE_TO_HOST);
    stream_.synchronize();
    return count == 0;
  }

  void spoil_output() { stream_.fill(outputs_[0].data, 0xC3, bytes_of(outputs_[0])); }

  double milliseconds(Algorithm& algorithm) {
    return timer_.milliseconds([&] { algorithm.run(OpArgs(raw_), stream_.handle()); });
  }

 private:
  static uint64_t size_of(const OpDesc& desc, uint64_t workspace_bytes) {
    uint64_t bytes = workspace_aligned(workspace_bytes) + workspace_aligned(sizeof(unsigned)) +
                     workspace_aligned(bytes_of(desc.output(0)));
    for (std::size_t i = 0; i < desc.inputs(); ++i) bytes += workspace_aligned(bytes_of(desc.input(i)));
    for (std::size_t i = 0; i < desc.outputs(); ++i) bytes += workspace_aligned(bytes_of(desc.output(i)));
    return bytes;
  }

  gpunn_tensor placed(gpunn_tensor tensor) {
    tensor.data = scratch_.take(bytes_of(tensor));
    return tensor;
  }

  Scratch scratch_;
  CudaStream stream_;
  TrialTimer timer_;
  std::vector<gpunn_tensor> inputs_, outputs_;
  std::vector<const gpunn_tensor*> input_pointers_, output_pointers_;
  gpunn_op_args raw_{};
  void* reference_ = nullptr;  // output 0 of the trusted algorithm
  unsigned* differences_ = nullptr;
  float tolerance_ = 0.0F;
};

// Runs the first trusted candidate that works, for the others to be compared with; throws where none does.
void make_reference(TunedDevice& device, Trial& trial, const TuningTask& task, Candidates& candidates) {
  std::string problems;
  for (std::size_t i = candidates.first_trusted; i < candidates.algorithms.size(); ++i) {
    Algorithm& algorithm = *candidates.algorithms[i];
    try {
      trial.run(algorithm);
      trial.keep_as_reference();
      return;
    } catch (const plugin::Failure& failure) {
      if (failure.status() == GPUNN_DEVICE_LOST) throw;
      device.log(GPUNN_LOG_DEBUG, task.key + ": " + algorithm.name() + " does not run: " + failure.what());
      problems += "; " + algorithm.name() + ": " + failure.what();
    }
  }
  throw plugin::Failure(GPUNN_UNSUPPORTED, "no algorithm works for " + task.key + problems);
}

// Whether the candidate runs and agrees with the reference; if not, the log says why.
bool is_right(TunedDevice& device, Trial& trial, const TuningTask& task, Algorithm& algorithm) {
  try {
    trial.spoil_output();
    trial.run(algorithm);
    if (trial.agrees()) return true;
    device.log(GPUNN_LOG_DEBUG, task.key + ": " + algorithm.name() + " gives other results than the plain algorithm");
  } catch (const plugin::Failure& failure) {
    if (failure.status() == GPUNN_DEVICE_LOST) throw;
    device.log(GPUNN_LOG_DEBUG, task.key + ": " + algorithm.name() + " does not run: " + failure.what());
  }
  return false;
}

std::size_t fastest(TunedDevice& device, Trial& trial, const TuningTask& task, const Candidates& candidates) {
  const auto begin = std::chrono::steady_clock::now();
  double best = std::numeric_limits<double>::infinity();
  std::size_t chosen = candidates.algorithms.size();
  for (std::size_t i = 0; i < candidates.algorithms.size(); ++i) {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    if (spent.count() > kPatienceSeconds && chosen < candidates.algorithms.size()) break;
    Algorithm& algorithm = *candidates.algorithms[i];
    if (!is_right(device, trial, task, algorithm)) continue;
    try {
      const double time = trial.milliseconds(algorithm);
      device.log(GPUNN_LOG_DEBUG,
                 task.key + ": " + algorithm.name() + " takes " + std::to_string(time * 1e3) + " microseconds");
      if (time >= best) continue;
      best = time;
      chosen = i;
    } catch (const plugin::Failure& failure) {
      if (failure.status() == GPUNN_DEVICE_LOST) throw;
      device.log(GPUNN_LOG_DEBUG, task.key + ": " + algorithm.name() + " can't be captured: " + failure.what());
    }
  }
  return chosen;
}

std::size_t first_right(TunedDevice& device, Trial& trial, const TuningTask& task, const Candidates& candidates) {
  std::size_t i = 0;
  while (i < candidates.algorithms.size() && !is_right(device, trial, task, *candidates.algorithms[i])) ++i;
  return i;
}

AlgorithmPtr restored(TunedDevice& device, const TuningTask& task) {
  const std::optional<std::string> name = device.tuning_cache().find(task.key);
  if (!name) return nullptr;
  try {
    return task.restore(*name);
  } catch (const std::exception& problem) {
    device.log(GPUNN_LOG_DEBUG, task.key + ": the algorithm of the tuning cache can't be used: " + problem.what());
    return nullptr;
  }
}

}  // namespace

AlgorithmPtr choose_algorithm(TunedDevice& device, const OpDesc& desc, const TuningTask& task) {
  check(cudaSetDevice(device.index()), "choosing the device");
  if (!desc.require_deterministic()) {
    if (AlgorithmPtr known = restored(device, task)) return known;
  }
  Candidates candidates = task.candidates();
  std::vector<AlgorithmPtr>& algorithms = candidates.algorithms;
  if (candidates.first_trusted >= algorithms.size()) {
    throw plugin::Failure(GPUNN_UNSUPPORTED, "there is no algorithm for " + task.key);
  }
  uint64_t workspace_bytes = 0;
  for (const AlgorithmPtr& algorithm : algorithms) {
    workspace_bytes = std::max(workspace_bytes, algorithm->workspace_bytes());
  }
  std::unique_ptr<Trial> trial;
  try {
    trial = std::make_unique<Trial>(device, desc, task, workspace_bytes);
  } catch (const plugin::Failure& failure) {
    if (failure.status() != GPUNN_OUT_OF_MEMORY) throw;
    device.log(GPUNN_LOG_WARNING, task.key + ": not tuned, there is no memory to try algorithms on");
    return std::move(algorithms[candidates.first_trusted]);
  }
  make_reference(device, *trial, task, candidates);
  const std::size_t chosen = desc.require_deterministic() ? first_right(device, *trial, task, candidates)
                                                          : fastest(device, *trial, task, candidates);
  if (chosen == algorithms.size()) {
    throw plugin::Failure(GPUNN_UNSUPPORTED, "no algorithm works for " + task.key + ": none can be captured");
  }
  if (!desc.require_deterministic()) device.tuning_cache().store(task.key, algorithms[chosen]->name());
  return std::move(algorithms[chosen]);
}

const char* precision_name(int32_t precision) {
  switch (precision) {
    case GPUNN_PRECISION_TF32:
      return "tf32";
    case GPUNN_PRECISION_BF16:
      return "bf16";
    default:
      return "fp32";
  }
}

}  // namespace gpunn::cuda
