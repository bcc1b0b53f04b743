#include "export/onnx_builder.hpp"

#include <gpunn/error.hpp>
#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <cstring>

#include "graph/output_types.hpp"

namespace gpunn::interchange {

using graph::kNoValue;
using graph::ValueId;

namespace {

std::vector<int64_t> key_of(const BatchShape& shape) {
  std::vector<int64_t> key;
  for (const BatchSize& size : shape) {
    key.push_back(size.fixed);
    key.push_back(size.per_row);
    key.insert(key.end(), size.elsewhere.begin(), size.elsewhere.end());
  }
  return key;
}

// How many times `of` the size is, for every batch and every image; 0: no whole number of times.
int64_t multiple(const BatchSize& size, const BatchSize& of) {
  const int64_t part = of.fixed != 0 ? of.fixed : of.per_row, whole = of.fixed != 0 ? size.fixed : size.per_row;
  if (part <= 0 || whole % part != 0) return 0;
  const int64_t times = whole / part;
  BatchSize scaled = {of.fixed * times, of.per_row * times, of.elsewhere};
  for (int64_t& one : scaled.elsewhere) one *= times;
  return scaled == size ? times : 0;
}

}  // namespace

OnnxType onnx_type(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return OnnxType::bf16;
    case DType::f16:
      return OnnxType::f16;
    case DType::f64:
      return OnnxType::f64;
    case DType::i32:
      return OnnxType::i32;
    case DType::i64:
      return OnnxType::i64;
    case DType::u8:
      return OnnxType::u8;
    case DType::f32:
      break;
  }
  return OnnxType::f32;
}

BatchSize product(const BatchSize& a, const BatchSize& b, int64_t rows) {
  const auto usual = [rows](const BatchSize& size) { return size.fixed + size.per_row * rows; };
  const auto at = [&](const BatchSize& size, std::size_t i) {
    return size.depends_on_image() ? size.elsewhere[i] : usual(size);
  };
  const int64_t mixed = a.fixed * b.per_row + a.per_row * b.fixed;
  BatchSize result{a.fixed * b.fixed, mixed};
  if (!a.depends_on_image() && !b.depends_on_image()) return result;
  for (std::size_t i = 0; i < kOtherSizes; ++i) result.elsewhere[i] = at(a, i) * at(b, i);
  return result;
}

OnnxBuilder::OnnxBuilder(OnnxModel& model, const ProgramSizes& programs, OnnxSources sources)
    : model_(model), programs_(programs), sources_(std::move(sources)), batch_(model.inputs.front().name) {
  for (const graph::Node& node : graph().nodes()) layers_with_ops_.insert(node.name);
}

BatchShape OnnxBuilder::shape(ValueId id) const {
  const Shape &a = graph().value(id).type.shape, &b = programs_.one_row_more.value(id).type.shape;
  if (a.size() != b.size()) throw Error("'" + graph().value(id).name + "' has another rank for another batch size");
  BatchShape result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int64_t per_row = b[i] - a[i];
    BatchSize size{a[i] - per_row * rows(), per_row};
    for (std::size_t k = 0; k < programs_.others.size(); ++k) {
      size.elsewhere[k] = programs_.others[k].value(id).type.shape.at(i);
    }
    if (std::ranges::all_of(size.elsewhere, [&](int64_t one) { return one == a[i]; })) size.elsewhere = {};
    result.push_back(size);
  }
  return result;
}

ValueId OnnxBuilder::origin(ValueId id) const {
  for (;;) {
    const ValueId of = graph().value(id).view_of;
    if (of == kNoValue || of == sources_.parameters || of == sources_.buffers) return id;
    if (graph().value(id).view_offset != 0) {
      throw Error("a part of '" + graph().value(of).name + "' is read in place, which ONNX can't say");
    }
    id = of;
  }
}

