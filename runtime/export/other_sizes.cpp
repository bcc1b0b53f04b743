// Whether a model's graph is the same for images of every size. The model is built for other sizes and compared.
#include "export/other_sizes.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "export/onnx_builder.hpp"
#include "nn/model.hpp"

namespace gpunn::interchange {

using graph::Graph;
using graph::Node;
using graph::ValueId;

namespace {

bool covers_image(const Graph& g, const Node& pooling) {
  const auto attrs = pooling.attrs.as<gpunn_pool2d_attrs>();
  const Shape& image = g.value(pooling.inputs[0]).type.shape;
  return attrs.window[0] == image[2] && attrs.window[1] == image[3];
}

// How many rows, or columns, a transposed convolution makes beyond those that its stride and filter give.
int64_t output_padding(const Graph& g, const Node& node, std::size_t side) {
  const auto attrs = node.attrs.as<gpunn_conv2d_attrs>();
  return attrs.input_size[side] - g.value(node.inputs[0]).type.shape[2 + side] * attrs.stride[side];
}

// Whether both nodes become the same ONNX node. The export takes sizes from the values, not from attributes.
bool same_but_for_sizes(const Graph& a, const Node& x, const Graph& b, const Node& y) {
  if (x.op != y.op || x.inputs != y.inputs || x.outputs != y.outputs) return false;
  if (x.attrs == y.attrs) return true;
  switch (x.op) {
    case GPUNN_OP_FILL:
      return x.attrs.as<gpunn_fill_attrs>().value == y.attrs.as<gpunn_fill_attrs>().value;
    case GPUNN_OP_EXPAND:
      return true;
    case GPUNN_OP_SLICE:
      return std::ranges::equal(x.attrs.as<gpunn_slice_attrs>().start, y.attrs.as<gpunn_slice_attrs>().start);
    case GPUNN_OP_MAX_POOL2D:
    case GPUNN_OP_AVG_POOL2D:
      return covers_image(a, x) && covers_image(b, y);
    case GPUNN_OP_CONV2D_BACKWARD_DATA:
      return output_padding(a, x, 0) == output_padding(b, y, 0) && output_padding(a, x, 1) == output_padding(b, y, 1);
    default:
      return false;
  }
}

bool same_but_for_sizes(const Graph& a, const Graph& b) {
  if (a.values().size() != b.values().size() || a.nodes().size() != b.nodes().size()) return false;
  for (std::size_t i = 0; i < a.nodes().size(); ++i) {
    if (!same_but_for_sizes(a, a.nodes()[i], b, b.nodes()[i])) return false;
  }
  return std::ranges::equal(a.values(), b.values(), [](const graph::Value& x, const graph::Value& y) {
    return x.type.shape.size() == y.type.shape.size() && x.view_of == y.view_of;
  });
}

bool same_tensors(const std::vector<nn::Parameter>& a, const std::vector<nn::Parameter>& b) {
  return std::ranges::equal(
      a, b, [](const nn::Parameter& x, const nn::Parameter& y) { return x.name == y.name && x.shape == y.shape; });
}

std::optional<Graph> program_of_size(const inference::ForwardModel& model, int64_t height, int64_t width, int64_t rows,
                                     inference::BatchNorms norms) {
  ModelInfo info = model.info;
  info.fields.input().type.shape = {info.fields.input().type.shape[0], height, width};
  try {
    inference::ForwardModel other =
        inference::forward_model(model.experiment, std::move(info), model.alignment, model.max_batch);
    if (!same_tensors(model.layout.parameters, other.layout.parameters) ||
        !same_tensors(model.buffers.parameters, other.buffers.parameters)) {
      return std::nullopt;
    }
    other.quantizers = model.quantizers;
    return inference::forward_program(other, rows, norms).graph;
  } catch (const Error&) {  // some layer takes no images of this size
    return std::nullopt;
  }
}

bool makes_images(const Graph& program) {
  return inference::output_row(program, inference::variable::kLogits).shape.size() == 3;
}

}  // namespace

std::vector<Graph> programs_of_other_sizes(const inference::ForwardModel& model,
                                           const inference::ForwardProgram& program, int64_t rows,
                                           inference::BatchNorms norms) {
  const Shape& sample = model.info.fields.input().type.shape;
  if (sample.size() != 3 || model.has_task() || !makes_images(program.graph)) return {};
  const std::array<std::pair<int64_t, int64_t>, kOtherSizes> sizes = {
      {{sample[1] * 2, sample[2]}, {sample[1], sample[2] * 2}, {sample[1] + 1, sample[2] + 1}}};
  std::vector<Graph> others;
  for (const auto& [height, width] : sizes) {
    std::optional<Graph> other = program_of_size(model, height, width, rows, norms);
    // Some networks only take sides that are multiples of a number.
    if (!other && others.size() == 2) other = others.front();
    if (!other || !same_but_for_sizes(program.graph, *other)) return {};
    others.push_back(std::move(*other));
  }
  return others;
}

}  // namespace gpunn::interchange
