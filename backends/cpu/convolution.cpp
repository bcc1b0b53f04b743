#include "common/convolution.hpp"

#include <memory>

#include "add_op.hpp"
#include "convolution_filter.hpp"
#include "convolution_gather.hpp"
#include "kernels.hpp"
#include "parallel.hpp"

namespace gpunn::cpu {
namespace {

using plugin::KernelFactory;
using plugin::Stream;
using plugin::Support;

constexpr double kLargestWorkspace = 64.0 * 1024 * 1024 * 1024;

template <class Algorithm>
uint64_t checked_workspace(const Algorithm& algorithm) {
  const double bytes = algorithm.workspace_floats() * sizeof(float);
  require(bytes < kLargestWorkspace, "the convolution would need more than 64 GiB of workspace");
  return static_cast<uint64_t>(bytes);
}

struct GatherPlan {
  std::shared_ptr<const ConvolutionGather> algorithm;  // shared, since a plan is copied into its kernel
  bool bias;
  bool relu;
  uint64_t workspace_bytes;
};

GatherPlan make_gather(const ConvolutionShape& shape, ConvolutionGather::Direction direction, int threads) {
  auto algorithm = std::make_shared<const ConvolutionGather>(shape, direction, threads);
  const uint64_t bytes = checked_workspace(*algorithm);
  return {.algorithm = std::move(algorithm), .bias = false, .relu = false, .workspace_bytes = bytes};
}

GatherPlan plan_convolution(const OpDesc& desc, int threads) {
  return make_gather(convolution_of(desc), ConvolutionGather::Direction::forward, threads);
}

GatherPlan plan_bias_activation(const OpDesc& desc, int threads) {
  const auto [shape, relu] = convolution_bias_activation_of(desc);
  GatherPlan plan = make_gather(shape, ConvolutionGather::Direction::forward, threads);
  plan.bias = true;
  plan.relu = relu;
  return plan;
}

GatherPlan plan_backward_data(const OpDesc& desc, int threads) {
  return make_gather(convolution_backward_data_of(desc), ConvolutionGather::Direction::backward, threads);
}

void run_gather(const GatherPlan& plan, const OpArgs& args) {
  plan.algorithm->run(args.in<float>(0), args.in<float>(1), plan.bias ? args.in<float>(2) : nullptr, plan.relu,
                      args.out<float>(0), args.workspace<float>());
}

struct FilterPlan {
  std::shared_ptr<const ConvolutionFilter> algorithm;
  uint64_t workspace_bytes;
};

FilterPlan plan_backward_filter(const OpDesc& desc, int threads) {
  auto algorithm = std::make_shared<ConvolutionFilter>(convolution_backward_filter_of(desc), threads);
  const uint64_t bytes = checked_workspace(*algorithm);
  algorithm->prepare();
  return {.algorithm = std::move(algorithm), .workspace_bytes = bytes};
}

void run_filter(const FilterPlan& plan, const OpArgs& args) {
  plan.algorithm->run(args.in<float>(0), args.in<float>(1), args.out<float>(0), args.workspace<float>());
}

// As add_op, with the number of threads that query and create agree on, since workspace is by thread.
template <class Plan>
void add_threaded_op(plugin::Device& device, int32_t op, Plan (*plan)(const OpDesc&, int),
                     void (*run)(const Plan&, const OpArgs&)) {
  const int threads = thread_count();
  KernelFactory factory;
  factory.query = [plan, threads](const OpDesc& desc) {
    try {
      return Support::yes(plan(desc, threads).workspace_bytes);
    } catch (const Refusal& refusal) {
      return Support::no(refusal.what());
    }
  };
  factory.create = [plan, run, threads](const OpDesc& desc) {
    return plugin::make_kernel([made = plan(desc, threads), run](Stream&, const OpArgs& args) { run(made, args); });
  };
  device.add(op, std::move(factory));
}

}  // namespace

void add_convolution_kernels(plugin::Device& device) {
  add_threaded_op(device, GPUNN_OP_CONV2D, plan_convolution, run_gather);
  add_threaded_op(device, GPUNN_OP_CONV2D_BIAS_ACTIVATION, plan_bias_activation, run_gather);
  add_threaded_op(device, GPUNN_OP_CONV2D_BACKWARD_DATA, plan_backward_data, run_gather);
  add_threaded_op(device, GPUNN_OP_CONV2D_BACKWARD_FILTER, plan_backward_filter, run_filter);
}

}  // namespace gpunn::cpu
