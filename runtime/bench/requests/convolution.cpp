#include "bench/requests/request.hpp"

namespace gpunn::bench {

namespace {

using graph::Attributes;
using graph::OpSignature;

OpRequest convolution(Written& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 7) bad(r, "N,C,H,W,K,R,S with stride=, pad=, dilation= and groups= if wanted");
  const auto stride = static_cast<int32_t>(take(r, "stride", 1)), pad = static_cast<int32_t>(take(r, "pad", 0));
  const auto dilation = static_cast<int32_t>(take(r, "dilation", 1)),
             groups = static_cast<int32_t>(take(r, "groups", 1));
  if (groups < 1) bad(r, "groups of at least 1");
  const auto& z = r.sizes;
  const gpunn_conv2d_attrs attrs{
      .struct_size = 0,
      .activation = info.id == GPUNN_OP_CONV2D_BIAS_ACTIVATION ? GPUNN_ACTIVATION_RELU : GPUNN_ACTIVATION_NONE,
      .stride = {stride, stride},
      .pad = {pad, pad},
      .dilation = {dilation, dilation},
      .groups = groups,
      .input_size = {static_cast<int32_t>(z[2]), static_cast<int32_t>(z[3])},
      .filter_size = {static_cast<int32_t>(z[5]), static_cast<int32_t>(z[6])},
      .reserved = 0};
  const TensorType x = f32({z[0], z[1], z[2], z[3]});
  const TensorType w = f32({z[4], z[1] / groups, z[5], z[6]});
  OpSignature s{.op = info.id, .attrs = Attributes::of(attrs), .inputs = {x, w}, .outputs = {}};
  if (info.id == GPUNN_OP_CONV2D_BIAS_ACTIVATION) s.inputs.push_back(f32({z[4]}));
  if (info.id == GPUNN_OP_CONV2D_BACKWARD_DATA || info.id == GPUNN_OP_CONV2D_BACKWARD_FILTER) {
    const TensorType dy = graph::op_info(GPUNN_OP_CONV2D).infer(s.attrs, s.inputs).front();
    s.inputs = info.id == GPUNN_OP_CONV2D_BACKWARD_DATA ? std::vector{dy, w} : std::vector{dy, x};
  }
  return s;
}

}  // namespace

void add_convolution(Builders& builders) {
  for (const int32_t op : {GPUNN_OP_CONV2D, GPUNN_OP_CONV2D_BACKWARD_DATA, GPUNN_OP_CONV2D_BACKWARD_FILTER,
                           GPUNN_OP_CONV2D_BIAS_ACTIVATION}) {
    builders[op] = convolution;
  }
}

}  // namespace gpunn::bench
