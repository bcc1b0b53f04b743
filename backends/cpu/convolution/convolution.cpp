#include "common/convolution.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "add_op.hpp"
#include "convolution/constant_filter.hpp"
#include "convolution/depthwise.hpp"
#include "convolution/dots.hpp"
#include "convolution/filter.hpp"
#include "convolution/gather.hpp"
#include "convolution/image_product.hpp"
#include "convolution/winograd.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

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

// Packed images. Kernels of channels-last images are faster where there are enough channels to fill vectors.
constexpr int kPackedScore = 2;
constexpr int kFewChannelsScore = 1;
constexpr int kProductScore = 3;
constexpr int kWinogradScore = 4;
constexpr int kDepthwiseScore = 4;
constexpr int64_t kManyChannels = 24;

struct GatherPlan {
  std::shared_ptr<const ConvolutionGather> algorithm;  // shared, since a plan is copied into its kernel
  uint64_t workspace_bytes = 0;
  int score = kPackedScore;
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
  int score = kPackedScore;
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

// Packed images of any convolution: the sum with the residual is a pass of its own, over the convolution in scratch.
struct ResidualForward {
  ConvolutionForward convolution;
  uint64_t sum_offset = 0;  // of the convolution's result in the workspace
  int64_t elements = 0;
  bool relu = false;
  uint64_t workspace_bytes = 0;
  int score = kPackedScore;
};

ResidualForward plan_residual(const OpDesc& desc, int threads) {
  constexpr uint64_t kAlignment = 64;
  ResidualForward plan;
  plan.convolution = plan_bias_activation(desc, threads);
  plan.relu = std::exchange(plan.convolution.relu, false);
  plan.elements = plugin::element_count(desc.output(0));
  plan.sum_offset = (plan.convolution.workspace_bytes + kAlignment - 1) / kAlignment * kAlignment;
  plan.workspace_bytes = plan.sum_offset + static_cast<uint64_t>(plan.elements) * sizeof(float);
  return plan;
}

void run_residual(const ResidualForward& plan, const OpArgs& args) {
  auto* const sums = reinterpret_cast<float*>(args.workspace<std::byte>() + plan.sum_offset);
  const auto run = [&](const auto& algorithm) {
    algorithm.run(args.in<float>(0), args.in<float>(1), args.in<float>(2), false, sums, args.workspace<float>());
  };
  plan.convolution.dots != nullptr ? run(*plan.convolution.dots) : run(*plan.convolution.gather.algorithm);
  const auto* residual = args.in<float>(3);
  auto* y = args.out<float>(0);
  parallel_ranges(plan.elements, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float sum = sums[i] + residual[i];
      y[i] = plan.relu && sum < 0 ? 0 : sum;
    }
  });
}

