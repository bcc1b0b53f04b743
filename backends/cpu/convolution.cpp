#include "common/convolution.hpp"

#include <memory>

#include "add_op.hpp"
#include "convolution_dots.hpp"
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
  uint64_t workspace_bytes = 0;
};

GatherPlan make_gather(const ConvolutionShape& shape, ConvolutionGather::Direction direction, int threads) {
  auto algorithm = std::make_shared<const ConvolutionGather>(shape, direction, threads);
  const uint64_t bytes = checked_workspace(*algorithm);
  return {.algorithm = std::move(algorithm), .workspace_bytes = bytes};
}

// One of the two ways forward.
struct ConvolutionForward {
  std::shared_ptr<const ConvolutionDots> dots;
  GatherPlan gather;
  bool bias = false;
  bool relu = false;
  uint64_t workspace_bytes = 0;
};

ConvolutionForward make_forward(const ConvolutionShape& shape, int threads) {
  ConvolutionForward plan;
  if (ConvolutionDots::suits(shape)) {
    plan.dots = std::make_shared<const ConvolutionDots>(shape, threads);
    plan.workspace_bytes = checked_workspace(*plan.dots);
  } else {
    plan.gather = make_gather(shape, ConvolutionGather::Direction::forward, threads);
    plan.workspace_bytes = plan.gather.workspace_bytes;
  }
  return plan;
}

ConvolutionForward plan_convolution(const OpDesc& desc, int threads) {
  return make_forward(convolution_of(desc), threads);
}

ConvolutionForward plan_bias_activation(const OpDesc& desc, int threads) {
  const auto [shape, relu] = convolution_bias_activation_of(desc);
  ConvolutionForward plan = make_forward(shape, threads);
  plan.bias = true;
  plan.relu = relu;
  return plan;
}

void run_forward(const ConvolutionForward& plan, const OpArgs& args) {
  const float* bias = plan.bias ? args.in<float>(2) : nullptr;
  const auto run = [&](const auto& algorithm) {
    algorithm.run(args.in<float>(0), args.in<float>(1), bias, plan.relu, args.out<float>(0), args.workspace<float>());
  };
  plan.dots != nullptr ? run(*plan.dots) : run(*plan.gather.algorithm);
}

GatherPlan plan_backward_data(const OpDesc& desc, int threads) {
  return make_gather(convolution_backward_data_of(desc), ConvolutionGather::Direction::backward, threads);
}

void run_gather(const GatherPlan& plan, const OpArgs& args) {
  plan.algorithm->run(args.in<float>(0), args.in<float>(1), nullptr, false, args.out<float>(0),
                      args.workspace<float>());
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

// With the number of threads that query and create agree on, since workspace is by thread.
template <class Plan>
void add_threaded_op(plugin::Device& device, int32_t op, Plan (*plan)(const OpDesc&, int),
                     void (*run)(const Plan&, const OpArgs&)) {
  const int threads = thread_count();
  serve(
      device, op, [plan, threads](const OpDesc& desc) { return plan(desc, threads); }, run);
}

}  // namespace

void add_convolution_kernels(plugin::Device& device) {
  add_threaded_op(device, GPUNN_OP_CONV2D, plan_convolution, run_forward);
  add_threaded_op(device, GPUNN_OP_CONV2D_BIAS_ACTIVATION, plan_bias_activation, run_forward);
  add_threaded_op(device, GPUNN_OP_CONV2D_BACKWARD_DATA, plan_backward_data, run_gather);
  add_threaded_op(device, GPUNN_OP_CONV2D_BACKWARD_FILTER, plan_backward_filter, run_filter);
}

}  // namespace gpunn::cpu
