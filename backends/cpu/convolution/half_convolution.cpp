// CONV2D and its backwards of bf16 images, on AMX or AVX512-BF16, and depthwise ones on any machine. Packed images are
// turned around a kernel of channels-last ones, so that a network of bf16 needs no conversion to f32.
#include <gpunn/kernel.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "add_op.hpp"
#include "common/convolution.hpp"
#include "convolution/depthwise.hpp"
#include "half/half_filter_product.hpp"
#include "half/half_image_product.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr double kLargestHalfWorkspace = 64.0 * 1024 * 1024 * 1024;
constexpr int kTurnedScore = 1;
constexpr int kHalfScore = 3;
constexpr int64_t kChannelsAtOnce = 64;
// Fewer channels would leave most of a tile empty: the kernels of f32 are faster, with conversions around them.
constexpr int64_t kFewestHalfChannels = 8;

// A tensor [images, channels, pixels] with its channels last, or back.
struct Turn {
  int64_t images = 0;
  int64_t channels = 0;
  int64_t pixels = 0;

  int64_t size() const { return images * channels * pixels; }
  void run(const BFloat16* x, BFloat16* y, bool back) const {
    const int64_t parts = divide_up(channels, kChannelsAtOnce);
    parallel_for(images * parts, [&](int64_t task) {
      const int64_t image = task / parts * channels * pixels;
      const int64_t first = task % parts * kChannelsAtOnce;
      for (int64_t p = 0; p < pixels; ++p) {
        for (int64_t c = first; c < std::min(channels, first + kChannelsAtOnce); ++c) {
          const int64_t packed = image + c * pixels + p;
          const int64_t turned = image + p * channels + c;
          y[back ? packed : turned] = x[back ? turned : packed];
        }
      }
    });
  }
};

Turn turn_of(const gpunn_tensor& tensor) {
  return {.images = tensor.dim[0], .channels = tensor.dim[1], .pixels = tensor.dim[2] * tensor.dim[3]};
}

struct HalfConvolutionPlan {
  std::shared_ptr<const HalfImageProduct> images;
  std::shared_ptr<const HalfFilterProduct> filter;
  std::shared_ptr<const DepthwiseImages> depthwise_images;
  std::shared_ptr<const DepthwiseFilter> depthwise_filter;
  bool bias = false;
  bool relu = false;
  bool turned = false;
  Turn turns[3];  // of both inputs and the output
  uint64_t own_workspace = 0;
  uint64_t workspace_bytes = 0;
  int score = kHalfScore;
};

template <class Algorithm>
uint64_t half_workspace(const Algorithm& algorithm) {
  const double bytes = algorithm.workspace_bytes();
  require(bytes < kLargestHalfWorkspace, "the convolution would need more than 64 GiB of workspace");
  return (static_cast<uint64_t>(bytes) + 63) / 64 * 64;
}

void require_full_tiles(const ConvolutionShape& shape) {
  require(std::max(shape.group_inputs, shape.group_outputs) >= kFewestHalfChannels &&
              (shape.groups == 1 || std::min(shape.group_inputs, shape.group_outputs) >= kFewestHalfChannels),
          "few channels leave the tiles empty");
}

template <class Algorithm>
uint64_t depthwise_workspace(const Algorithm& algorithm) {
  const double bytes = algorithm.workspace_floats() * sizeof(float);
  require(bytes < kLargestHalfWorkspace, "the convolution would need more than 64 GiB of workspace");
  return (static_cast<uint64_t>(bytes) + 63) / 64 * 64;
}

