#include <algorithm>

#include "conv/small/small_convolution.hpp"
#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda_tiled::small {
namespace {

// Of a tensor, and of a plane: 32 bits name them with room for a tile beyond.
constexpr int64_t kMostNumbers = int64_t{1} << 30;
constexpr int64_t kMostPlane = int64_t{1} << 22;

}  // namespace

std::optional<Plan> plan_of(ConvolutionPass pass, const backends::ConvolutionShape& shape, const Tile& tile,
                            int multiprocessors) {
  const int64_t taps = shape.rows.taps * shape.columns.taps;
  const int64_t input_plane = shape.rows.inputs * shape.columns.inputs;
  const int64_t output_plane = shape.rows.outputs * shape.columns.outputs;
  if (shape.groups != 1 || taps > kMaxTaps) return std::nullopt;
  if (input_plane > kMostPlane || output_plane > kMostPlane) return std::nullopt;
  if (shape.batch * shape.group_inputs * input_plane > kMostNumbers ||
      shape.batch * shape.group_outputs * output_plane > kMostNumbers ||
      shape.group_inputs * shape.group_outputs * taps > kMostNumbers) {
    return std::nullopt;
  }
  const bool padded = shape.rows.pad != 0 || shape.columns.pad != 0;
  const bool dense = shape.rows.stride == 1 && shape.columns.stride == 1;
  const bool one_tap = taps == 1 && !padded;
  if (pass == ConvolutionPass::backward_data && one_tap && shape.group_inputs % 4 != 0) return std::nullopt;
  if (pass == ConvolutionPass::forward && shape.group_inputs * taps % 4 != 0) return std::nullopt;

  const auto number = [](int64_t n) { return static_cast<int>(n); };
  Plan plan{};
  plan.pass = pass;
  plan.inputs = number(shape.group_inputs);
  plan.outputs = number(shape.group_outputs);
  plan.input_rows = number(shape.rows.inputs);
  plan.input_columns = number(shape.columns.inputs);
  plan.input_plane = number(input_plane);
  plan.output_rows = number(shape.rows.outputs);
  plan.output_columns = number(shape.columns.outputs);
  plan.output_plane = number(output_plane);
  plan.row_stride = number(shape.rows.stride);
  plan.column_stride = number(shape.columns.stride);
  plan.row_pad = number(shape.rows.pad);
  plan.column_pad = number(shape.columns.pad);
  plan.row_dilation = number(shape.rows.dilation);
  plan.column_dilation = number(shape.columns.dilation);
  plan.taps = number(taps);
  plan.column_taps = number(shape.columns.taps);
  plan.by_taps = Divider(taps);
  plan.by_output_plane = Divider(output_plane);
  plan.by_output_columns = Divider(shape.columns.outputs);
  const bool of_inputs = pass == ConvolutionPass::backward_data && !one_tap;
  plan.by_pixel_plane = of_inputs ? Divider(input_plane) : plan.by_output_plane;
  plan.by_pixel_columns = of_inputs ? Divider(shape.columns.inputs) : plan.by_output_columns;
  const int pixels = number(shape.batch * output_plane);
  switch (pass) {
    case ConvolutionPass::forward:
      plan.rows = plan.outputs;
      plan.columns = pixels;
      plan.terms = plan.inputs * plan.taps;
      break;
    case ConvolutionPass::backward_data:
      plan.rows = plan.inputs;
      plan.columns = one_tap ? pixels : number(shape.batch * input_plane);
      plan.terms = plan.outputs * plan.taps;
      break;
    case ConvolutionPass::backward_filter:
      plan.rows = plan.outputs;
      plan.columns = plan.inputs * plan.taps;
      plan.terms = pixels;
      break;
  }
  // A single tap beside the image is a tap that may be outside of it.
  plan.source = Source::kPixels;
  if (!one_tap) {
    plan.source = Source::kTaps;
  } else if (output_plane % 4 == 0 && (dense || pass == ConvolutionPass::backward_data)) {
    plan.source = Source::kVectors;
  }
  // What one tap reaches must be all of the image, where vectors take it as it lies.
  if (plan.source == Source::kVectors && dense && input_plane != output_plane) return std::nullopt;
  const bool strided = pass == ConvolutionPass::backward_data && one_tap && !dense;
  const int64_t run = pass == ConvolutionPass::backward_filter ? plan.columns : of_inputs ? input_plane : output_plane;
  plan.together = run % 4 == 0 && !strided;
  plan.row_tiles = cuda::divide_up(plan.rows, tile.rows);
  plan.column_tiles = cuda::divide_up(plan.columns, tile.columns);
  plan.chunks = cuda::divide_up(plan.terms, tile.terms);
  // Blocks that copy number by number are slow alone: two on a multiprocessor hide each other's waits.
  const bool slow =
      plan.source == Source::kTaps || (pass == ConvolutionPass::backward_filter && plan.source == Source::kPixels);
  const int64_t blocks = slow ? int64_t{multiprocessors} * 9 / 4 : multiprocessors;
  const int64_t wanted = blocks / (int64_t{plan.row_tiles} * plan.column_tiles);
  plan.splits = 1;
  while (plan.splits < kMostSplits && plan.splits * 2 <= wanted && plan.splits * 2 <= plan.chunks) plan.splits *= 2;
  return plan;
}

}  // namespace gpunn::cuda_tiled::small
