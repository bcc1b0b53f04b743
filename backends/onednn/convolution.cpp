#include "common/convolution.hpp"

#include "kernels.hpp"
#include "operation.hpp"

namespace gpunn::onednn {
namespace {

using backends::ConvolutionAxis;
using backends::ConvolutionPass;
using backends::ConvolutionShape;
using dnnl::convolution_backward_data;
using dnnl::convolution_backward_weights;
using dnnl::convolution_forward;
using dnnl::memory;
using tag = memory::format_tag;

// The same operand as gpunn has it, and with its layout left to oneDNN.
struct Layout {
  memory::desc given;
  memory::desc any;
};

// A channels-last image is taken as it is. A packed one may be copied: oneDNN is several times faster in its own
// layouts.
Layout image(const gpunn_tensor& tensor) {
  const memory::dims sizes(tensor.dim, tensor.dim + 4);
  const memory::data_type type = data_type_of(tensor);
  if (plugin::is_packed(tensor)) return {{sizes, type, tag::nchw}, {sizes, type, tag::any}};
  require(plugin::is_channels_last(tensor), "images must be packed or channels-last");
  return {{sizes, type, tag::nhwc}, {sizes, type, tag::nhwc}};
}

Layout filter(const gpunn_tensor& tensor, const ConvolutionShape& shape) {
  const memory::data_type type = data_type_of(tensor);
  const bool packed = plugin::is_packed(tensor);
  require(packed || plugin::is_channels_last(tensor), "filters must be packed or channels-last");
  memory::dims sizes{shape.group_outputs, shape.group_inputs, shape.rows.taps, shape.columns.taps};
  if (shape.groups == 1) return {{sizes, type, packed ? tag::oihw : tag::ohwi}, {sizes, type, tag::any}};
  sizes.insert(sizes.begin(), shape.groups);
  return {{sizes, type, packed ? tag::goihw : tag::gohwi}, {sizes, type, tag::any}};
}

// Strides, dilations (counted from 0), and the pads in front and behind.
auto geometry(const ConvolutionShape& shape) {
  const ConvolutionAxis &rows = shape.rows, &columns = shape.columns;
  // At the far end only as much as the windows reach: less than the pad where the stride leaves some over.
  const auto behind = [](const ConvolutionAxis& axis) {
    return (axis.outputs - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1 - axis.pad - axis.inputs;
  };
  return std::tuple(memory::dims{rows.stride, columns.stride}, memory::dims{rows.dilation - 1, columns.dilation - 1},
                    memory::dims{rows.pad, columns.pad}, memory::dims{behind(rows), behind(columns)});
}

void require_elements(const ConvolutionShape& shape) {
  require(shape.batch > 0 && shape.groups * shape.group_inputs * shape.group_outputs > 0 &&
              shape.rows.outputs * shape.columns.outputs * shape.rows.inputs * shape.columns.inputs > 0,
          "oneDNN convolves no empty images");
}

// y = the convolution of x and w, with the bias where there is one.
convolution_forward::primitive_desc forward(const dnnl::primitive_attr& attributes, const ConvolutionShape& shape,
                                            const Layout& x, const Layout& w, const Layout& y,
                                            const memory::desc* bias = nullptr) {
  const auto kind = std::tuple(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, x.any, w.any);
  if (bias == nullptr) {
    return describe<convolution_forward>(attributes, std::tuple_cat(kind, std::tuple(y.any), geometry(shape)));
  }
  return describe<convolution_forward>(attributes, std::tuple_cat(kind, std::tuple(*bias, y.any), geometry(shape)));
}

Plan plan_forward(const OpDesc& desc, const ConvolutionShape& shape, bool with_bias, bool relu) {
  require_elements(shape);
  const Layout x = image(desc.input(0)), w = filter(desc.input(1), shape), y = image(desc.output(0));
  const memory::desc bias({shape.groups * shape.group_outputs}, memory::data_type::f32, tag::a);
  const auto chosen = forward(attributes_of(desc), shape, x, w, y, with_bias ? &bias : nullptr);
  Plan plan{common_part(chosen),
            {{DNNL_ARG_SRC, false, 0, x.given, chosen.src_desc()},
             {DNNL_ARG_WEIGHTS, false, 1, w.given, chosen.weights_desc()},
             {DNNL_ARG_DST, true, 0, y.given, chosen.dst_desc()}},
            relu};
  if (with_bias) plan.operands.push_back({DNNL_ARG_BIAS, false, 2, bias, bias});
  return plan;
}

Plan plan_convolution(const OpDesc& desc) { return plan_forward(desc, backends::convolution_of(desc), false, false); }

Plan plan_bias_activation(const OpDesc& desc) {
  const auto [shape, relu] = backends::convolution_bias_activation_of(desc);
  return plan_forward(desc, shape, true, relu);
}

Plan plan_backward_data(const OpDesc& desc) {
  const ConvolutionShape shape = backends::convolution_backward_data_of(desc);
  require_elements(shape);
  const Layout dy = image(desc.input(0)), w = filter(desc.input(1), shape), dx = image(desc.output(0));
  const dnnl::primitive_attr attributes = attributes_of(desc);
  const auto chosen = describe<convolution_backward_data>(
      attributes,
      std::tuple_cat(std::tuple(dnnl::algorithm::convolution_direct, dx.any, w.any, dy.any), geometry(shape)),
      forward(attributes, shape, dx, w, dy));
  return {common_part(chosen),
          {{DNNL_ARG_DIFF_DST, false, 0, dy.given, chosen.diff_dst_desc()},
           {DNNL_ARG_WEIGHTS, false, 1, w.given, chosen.weights_desc()},
           {DNNL_ARG_DIFF_SRC, true, 0, dx.given, chosen.diff_src_desc()}},
          false};
}

Plan plan_backward_filter(const OpDesc& desc) {
  const ConvolutionShape shape = backends::convolution_backward_filter_of(desc);
  require_elements(shape);
  const Layout dy = image(desc.input(0)), x = image(desc.input(1)), dw = filter(desc.output(0), shape);
  const dnnl::primitive_attr attributes = attributes_of(desc);
  const auto chosen = describe<convolution_backward_weights>(
      attributes,
      std::tuple_cat(std::tuple(dnnl::algorithm::convolution_direct, x.any, dw.any, dy.any), geometry(shape)),
      forward(attributes, shape, x, dw, dy));
  return {common_part(chosen),
          {{DNNL_ARG_DIFF_DST, false, 0, dy.given, chosen.diff_dst_desc()},
           {DNNL_ARG_SRC, false, 1, x.given, chosen.src_desc()},
           {DNNL_ARG_DIFF_WEIGHTS, true, 0, dw.given, chosen.diff_weights_desc()}},
          false};
}

}  // namespace

void add_convolution_kernels(plugin::Device& device, int threads) {
  serve(device, GPUNN_OP_CONV2D, threads, plan_convolution, true);
  serve(device, GPUNN_OP_CONV2D_BIAS_ACTIVATION, threads, plan_bias_activation, true);
  serve(device, GPUNN_OP_CONV2D_BACKWARD_DATA, threads, plan_backward_data, true);
  serve(device, GPUNN_OP_CONV2D_BACKWARD_FILTER, threads, plan_backward_filter, true);
}

}  // namespace gpunn::onednn
