#include "interchange/export/onnx_builder.hpp"

#include <gpunn/error.hpp>
#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <cstring>

#include "graph/output_types.hpp"

namespace gpunn::interchange {

using graph::kNoValue;
using graph::ValueId;

namespace {

bool is_fixed(const BatchShape& shape) {
  return std::ranges::all_of(shape, [](const BatchSize& size) { return size.per_row == 0; });
}

std::vector<int64_t> key_of(const BatchShape& shape) {
  std::vector<int64_t> key;
  for (const BatchSize& size : shape) {
    key.push_back(size.fixed);
    key.push_back(size.per_row);
  }
  return key;
}

}  // namespace

OnnxBuilder::OnnxBuilder(OnnxModel& model, const graph::Graph& first, const graph::Graph& second, int64_t rows,
                         OnnxSources sources)
    : model_(model), graph_(first), second_(second), rows_(rows), sources_(std::move(sources)) {
  for (const graph::Node& node : first.nodes()) layers_with_ops_.insert(node.name);
}

BatchShape OnnxBuilder::shape(ValueId id) const {
  const Shape &a = graph_.value(id).type.shape, &b = second_.value(id).type.shape;
  if (a.size() != b.size()) throw Error("'" + graph_.value(id).name + "' has another rank for another batch size");
  BatchShape result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int64_t per_row = b[i] - a[i];
    result.push_back({a[i] - per_row * rows_, per_row});
  }
  return result;
}

ValueId OnnxBuilder::origin(ValueId id) const {
  for (;;) {
    const ValueId of = graph_.value(id).view_of;
    if (of == kNoValue || of == sources_.parameters || of == sources_.buffers) return id;
    if (graph_.value(id).view_offset != 0) {
      throw Error("a part of '" + graph_.value(of).name + "' is read in place, which ONNX can't say");
    }
    id = of;
  }
}

Emitted OnnxBuilder::source(ValueId id) {
  id = origin(id);
  if (const auto found = emitted_.find(id); found != emitted_.end()) return found->second;
  const graph::Value& value = graph_.value(id);
  if (value.view_of == kNoValue) throw Error("'" + value.name + "' is read before it is computed");
  const std::span<const float> all =
      value.view_of == sources_.parameters ? sources_.parameter_values : sources_.buffer_values;
  const std::size_t first = static_cast<std::size_t>(value.view_offset) / sizeof(float);
  const auto named = sources_.names.find(id);
  OnnxTensor tensor{.name = unique(named == sources_.names.end() ? value.name : named->second),
                    .shape = value.type.shape,
                    .bytes = std::as_bytes(all.subspan(first, static_cast<std::size_t>(value.type.elements())))};
  Emitted result{tensor.name, shape(id)};
  model_.tensors.push_back(std::move(tensor));
  emitted_[id] = result;
  return result;
}

std::string OnnxBuilder::tensor(ValueId id) {
  const Emitted from = source(id);
  const BatchShape wanted = shape(id);
  if (from.shape == wanted) return from.name;
  std::string& view = views_[{origin(id), key_of(wanted)}];
  if (view.empty()) view = reshaped(graph_.value(id).name, from, wanted);
  return view;
}

std::vector<std::string> OnnxBuilder::tensors(const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(tensor(id));
  return names;
}

std::string OnnxBuilder::reshaped(const std::string& layer, const Emitted& from, const BatchShape& to) {
  const bool whole_layer = !layers_with_ops_.contains(layer);
  if (to.size() == 2 && from.shape.size() > 1 && to[0] == from.shape[0] && to[0].per_row != 0) {
    return add(layer, "Flatten", {from.name}, {{"axis", int64_t{1}}}, whole_layer);
  }
  std::vector<int64_t> sizes;
  bool open = false;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i].per_row == 0) {
      sizes.push_back(to[i].fixed);
    } else if (i < from.shape.size() && from.shape[i] == to[i]) {
      sizes.push_back(0);  // the same as there
    } else {
      if (open) throw Error("'" + layer + "' has two sizes that depend on the batch, which ONNX can't say");
      open = true;
      sizes.push_back(-1);
    }
  }
  return add(layer, "Reshape", {from.name, integers(layer, sizes)}, {}, whole_layer);
}