struct FilterPlan {
  std::shared_ptr<const ConvolutionFilter> algorithm;
  uint64_t workspace_bytes;
  int score = kPackedScore;
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

// How an op gives and takes its operands.
struct ImageOp {
  ConvolutionPass pass = ConvolutionPass::forward;
  bool bias = false;
  bool residual = false;
  bool relu = false;
  ConvolutionShape shape{};
};

ImageOp image_op_of(const OpDesc& desc) {
  switch (desc.op()) {
    case GPUNN_OP_CONV2D_BACKWARD_DATA:
      return {.pass = ConvolutionPass::backward_data, .shape = convolution_backward_data_of(desc)};
    case GPUNN_OP_CONV2D_BACKWARD_FILTER:
      return {.pass = ConvolutionPass::backward_filter, .shape = convolution_backward_filter_of(desc)};
    case GPUNN_OP_CONV2D_BIAS_ACTIVATION:
    case GPUNN_OP_CONV2D_BIAS_ADD_ACTIVATION: {
      const auto [shape, relu] = convolution_bias_activation_of(desc);
      const bool residual = desc.op() == GPUNN_OP_CONV2D_BIAS_ADD_ACTIVATION;
      return {.pass = ConvolutionPass::forward, .bias = true, .residual = residual, .relu = relu, .shape = shape};
    }
    default:
      return {.pass = ConvolutionPass::forward, .shape = convolution_of(desc)};
  }
}

// A kernel of channels-last images: Images serves forward and backward to the data, Filter backward to the filter.
template <class Images, class Filter>
struct ImagePlan {
  ImageOp op;
  std::shared_ptr<const Images> images;
  std::shared_ptr<const Filter> filter;
  std::shared_ptr<ConstantFilter> constant_filter;  // null: the filter is rearranged at each run
  int64_t elements = 0;                             // of the residual
  uint64_t workspace_bytes = 0;
  int score = 0;
};

template <class Images, class Filter>
ImagePlan<Images, Filter> plan_images(const OpDesc& desc, int threads, int score) {
  require(plugin::has_channels_last(desc), "this kernel takes channels-last images");
  ImagePlan<Images, Filter> plan;
  plan.op = image_op_of(desc);
  plan.score = score;
  const ConvolutionShape& shape = plan.op.shape;
  if (shape.groups * std::max(shape.group_inputs, shape.group_outputs) < kManyChannels) plan.score = kFewChannelsScore;
  if (plan.op.pass == ConvolutionPass::backward_filter) {
    plan.filter = std::make_shared<const Filter>(shape, threads);
    plan.workspace_bytes = checked_workspace(*plan.filter);
  } else {
    plan.images = std::make_shared<const Images>(shape, plan.op.pass, threads);
    plan.workspace_bytes = checked_workspace(*plan.images);
    plan.elements = plugin::element_count(desc.output(0));
    if constexpr (requires { plan.images->filter_layout(); }) {
      if (plan.op.pass == ConvolutionPass::forward && desc.is_constant(1)) {
        plan.constant_filter = std::make_shared<ConstantFilter>(
            plan.images->filter_layout(), static_cast<std::size_t>(plan.images->packed_floats()) * sizeof(float));
      }
    }
  }
  return plan;
}

using ProductPlan = ImagePlan<ImageProduct, ImageFilterProduct>;
using DepthwisePlan = ImagePlan<DepthwiseImages, DepthwiseFilter>;
using WinogradPlan = ImagePlan<WinogradProduct, WinogradFilter>;

ProductPlan plan_product(const OpDesc& desc, int threads) {
  return plan_images<ImageProduct, ImageFilterProduct>(desc, threads, kProductScore);
}

DepthwisePlan plan_depthwise(const OpDesc& desc, int threads) {
  const ImageOp op = image_op_of(desc);
  require(is_depthwise(op.shape), "this kernel is for depthwise convolutions");
  require(!op.residual, "this kernel adds no residual");
  return plan_images<DepthwiseImages, DepthwiseFilter>(desc, threads, kDepthwiseScore);
}

WinogradPlan plan_winograd(const OpDesc& desc, int threads) {
  const ImageOp op = image_op_of(desc);
  require(suits_winograd(op.shape, op.pass),
          "Winograd's convolution is for 3x3 filters at stride and dilation 1, and for "
          "enough channels and pixels");
  return plan_images<WinogradProduct, WinogradFilter>(desc, threads, kWinogradScore);
}

template <class Plan>
void run_images(const Plan& plan, const OpArgs& args) {
  const auto *first = args.in<float>(0), *second = args.in<float>(1);
  if (plan.filter != nullptr) {
    plan.filter->run(first, second, args.out<float>(0), args.workspace<float>());
    return;
  }
  const float* bias = plan.op.bias ? args.in<float>(2) : nullptr;
  auto* y = args.out<float>(0);
  auto* workspace = args.workspace<float>();
  if constexpr (requires { plan.images->packed_floats(); }) {
    if (plan.op.residual && args.in<float>(3) != y) {
      parallel_ranges(plan.elements, kGrain, [&](int64_t begin, int64_t end) {
        std::copy(args.in<float>(3) + begin, args.in<float>(3) + end, y + begin);
      });
    }
    float* scratch = workspace + plan.images->packed_floats();
    const auto pack = [&](void* to) { plan.images->pack_filter(second, static_cast<float*>(to), scratch); };
    const void* packed = workspace;
    if (plan.constant_filter != nullptr) {
      packed = plan.constant_filter->get(second, pack);
    } else {
      pack(workspace);
    }
    plan.images->run(first, static_cast<const float*>(packed),
                     {.bias = bias, .add = plan.op.residual, .relu = plan.op.relu}, y, scratch);
  } else {
    plan.images->run(first, second, bias, plan.op.relu, y, workspace);
  }
}

// With the number of threads that query and create agree on, since workspace is by thread.
template <class Plan>
void add_threaded_op(plugin::Device& device, int32_t op, Plan (*plan)(const OpDesc&, int),
                     void (*run)(const Plan&, const OpArgs&), std::string name, Layouts layouts = Layouts::packed) {
  const int threads = thread_count();
  serve(
      device, op, [plan, threads](const OpDesc& desc) { return plan(desc, threads); }, run, Dtypes::f32, layouts,
      std::move(name));
}

}  // namespace

void add_convolution_kernels(plugin::Device& device) {
  add_threaded_op(device, GPUNN_OP_CONV2D, plan_convolution, run_forward, "conv:lanes");
  add_threaded_op(device, GPUNN_OP_CONV2D_BIAS_ACTIVATION, plan_bias_activation, run_forward, "conv:lanes");
  add_threaded_op(device, GPUNN_OP_CONV2D_BACKWARD_DATA, plan_backward_data, run_gather, "conv:lanes");
  add_threaded_op(device, GPUNN_OP_CONV2D_BACKWARD_FILTER, plan_backward_filter, run_filter, "conv:lanes");
  add_threaded_op(device, GPUNN_OP_CONV2D_BIAS_ADD_ACTIVATION, plan_residual, run_residual, "conv:lanes");
  for (const int32_t op : {GPUNN_OP_CONV2D, GPUNN_OP_CONV2D_BIAS_ACTIVATION, GPUNN_OP_CONV2D_BIAS_ADD_ACTIVATION,
                           GPUNN_OP_CONV2D_BACKWARD_DATA, GPUNN_OP_CONV2D_BACKWARD_FILTER}) {
    add_threaded_op(device, op, plan_product, run_images<ProductPlan>, "conv:product", Layouts::channels_last_too);
    add_threaded_op(device, op, plan_depthwise, run_images<DepthwisePlan>, "conv:depthwise",
                    Layouts::channels_last_too);
    add_threaded_op(device, op, plan_winograd, run_images<WinogradPlan>, "conv:winograd", Layouts::channels_last_too);
  }
}

}  // namespace gpunn::cpu