// By `kernels`; depthwise where there are none.
HalfConvolutionPlan plan_half(const OpDesc& desc, int threads, const HalfTileKernels* kernels) {
  require(desc.input(0).dtype == GPUNN_BF16, "this kernel is for bf16 tensors");
  HalfConvolutionPlan plan;
  const auto use_images = [&](const ConvolutionShape& shape, ConvolutionPass pass) {
    if (kernels == nullptr) {
      require(is_depthwise(shape), "this kernel is for depthwise convolutions");
      plan.depthwise_images = std::make_shared<const DepthwiseImages>(shape, pass, threads);
      plan.own_workspace = depthwise_workspace(*plan.depthwise_images);
      return;
    }
    require_full_tiles(shape);
    plan.images = std::make_shared<const HalfImageProduct>(shape, pass, threads, *kernels);
    plan.own_workspace = half_workspace(*plan.images);
  };
  const auto use_filter = [&](const ConvolutionShape& shape) {
    if (kernels == nullptr) {
      require(is_depthwise(shape), "this kernel is for depthwise convolutions");
      plan.depthwise_filter = std::make_shared<const DepthwiseFilter>(shape, threads);
      plan.own_workspace = depthwise_workspace(*plan.depthwise_filter);
      return;
    }
    require_full_tiles(shape);
    plan.filter = std::make_shared<const HalfFilterProduct>(shape, threads, *kernels);
    plan.own_workspace = half_workspace(*plan.filter);
  };
  switch (desc.op()) {
    case GPUNN_OP_CONV2D_BACKWARD_DATA:
      use_images(convolution_backward_data_of(desc), ConvolutionPass::backward_data);
      break;
    case GPUNN_OP_CONV2D_BACKWARD_FILTER:
      use_filter(convolution_backward_filter_of(desc));
      break;
    case GPUNN_OP_CONV2D_BIAS_ACTIVATION: {
      const auto [shape, relu] = backends::convolution_bias_activation_of(desc);
      use_images(shape, ConvolutionPass::forward);
      plan.bias = true;
      plan.relu = relu;
      break;
    }
    default:
      use_images(convolution_of(desc), ConvolutionPass::forward);
  }
  plan.workspace_bytes = plan.own_workspace;
  plan.turned = !plugin::has_channels_last(desc);
  plan.turns[0] = turn_of(desc.input(0));
  plan.turns[1] = turn_of(desc.input(1));
  plan.turns[2] = turn_of(desc.output(0));
  if (plan.turned) {
    plan.score = kTurnedScore;
    for (const Turn& turn : plan.turns) {
      plan.workspace_bytes += static_cast<uint64_t>(round_up(turn.size(), 32)) * sizeof(BFloat16);
    }
  }
  return plan;
}

void run_half(const HalfConvolutionPlan& plan, const OpArgs& args) {
  const BFloat16* x[2] = {args.in<BFloat16>(0), args.in<BFloat16>(1)};
  BFloat16* y = args.out<BFloat16>(0);
  if (plan.turned) {
    auto* to = reinterpret_cast<BFloat16*>(args.workspace<char>() + plan.own_workspace);
    for (int i = 0; i < 2; ++i) {
      plan.turns[i].run(x[i], to, false);
      x[i] = to;
      to += round_up(plan.turns[i].size(), 32);
    }
    y = to;
  }
  auto* workspace = args.workspace<char>();
  const float* bias = plan.bias ? args.in<float>(2) : nullptr;
  if (plan.filter != nullptr) plan.filter->run(x[0], x[1], y, workspace);
  if (plan.images != nullptr) plan.images->run(x[0], x[1], bias, plan.relu, y, workspace);
  auto* floats = reinterpret_cast<float*>(workspace);
  if (plan.depthwise_filter != nullptr) plan.depthwise_filter->run(x[0], x[1], y, floats);
  if (plan.depthwise_images != nullptr) plan.depthwise_images->run(x[0], x[1], bias, plan.relu, y, floats);
  if (plan.turned) plan.turns[2].run(y, args.out<BFloat16>(0), true);
}

}  // namespace

void add_half_convolution_kernels(plugin::Device& device) {
  const int threads = thread_count();
  std::vector<const HalfTileKernels*> kinds = usable_half_tiles();
  kinds.insert(kinds.begin(), nullptr);
  for (const HalfTileKernels* kernels : kinds) {
    const std::string name = kernels == nullptr ? "depthwise_bf16" : kernels->name;
    const bool best = kernels == kinds.back();
    for (const int32_t op : {GPUNN_OP_CONV2D, GPUNN_OP_CONV2D_BIAS_ACTIVATION, GPUNN_OP_CONV2D_BACKWARD_DATA,
                             GPUNN_OP_CONV2D_BACKWARD_FILTER}) {
      serve(
          device, op,
          [threads, kernels, best](const OpDesc& desc) {
            HalfConvolutionPlan plan = plan_half(desc, threads, kernels);
            if (best) ++plan.score;
            return plan;
          },
          run_half, Dtypes::floating, Layouts::channels_last_too, "conv:" + name);
    }
  }
}

}  // namespace gpunn::cpu
