#include "common/shape.hpp"

#include <algorithm>

namespace gpunn::backends {
namespace {

// The one input and the output, both f32 and packed.
void require_one(const OpDesc& desc) {
  require_tensors(desc, 1, 1, 1);
  require_packed(desc.input(0), GPUNN_F32, "x");
  require_packed(desc.output(0), GPUNN_F32, "y");
}

void require_ranks(const OpDesc& desc, int32_t rank) {
  require(rank == desc.input(0).rank && rank == desc.output(0).rank, "x, y and the attributes must be of one rank");
}

// The strides of a packed tensor of these sizes, in elements.
struct Strides {
  int64_t of[GPUNN_MAX_RANK] = {};
};

Strides packed_strides(const gpunn_tensor& tensor) {
  Strides strides;
  int64_t stride = 1;
  for (int32_t i = tensor.rank - 1; i >= 0; --i) {
    strides.of[i] = stride;
    stride *= tensor.dim[i];
  }
  return strides;
}

// The tensor with other strides.
gpunn_tensor with_strides(gpunn_tensor tensor, const Strides& strides) {
  std::copy(strides.of, strides.of + tensor.rank, tensor.stride);
  return tensor;
}

}  // namespace

Box slice_of(const OpDesc& desc) {
  require_one(desc);
  const auto attrs = require_attrs<gpunn_slice_attrs>(desc);
  require_ranks(desc, attrs.rank);
  const gpunn_tensor &x = desc.input(0), &y = desc.output(0);
  const Strides strides = packed_strides(x);
  Box box;
  for (int32_t i = 0; i < x.rank; ++i) {
    require(attrs.start[i] >= 0 && attrs.size[i] >= 0 && attrs.start[i] <= x.dim[i] &&
                attrs.size[i] <= x.dim[i] - attrs.start[i],
            "the slice must lie in x");
    require(y.dim[i] == attrs.size[i], "y must be as large as the slice");
    box.x_offset += attrs.start[i] * strides.of[i];
  }
  box.loops = copy_loops(with_strides(y, strides), with_strides(y, packed_strides(y)));
  return box;
}

Box transpose_of(const OpDesc& desc) {
  require_one(desc);
  const auto attrs = require_attrs<gpunn_transpose_attrs>(desc);
  require_ranks(desc, attrs.rank);
  const gpunn_tensor &x = desc.input(0), &y = desc.output(0);
  const Strides strides = packed_strides(x);
  Strides permuted;
  uint32_t seen = 0;
  for (int32_t i = 0; i < y.rank; ++i) {
    const int32_t from = attrs.permutation[i];
    require(from >= 0 && from < y.rank && (seen >> from & 1U) == 0, "the permutation must hold each dimension once");
    seen |= 1U << from;
    require(y.dim[i] == x.dim[from], "y must have the dimensions of x in the permutation's order");
    permuted.of[i] = strides.of[from];
  }
  return {.loops = copy_loops(with_strides(y, permuted), with_strides(y, packed_strides(y)))};
}

std::vector<Box> concat_of(const OpDesc& desc) {
  constexpr std::size_t kMostParts = 16;
  require_tensors(desc, 2, kMostParts, 1);
  const gpunn_tensor& y = desc.output(0);
  require_packed(y, GPUNN_F32, "y");
  const int32_t axis = require_attrs<gpunn_concat_attrs>(desc).axis;
  require(axis >= 0 && axis < y.rank, "the axis must be a dimension of y");
  const Strides strides = packed_strides(y);
  std::vector<Box> parts;
  int64_t start = 0;
  for (std::size_t i = 0; i < desc.inputs(); ++i) {
    const gpunn_tensor& x = desc.input(i);
    require_packed(x, GPUNN_F32, "an input");
    require(x.rank == y.rank, "inputs and y must be of one rank");
    for (int32_t d = 0; d < y.rank; ++d) {
      require(d == axis ? x.dim[d] <= y.dim[d] - start : x.dim[d] == y.dim[d],
              "y must be the inputs one behind the other");
    }
    parts.push_back({.loops = copy_loops(with_strides(x, packed_strides(x)), with_strides(x, strides)),
                     .y_offset = start * strides.of[axis]});
    start += x.dim[axis];
  }
  require(start == y.dim[axis], "y must be the inputs one behind the other");
  return parts;
}

Pad pad_of(const OpDesc& desc) {
  require_one(desc);
  const auto attrs = require_attrs<gpunn_pad_attrs>(desc);
  require_ranks(desc, attrs.rank);
  const gpunn_tensor &x = desc.input(0), &y = desc.output(0);
  const Strides strides = packed_strides(y);
  Pad pad;
  pad.n = plugin::element_count(y);
  for (int32_t i = 0; i < y.rank; ++i) {
    require(attrs.before[i] >= 0 && attrs.after[i] >= 0 && attrs.before[i] <= y.dim[i] &&
                attrs.after[i] <= y.dim[i] - attrs.before[i] && y.dim[i] - attrs.before[i] - attrs.after[i] == x.dim[i],
            "y must be as large as x and the padding");
    pad.box.y_offset += attrs.before[i] * strides.of[i];
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
  pad.box.loops = copy_loops(with_strides(x, packed_strides(x)), with_strides(x, strides));
  return pad;
}

}  // namespace gpunn::backends
