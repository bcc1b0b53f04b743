#include "common/pooling.hpp"

namespace gpunn::backends {
namespace {

PoolAxis axis_of(int64_t inputs, const gpunn_pool2d_attrs& attrs, int axis) {
  PoolAxis made{.inputs = inputs,
                .outputs = 0,
                .window = attrs.window[axis],
                .stride = attrs.stride[axis],
                .pad = attrs.pad[axis]};
  require(made.window >= 1, "the window must be at least 1");
  require(made.stride >= 1, "the stride must be at least 1");
  require(made.pad >= 0 && made.pad <= made.window / 2, "the padding must be 0 to half the window");
  require(inputs >= 1, "the image must not be empty");
  const int64_t room = inputs + 2 * made.pad - made.window;
  require(room >= 0, "the window is larger than the padded image");
  // With at most half a window of padding, each window holds an element.
  made.outputs = room / made.stride + 1;
  return made;
}

Pool pool_of(const OpDesc& desc, const gpunn_tensor& x, const gpunn_tensor& y) {
  const auto attrs = require_attrs<gpunn_pool2d_attrs>(desc);
  require_packed(x, GPUNN_F32, "x");
  require_packed(y, GPUNN_F32, "y");
  require(x.rank == 4, "x must be [N,C,H,W]");
  Pool pool;
  pool.planes = x.dim[0] * x.dim[1];
  pool.rows = axis_of(x.dim[2], attrs, 0);
  pool.columns = axis_of(x.dim[3], attrs, 1);
  require_shape(y, {x.dim[0], x.dim[1], pool.rows.outputs, pool.columns.outputs}, "y");
  return pool;
}

}  // namespace

Pool max_pool_of(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  return pool_of(desc, desc.input(0), desc.output(0));
}

Pool max_pool_backward_of(const OpDesc& desc) {
  require_tensors(desc, 3, 3, 1);
  require_packed(desc.input(0), GPUNN_F32, "dy");
  require_packed(desc.output(0), GPUNN_F32, "dx");
  require_same_shape(desc.input(0), desc.input(2), "dy and y");
  require_same_shape(desc.output(0), desc.input(1), "dx and x");
  return pool_of(desc, desc.input(1), desc.input(2));
}

Pool avg_pool_of(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  Pool pool = pool_of(desc, desc.input(0), desc.output(0));
  pool.count_padding = require_attrs<gpunn_pool2d_attrs>(desc).count_padding != 0;
  return pool;
}

Pool avg_pool_backward_of(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  Pool pool = pool_of(desc, desc.output(0), desc.input(0));
  const auto attrs = require_attrs<gpunn_pool2d_attrs>(desc);
  require(attrs.input_size[0] == pool.rows.inputs && attrs.input_size[1] == pool.columns.inputs,
          "dx must be of the attributes' input size");
  pool.count_padding = attrs.count_padding != 0;
  return pool;
}

}  // namespace gpunn::backends
