#include "common/shape.hpp"

#include <algorithm>

namespace gpunn::backends {
namespace {

// The tensor with other strides.
gpunn_tensor with_strides(gpunn_tensor tensor, const int64_t* strides) {
  std::copy(strides, strides + tensor.rank, tensor.stride);
  return tensor;
}

}  // namespace

Box slice_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_slice_attrs>();
  const gpunn_tensor &x = desc.input(0), &y = desc.output(0);
  Box box;
  for (int32_t i = 0; i < x.rank; ++i) box.x_offset += attrs.start[i] * x.stride[i];
  box.loops = copy_loops(with_strides(y, x.stride), y);
  return box;
}

Box transpose_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_transpose_attrs>();
  const gpunn_tensor &x = desc.input(0), &y = desc.output(0);
  int64_t permuted[GPUNN_MAX_RANK] = {};
  for (int32_t i = 0; i < y.rank; ++i) permuted[i] = x.stride[attrs.permutation[i]];
  return {.loops = copy_loops(with_strides(y, permuted), y)};
}

std::vector<Box> concat_of(const OpDesc& desc) {
  const gpunn_tensor& y = desc.output(0);
  const int32_t axis = desc.attrs<gpunn_concat_attrs>().axis;
  std::vector<Box> parts;
  int64_t start = 0;
  for (std::size_t i = 0; i < desc.inputs(); ++i) {
    const gpunn_tensor& x = desc.input(i);
    parts.push_back({.loops = copy_loops(x, with_strides(x, y.stride)), .y_offset = start * y.stride[axis]});
    start += x.dim[axis];
  }
  return parts;
}

ByteConcat byte_concat_of(const OpDesc& desc) {
  const int32_t axis = desc.attrs<gpunn_concat_attrs>().axis;
  const gpunn_tensor& y = desc.output(0);
  int64_t inner = 1;
  for (int32_t i = 0; i < y.rank; ++i) {
    if (i != axis && y.stride[i] < y.stride[axis]) inner *= y.dim[i];
  }
  ByteConcat concat;
  for (std::size_t i = 0; i < desc.inputs(); ++i) concat.runs.push_back(desc.input(i).dim[axis] * inner);
  concat.row = y.dim[axis] * inner;
  concat.rows = concat.row == 0 ? 0 : plugin::element_count(y) / concat.row;
  return concat;
}

Pad pad_of(const OpDesc& desc) {
  const auto attrs = desc.attrs<gpunn_pad_attrs>();
  const gpunn_tensor &x = desc.input(0), &y = desc.output(0);
  Pad pad;
  pad.n = plugin::element_count(y);
  for (int32_t i = 0; i < y.rank; ++i) {
    pad.box.y_offset += attrs.before[i] * y.stride[i];
    const int32_t last = pad.rank - 1;
    if (pad.rank > 0 && attrs.before[i] == 0 && attrs.after[i] == 0) {
      pad.dim[last] *= y.dim[i];
      pad.before[last] *= y.dim[i];
      pad.size[last] *= y.dim[i];
    } else {
      pad.dim[pad.rank] = y.dim[i];
      pad.before[pad.rank] = attrs.before[i];
      pad.size[pad.rank] = x.dim[i];
      ++pad.rank;
    }
  }
  if (pad.rank == 0) {
    pad.dim[0] = pad.size[0] = 1;
    pad.rank = 1;
  }
  pad.box.loops = copy_loops(x, with_strides(x, y.stride));
  return pad;
}

}  // namespace gpunn::backends