std::string OnnxBuilder::unique(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; !names_.insert(name).second; ++i) name = wanted + "_" + std::to_string(i);
  return name;
}

std::string OnnxBuilder::add(const std::string& layer, const std::string& op, std::vector<std::string> inputs,
                             std::vector<OnnxAttribute> attributes, bool principal) {
  const bool own = principal && !names_.contains(layer);
  std::string name = unique(own ? layer : layer + "/" + op);
  model_.nodes.push_back(
      {.op = op, .name = name, .inputs = std::move(inputs), .outputs = {name}, .attributes = std::move(attributes)});
  return name;
}

void OnnxBuilder::define(ValueId id, std::string name) {
  BatchShape usual = shape(id);
  define(id, std::move(name), std::move(usual));
}
void OnnxBuilder::define(ValueId id, std::string name, BatchShape shape) {
  emitted_[origin(id)] = {std::move(name), std::move(shape)};
}

std::string OnnxBuilder::add_constant(const std::string& layer, OnnxType type, std::span<const std::byte> bytes,
                                      Shape shape) {
  model_.constants.emplace_back(bytes.begin(), bytes.end());
  std::string name = unique(layer + "/constant");
  model_.tensors.push_back(
      {.name = name, .type = type, .shape = std::move(shape), .bytes = std::span(model_.constants.back())});
  return name;
}

std::string OnnxBuilder::floats(const std::string& layer, const std::vector<float>& values, const Shape& shape) {
  return add_constant(layer, OnnxType::f32, std::as_bytes(std::span(values)), shape);
}

std::string OnnxBuilder::integers(const std::string& layer, const std::vector<int64_t>& values) {
  return add_constant(layer, OnnxType::i64, std::as_bytes(std::span(values)), {static_cast<int64_t>(values.size())});
}

std::span<const float> OnnxBuilder::numbers(ValueId id) const {
  const auto first = static_cast<std::size_t>(graph_.root_offset(id)) / sizeof(float);
  const std::span<const float> all =
      graph_.root(id) == sources_.parameters ? sources_.parameter_values : sources_.buffer_values;
  return all.subspan(first, static_cast<std::size_t>(graph_.value(id).type.elements()));
}

std::string OnnxBuilder::shape_tensor(const std::string& layer, const BatchShape& shape) {
  if (is_fixed(shape)) {
    std::vector<int64_t> sizes;
    for (const BatchSize& size : shape) sizes.push_back(size.fixed);
    return integers(layer, sizes);
  }
  if (rows_tensor_.empty()) {
    const std::string whole = add("batch", "Shape", {model_.inputs.front().name}, {}, false);
    rows_tensor_ = add("batch", "Gather", {whole, integers("batch", {0})}, {{"axis", int64_t{0}}}, false);
  }
  std::vector<std::string> parts;
  for (const BatchSize& size : shape) {
    std::string part = size.per_row == 0 ? integers(layer, {size.fixed}) : rows_tensor_;
    if (size.per_row > 1) part = add(layer, "Mul", {part, integers(layer, {size.per_row})}, {}, false);
    if (size.per_row != 0 && size.fixed != 0) {
      part = add(layer, "Add", {part, integers(layer, {size.fixed})}, {}, false);
    }
    parts.push_back(part);
  }
  return parts.size() == 1 ? parts.front() : add(layer, "Concat", parts, {{"axis", int64_t{0}}}, false);
}

void add_onnx_step(OnnxBuilder& builder, const OnnxStep& step) {
  if (add_elementwise_step(builder, step) || add_quantization_step(builder, step) || add_window_step(builder, step) ||
      add_norm_step(builder, step) || add_shape_step(builder, step) || add_detection_step(builder, step)) {
    return;
  }
  throw Error("layer '" + step.node->name + "' computes " + std::string(graph::op_row(step.node->op).name) +
              ", which the ONNX export does not know; leave the layer out, or export the weights as .safetensors");
}

}  // namespace gpunn::interchange
