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

constexpr int64_t kLargestExtent = 1 << 20;
constexpr double kLargestWorkspace = 64.0 * 1024 * 1024 * 1024;

// Where x, w and y (or their gradients) stand in an op's description.
struct Roles {
  const gpunn_tensor& x;
  const gpunn_tensor& w;
  const gpunn_tensor& y;
};

void require_image_tensor(const gpunn_tensor& tensor, const char* name) {
  require_packed(tensor, GPUNN_F32, name);
  if (tensor.rank != 4) throw Refusal(std::string(name) + " must have rank 4");
  for (int i = 0; i < 4; ++i) {
    if (tensor.dim[i] < 1) throw Refusal(std::string(name) + " is empty");
    if (i > 1 && tensor.dim[i] > kLargestExtent) {
      throw Refusal(std::string(name) + " has more than " + std::to_string(kLargestExtent) + " rows or columns");
    }
  }
}

ConvolutionAxis checked_axis(const Roles& roles, const gpunn_conv2d_attrs& attrs, int axis) {
  const ConvolutionAxis made{.inputs = roles.x.dim[2 + axis],
                             .outputs = roles.y.dim[2 + axis],
                             .taps = roles.w.dim[2 + axis],
                             .stride = attrs.stride[axis],
                             .pad = attrs.pad[axis],
                             .dilation = attrs.dilation[axis]};
  require(made.stride >= 1 && made.dilation >= 1 && made.pad >= 0,
          "stride and dilation must be positive, pad not negative");
  require(made.stride <= kLargestExtent && made.dilation <= kLargestExtent && made.pad <= kLargestExtent,
          "stride, dilation or pad is out of range");
  const int64_t room = made.inputs + 2 * made.pad - made.dilation * (made.taps - 1) - 1;
  require(room >= 0, "the filter is larger than the padded image");
  require(room / made.stride + 1 == made.outputs, "the sizes of x, w and y don't fit stride, pad and dilation");
  return made;
}

ConvolutionShape checked_shape(const Roles& roles, const gpunn_conv2d_attrs& attrs) {
  require_image_tensor(roles.x, "x");
  require_image_tensor(roles.w, "w");
  require_image_tensor(roles.y, "y");
  const int64_t inputs = roles.x.dim[1];
  const int64_t outputs = roles.w.dim[0];
  require(attrs.groups >= 1 && inputs % attrs.groups == 0 && outputs % attrs.groups == 0,
          "groups must divide the channels of x and y");
  require(roles.w.dim[1] == inputs / attrs.groups, "w has another number of input channels than x");
  require(roles.y.dim[0] == roles.x.dim[0], "x and y have different batches");
  require(roles.y.dim[1] == outputs, "y has another number of channels than w");
  return {.batch = roles.x.dim[0],
          .groups = attrs.groups,
          .group_inputs = inputs / attrs.groups,
          .group_outputs = outputs / attrs.groups,
          .rows = checked_axis(roles, attrs, 0),
          .columns = checked_axis(roles, attrs, 1)};
}

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

GatherPlan plan_forward(const OpDesc& desc, int threads) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_conv2d_attrs>(desc);
  return make_gather(checked_shape({desc.input(0), desc.input(1), desc.output(0)}, attrs),
                     ConvolutionGather::Direction::forward, threads);
}

GatherPlan plan_bias_activation(const OpDesc& desc, int threads) {
  require_tensors(desc, 3, 3, 1);
  const auto attrs = require_attrs<gpunn_conv2d_attrs>(desc);
  require(attrs.activation == GPUNN_ACTIVATION_NONE || attrs.activation == GPUNN_ACTIVATION_RELU,
          "the activation is not one of none and relu");
  const ConvolutionShape shape = checked_shape({desc.input(0), desc.input(1), desc.output(0)}, attrs);
  require_packed(desc.input(2), GPUNN_F32, "bias");
  require_shape(desc.input(2), {desc.input(1).dim[0]}, "bias");
  GatherPlan plan = make_gather(shape, ConvolutionGather::Direction::forward, threads);
  plan.bias = true;
  plan.relu = attrs.activation == GPUNN_ACTIVATION_RELU;
  return plan;
}

GatherPlan plan_backward_data(const OpDesc& desc, int threads) {
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_conv2d_attrs>(desc);
  const ConvolutionShape shape = checked_shape({desc.output(0), desc.input(1), desc.input(0)}, attrs);
  require(attrs.input_size[0] == shape.rows.inputs && attrs.input_size[1] == shape.columns.inputs,
          "dx has another size than input_size says");
  return make_gather(shape, ConvolutionGather::Direction::backward, threads);
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
  require_tensors(desc, 2, 2, 1);
  const auto attrs = require_attrs<gpunn_conv2d_attrs>(desc);
  const ConvolutionShape shape = checked_shape({desc.input(1), desc.output(0), desc.input(0)}, attrs);
  require(attrs.filter_size[0] == shape.rows.taps && attrs.filter_size[1] == shape.columns.taps,
          "dw has another size than filter_size says");
  auto algorithm = std::make_shared<ConvolutionFilter>(shape, threads);
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
  add_threaded_op(device, GPUNN_OP_CONV2D, plan_forward, run_gather);
  add_threaded_op(device, GPUNN_OP_CONV2D_BIAS_ACTIVATION, plan_bias_activation, run_gather);
  add_threaded_op(device, GPUNN_OP_CONV2D_BACKWARD_DATA, plan_backward_data, run_gather);
  add_threaded_op(device, GPUNN_OP_CONV2D_BACKWARD_FILTER, plan_backward_filter, run_filter);
}

}  // namespace gpunn::cpu