Emitted OnnxBuilder::source(ValueId id) {
  id = origin(id);
  if (const auto found = emitted_.find(id); found != emitted_.end()) return found->second;
  const graph::Value& value = graph().value(id);
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
  if (view.empty()) view = reshaped(graph().value(id).name, from, wanted);
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
  // Sizes that stay where they are need no number, and one of the others none either. Of those that no tensor has,
  // there may be one.
  std::vector<std::string> computed(to.size());
  std::vector<int64_t> sizes;
  std::optional<std::size_t> left;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i].per_row == 0 && !to[i].depends_on_image()) {
      sizes.push_back(to[i].fixed);
    } else if (i < from.shape.size() && from.shape[i] == to[i]) {
      sizes.push_back(0);  // the same as there
    } else {
      sizes.push_back(-1);
      if (!left) {
        left = i;
        continue;
      }
      std::optional<std::string> size = size_tensor(layer, to[i]);
      if (size) {
        computed[i] = *size;
        continue;
      }
      size = size_tensor(layer, to[*left]);
      if (!size) {
        throw Error("'" + layer + "' has two sizes that no tensor before it has, which ONNX can't say");
      }
      computed[*left] = *size;
      left = i;
    }
  }
  if (std::ranges::all_of(computed, &std::string::empty)) {
    return add(layer, "Reshape", {from.name, integers(layer, sizes)}, {}, whole_layer);
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < to.size(); ++i) {
    parts.push_back(computed[i].empty() ? integers(layer, {sizes[i]}) : computed[i]);
  }
  const std::string shape = add(layer, "Concat", parts, {{"axis", int64_t{0}}}, false);
  return add(layer, "Reshape", {from.name, shape}, {}, whole_layer);
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

std::string OnnxBuilder::integer(const std::string& layer, int64_t value) {
  return add_constant(layer, OnnxType::i64, std::as_bytes(std::span(&value, 1)), {});
}

std::string OnnxBuilder::doubles(const std::string& layer, const std::vector<double>& values, const Shape& shape) {
  return add_constant(layer, OnnxType::f64, std::as_bytes(std::span(values)), shape);
}

std::span<const float> OnnxBuilder::numbers(ValueId id) const {
  const auto first = static_cast<std::size_t>(graph().root_offset(id)) / sizeof(float);
  const std::span<const float> all =
      graph().root(id) == sources_.parameters ? sources_.parameter_values : sources_.buffer_values;
  return all.subspan(first, static_cast<std::size_t>(graph().value(id).type.elements()));
}

std::optional<std::string> OnnxBuilder::size_of_some_tensor(const std::string& layer, const BatchSize& size) {
  const Emitted* best = nullptr;
  std::size_t dimension = 0;
  int64_t times = 0;
  for (const auto& [id, tensor] : emitted_) {
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      const int64_t found = multiple(size, tensor.shape[i]);
      if (found == 0 || (best != nullptr && found >= times)) continue;
      best = &tensor;
      dimension = i;
      times = found;
    }
  }
  if (best == nullptr) return std::nullopt;
  const std::string shape = add(layer, "Shape", {best->name}, {}, false);
  const std::string place = integers(layer, {static_cast<int64_t>(dimension)});
  const std::string one = add(layer, "Gather", {shape, place}, {{"axis", int64_t{0}}}, false);
  return times == 1 ? one : add(layer, "Mul", {one, integers(layer, {times})}, {}, false);
}

std::optional<std::string> OnnxBuilder::size_tensor(const std::string& layer, const BatchSize& size) {
  if (size.depends_on_image()) return size_of_some_tensor(layer, size);
  if (size.per_row == 0) return integers(layer, {size.fixed});
  if (rows_tensor_.empty()) {
    const std::string whole = add("batch", "Shape", {batch_}, {}, false);
    rows_tensor_ = add("batch", "Gather", {whole, integers("batch", {0})}, {{"axis", int64_t{0}}}, false);
  }
  std::string result = rows_tensor_;
  if (size.per_row > 1) result = add(layer, "Mul", {result, integers(layer, {size.per_row})}, {}, false);
  if (size.fixed != 0) result = add(layer, "Add", {result, integers(layer, {size.fixed})}, {}, false);
  return result;
}

std::string OnnxBuilder::shape_tensor(const std::string& layer, const BatchShape& shape) {
  const auto is_fixed = [](const BatchSize& size) { return size.per_row == 0 && !size.depends_on_image(); };
  if (std::ranges::all_of(shape, is_fixed)) {
    std::vector<int64_t> sizes;
    for (const BatchSize& size : shape) sizes.push_back(size.fixed);
    return integers(layer, sizes);
  }
  std::vector<std::string> parts;
  for (const BatchSize& size : shape) {
    const std::optional<std::string> part = size_tensor(layer, size);
    if (!part) throw Error("'" + layer + "' has a size that no tensor before it has, which ONNX can't say");
    parts.push_back(*part);
  }
  return parts.size() == 1 ? parts.front() : add(layer, "Concat", parts, {{"axis", int64_t{0}}}, false);
}

std::vector<OnnxNode> OnnxBuilder::branch(const std::function<void()>& add) {
  std::vector<OnnxNode> around = std::exchange(model_.nodes, {});
  add();
  return std::exchange(model_.nodes, std::move(around));
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
