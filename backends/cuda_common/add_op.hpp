// Registers CUDA kernels for an op. A family of ops writes
//
//   void run_relu(const int64_t& n, cudaStream_t stream, const OpArgs& args);   // launches, nothing else
//   add_op(device, GPUNN_OP_RELU, "relu", relu_size, run_relu);
//
// relu_size(desc), of backends/common/, returns the numbers that the kernel needs, or throws Refusal. desc already fits
// the op's row in op_list.inc. The result may have a member workspace_bytes: the kernel then gets that much scratch
// memory.
#pragma once

#include <gpunn/kernel.hpp>

#include <type_traits>
#include <utility>

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include "common/requirements.hpp"
#include "cuda_common/stream.hpp"

namespace gpunn::cuda {

using namespace backends;

// A range in NVIDIA's profilers. It costs nothing if no profiler is attached.
class ProfilerRange {
 public:
  explicit ProfilerRange(const char* name) { nvtxRangePushA(name); }
  ~ProfilerRange() { nvtxRangePop(); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

// Returns the result of `answer`. Turns a Refusal into a "no" with its reason.
template <class Answer>
plugin::Support support_of(const Answer& answer) {
  try {
    return answer();
  } catch (const Refusal& refusal) {
    return plugin::Support::no(refusal.what());
  }
}

// Serves `op`: calls plan(desc) at query and creation, and run(plan, stream, args) at each enqueue. Profilers show
// `name`.
template <class Plan, class Run>
void add_op(plugin::Device& device, int32_t op, const char* name, Plan (*plan)(const OpDesc&), Run run,
            Dtypes dtypes = Dtypes::f32, Layouts layouts = Layouts::packed) {
  plugin::KernelFactory factory;
  factory.half = dtypes == Dtypes::floating;
  factory.channels_last = layouts == Layouts::channels_last_too;
  factory.query = [plan](const OpDesc& desc) {
    [[maybe_unused]] const Plan made = plan(desc);
    uint64_t workspace_bytes = 0;
    if constexpr (requires { made.workspace_bytes; }) workspace_bytes = made.workspace_bytes;
    return plugin::Support::yes(workspace_bytes);
  };
  factory.create = [plan, run, name](const OpDesc& desc) {
    return plugin::make_kernel([made = plan(desc), run, name](plugin::Stream& stream, const OpArgs& args) {
      const ProfilerRange range(name);
      run(made, native(stream), args);
    });
  };
  device.add(op, std::move(factory));
}

}  // namespace gpunn::cuda
