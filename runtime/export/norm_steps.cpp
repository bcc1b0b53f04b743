#include <gpunn/ops.h>

#include <algorithm>

#include "export/onnx_builder.hpp"

namespace gpunn::interchange {

namespace {

std::string mean_of_last(OnnxBuilder& b, const std::string& layer, const std::string& x,
                         const std::vector<int64_t>& axes) {
  if (b.opset() >= 18) return b.add(layer, "ReduceMean", {x, b.integers(layer, axes)}, {}, false);
  return b.add(layer, "ReduceMean", {x}, {{"axes", axes}}, false);
}

// Before opset 17.
std::string composed_layer_norm(OnnxBuilder& b, const std::string& layer, const std::vector<std::string>& inputs,
                                int64_t dimensions, float epsilon) {
  std::vector<int64_t> axes;
  for (int64_t i = -dimensions; i < 0; ++i) axes.push_back(i);
  const std::string centred = b.add(layer, "Sub", {inputs[0], mean_of_last(b, layer, inputs[0], axes)}, {}, false);
  const std::string square = b.add(layer, "Mul", {centred, centred}, {}, false);
  const std::string variance = mean_of_last(b, layer, square, axes);
  const std::string raised = b.add(layer, "Add", {variance, b.number(layer, epsilon)}, {}, false);
  const std::string normal = b.add(layer, "Div", {centred, b.add(layer, "Sqrt", {raised}, {}, false)}, {}, false);
  return b.add(layer, "Add", {b.add(layer, "Mul", {normal, inputs[1]}, {}, false), inputs[2]});
}

// Groups without a weight each are instances: x[rows, size] as [N, rows / N, size].
void add_grouped(OnnxBuilder& b, const OnnxStep& step, const BatchShape& rows, float epsilon) {
  const std::string& layer = step.node->name;
  const int64_t groups = rows[0].per_row;
  const BatchShape grouped = {{0, 1}, {groups, 0}, rows[1]};
  const Emitted from = b.source(step.inputs[0]);
  const std::string x = from.shape == grouped ? from.name : b.reshaped(layer, from, grouped);
  const auto each = static_cast<std::size_t>(groups);
  const std::string ones = b.floats(layer, std::vector<float>(each, 1), {groups});
  const std::string zeros = b.floats(layer, std::vector<float>(each, 0), {groups});
  b.define(step.outputs.front(), b.add(layer, "InstanceNormalization", {x, ones, zeros}, {{"epsilon", epsilon}}),
           grouped);
}

void add_layer_norm(OnnxBuilder& b, const OnnxStep& step) {
  const std::string& layer = step.node->name;
  const float epsilon = step.node->attrs.as<gpunn_layer_norm_attrs>().epsilon;
  const BatchShape rows = b.shape(step.inputs[0]);
  if (step.inputs.size() == 1) return add_grouped(b, step, rows, epsilon);
  // Where what is normalised is the last dimensions of a tensor, that is what ONNX normalises too.
  Emitted x = b.source(step.inputs[0]);
  const Emitted gamma = b.source(step.inputs[1]), beta = b.source(step.inputs[2]);
  const std::size_t dimensions = gamma.shape.size();
  const bool last =
      x.shape.size() > dimensions && gamma.shape == beta.shape &&
      std::equal(gamma.shape.begin(), gamma.shape.end(), x.shape.end() - static_cast<int64_t>(dimensions));
  std::vector<std::string> inputs = {x.name, gamma.name, beta.name};
  if (!last) {
    x.shape = rows;
    inputs = b.tensors(step.inputs);
  }
  const int64_t normalised = last ? static_cast<int64_t>(dimensions) : 1;
  const std::string y = b.opset() >= 17
                            ? b.add(layer, "LayerNormalization", inputs, {{"axis", -normalised}, {"epsilon", epsilon}})
                            : composed_layer_norm(b, layer, inputs, normalised, epsilon);
  b.define(step.outputs.front(), y, x.shape);
}

void add_instance_norm(OnnxBuilder& b, const OnnxStep& step) {
  const std::string& layer = step.node->name;
  std::vector<std::string> inputs = b.tensors(step.inputs);
  BatchShape shape = b.shape(step.inputs[0]);
  if (shape.size() < 3) {  // ONNX asks for three dimensions at least
    const BatchShape before = shape;
    shape.push_back({1, 0});
    inputs[0] = b.reshaped(layer, {inputs[0], before}, shape);
  }
  const float epsilon = step.node->attrs.as<gpunn_layer_norm_attrs>().epsilon;
  b.define(step.outputs.front(), b.add(layer, "InstanceNormalization", inputs, {{"epsilon", epsilon}}), shape);
}

// ONNX's window of an even size reaches the other way than PyTorch's and gpunn's, and runtimes refuse it.
std::string even_response_norm(OnnxBuilder& b, const OnnxStep& step, const gpunn_local_response_norm_attrs& attrs) {
  const std::string& layer = step.node->name;
  const BatchShape shape = b.shape(step.inputs[0]);
  BatchSize rest{1, 0};
  for (std::size_t i = 2; i < shape.size(); ++i) rest = product(rest, shape[i], b.rows());
  const BatchShape as_image = {shape[0], {1, 0}, shape[1], rest};
  const std::string x = b.tensor(step.inputs[0]);
  const std::string square = b.add(layer, "Mul", {x, x}, {}, false);
  const int64_t size = attrs.size;
  std::string mean = b.add(layer, "AveragePool", {b.reshaped(layer, {square, shape}, as_image)},
                           {{"count_include_pad", int64_t{1}},
                            {"kernel_shape", std::vector<int64_t>{size, 1}},
                            {"pads", std::vector<int64_t>{size / 2, 0, (size - 1) / 2, 0}},
                            {"strides", std::vector<int64_t>{1, 1}}},
                           false);
  mean = b.reshaped(layer, {mean, as_image}, shape);
  const std::string scaled = b.add(layer, "Mul", {mean, b.number(layer, attrs.alpha)}, {}, false);
  const std::string raised = b.add(layer, "Add", {scaled, b.number(layer, attrs.k)}, {}, false);
  const std::string power = b.add(layer, "Pow", {raised, b.number(layer, attrs.beta)}, {}, false);
  return b.add(layer, "Div", {x, power});
}

}  // namespace

bool add_norm_step(OnnxBuilder& b, const OnnxStep& step) {
  const std::string& layer = step.node->name;
  switch (step.node->op) {
    case GPUNN_OP_BATCH_NORM_INFERENCE: {
      const auto attrs = step.node->attrs.as<gpunn_batch_norm_attrs>();
      b.define(step.outputs.front(), b.add(layer, "BatchNormalization", b.tensors(step.inputs),
                                           {{"epsilon", attrs.epsilon}, {"momentum", 1 - attrs.momentum}}));
      return true;
    }
    case GPUNN_OP_LAYER_NORM:
      add_layer_norm(b, step);
      return true;
    case GPUNN_OP_INSTANCE_NORM:
      add_instance_norm(b, step);
      return true;
    case GPUNN_OP_LOCAL_RESPONSE_NORM: {
      const auto attrs = step.node->attrs.as<gpunn_local_response_norm_attrs>();
      const std::string y =
          attrs.size % 2 == 0
              ? even_response_norm(b, step, attrs)
              : b.add(layer, "LRN", {b.tensor(step.inputs[0])},
                      {{"alpha", attrs.alpha}, {"beta", attrs.beta}, {"bias", attrs.k}, {"size", int64_t{attrs.size}}});
      b.define(step.outputs.front(), y);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace gpunn::interchange
