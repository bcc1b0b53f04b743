#include "interchange/onnx/nodes/quantization.hpp"

#include <gpunn/float_formats.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/fold.hpp"

namespace gpunn::interchange {

namespace {

// Scales and zero points of a tensor, of a shape that broadcasts to it.
struct Grid {
  Shape shape;
  std::vector<float> scales, zero_points;

  bool is_identity() const {
    return std::ranges::all_of(scales, [](float s) { return s == 1; }) &&
           std::ranges::all_of(zero_points, [](float z) { return z == 0; });
  }
};

// The shape of a tensor, with a batch of 1, since no scale can differ along it.
Shape whole_shape(const Value& x) {
  Shape shape;
  for (const Size& size : x.shape) shape.push_back(size.of_batch ? 1 : size.factor);
  return shape;
}

// The shape in which scales broadcast to a tensor.
Shape broadcast_scales(const Shape& scales, const Shape& tensor, const Quantization& by) {
  if (element_count(scales) == 1 && by.block == 0) return {};
  Shape shape = tensor;
  if (by.block > 0) {
    Shape blocks = tensor;
    if (by.axis < blocks.size()) blocks[by.axis] = (blocks[by.axis] - 1) / by.block + 1;
    if (scales == blocks) return shape;
  } else if (scales.size() == tensor.size() &&
             std::ranges::equal(scales, tensor, [](int64_t a, int64_t b) { return a == 1 || a == b; })) {
    return scales;  // of QLinearMatMul's stacks of matrices
  } else if (scales.size() == 1 && by.axis < tensor.size() && tensor[by.axis] == scales[0]) {
    shape.assign(tensor.size() - by.axis, 1);
    shape[0] = scales[0];
    return shape;
  }
  throw Unsupported("its scales " + gpunn::to_string(scales) + " don't fit a tensor of " + gpunn::to_string(tensor) +
                    (by.block > 0 ? " in blocks of " + std::to_string(by.block) : "") + " along dimension " +
                    std::to_string(by.axis) +
                    "; expected one, one for each place of a dimension other than the batch's, or one for each block");
}

// Integers of a constant that does not depend on the size of the batch.
void require_fixed(const Constant& integers) {
  if (std::ranges::any_of(integers.integers, &Size::of_batch)) throw Unsupported("has integers of the batch's size");
}

// One scale, or one zero point, is for all.
Grid grid_of(Call& call, const Shape& tensor, const Quantization& by) {
  const Constant& scales = *by.scale->constant;
  if (!is_floating(scales.element)) throw Unsupported("its scales are " + name_of(scales.element));
  const Constant* zeros = by.zero_point != nullptr ? by.zero_point->constant.get() : nullptr;
  if (zeros != nullptr && is_floating(zeros->element)) throw Unsupported("its zero points are floats");
  if (zeros != nullptr) require_fixed(*zeros);
  const std::size_t count = scales.floats->size(), zero_count = zeros != nullptr ? zeros->integers.size() : 1;
  if (count != zero_count && count != 1 && zero_count != 1) {
    throw Unsupported("it has " + std::to_string(count) + " scales and " + std::to_string(zero_count) + " zero points");
  }
  Shape stated = count == 1 && zero_count != 1 ? zeros->shape : scales.shape;
  // The file's tensor may be one sample, which has the batch in front of it here.
  if (by.block > 0 && stated.size() + 1 == tensor.size() && tensor[0] == 1) stated.insert(stated.begin(), 1);
  Grid grid{.shape = broadcast_scales(stated, tensor, by), .scales = {}, .zero_points = {}};
  const Shape steps = strides_of(stated);
  for (int64_t i = 0, all = call.importer().take_room(grid.shape); i < all; ++i) {
    int64_t place = by.block > 0 ? 0 : i, rest = i;
    for (std::size_t d = grid.shape.size(); by.block > 0 && d-- > 0; rest /= grid.shape[d]) {
      const int64_t at = rest % grid.shape[d];
      place += (d == by.axis ? at / by.block : at) * steps[d];
    }
    const auto k = static_cast<std::size_t>(place);
    grid.scales.push_back((*scales.floats)[count == 1 ? 0 : k]);
    grid.zero_points.push_back(zeros != nullptr ? static_cast<float>(zeros->integers[zero_count == 1 ? 0 : k].factor)
                                                : 0);
  }
  return grid;
}

void require_positive(const Grid& grid) {
  for (const float scale : grid.scales) {
    if (!(scale > 0)) throw Unsupported("its scale " + text(static_cast<double>(scale)) + " is not above 0");
  }
}

Value with_element(Value x, Element element) {
  x.element = element;
  return x;
}

void set_grid(Call& call, const Value& layer, const Grid& grid) {
  const Shape shape = grid.shape.empty() ? Shape{1} : grid.shape;
  call.set_tensor(layer, "scale", shape, floats_constant(shape, grid.scales));
  call.set_tensor(layer, "zero_point", shape, floats_constant(shape, grid.zero_points));
}

Keys shape_key(const Grid& grid) { return {{"shape", texts(grid.shape.empty() ? Shape{1} : grid.shape)}}; }

// The grid without the batch's dimension.
Grid within_row(Grid grid, std::size_t rank) {
  if (grid.shape.size() == rank) grid.shape.erase(grid.shape.begin());
  return grid;
}

// Rounds a number as the file stores it.
float stored(Element element, float number) {
  if (element == Element::f16) return Half(number);
  return element == Element::bf16 ? BFloat16(number) : number;
}

bool is_known(const Quantization& by) {
  return by.scale->constant && (by.zero_point == nullptr || by.zero_point->constant);
}

// The type of dequantised numbers is that of their scales.
Element numbers_of(const Value& scale) { return scale.constant ? scale.constant->element : scale.element; }

Value dequantized_constant(Call& call, const Constant& q, const Quantization& by) {
  if (is_floating(q.element)) throw Unsupported("its weights are " + name_of(q.element) + ", no integers");
  require_fixed(q);
  const Grid grid = grid_of(call, q.shape, by);
  std::vector<float> values(q.integers.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto k = static_cast<std::size_t>(interchange::broadcast_place(static_cast<int64_t>(i), q.shape, grid.shape));
    const auto zero = static_cast<int64_t>(grid.zero_points[k]);
    values[i] = stored(numbers_of(*by.scale), static_cast<float>(q.integers[i].factor - zero) * grid.scales[k]);
  }
  Constant result = floats_constant(q.shape, std::move(values));
  result.element = numbers_of(*by.scale);
  result.trained = q.trained;
  result.scales = by.scale->constant->floats;
  return constant_value(std::move(result));
}

Value quantized_constant(Call& call, const Constant& x, const Quantization& by, Element element) {
  const auto [low, high] = integers_of(element);
  require_fixed(x);
  const Grid grid = grid_of(call, x.shape, by);
  require_positive(grid);
  Constant result{.element = element, .shape = x.shape, .floats = {}, .integers = {}};
  const int64_t count = call.importer().take_room(x.shape);
  result.integers.resize(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto k = static_cast<std::size_t>(interchange::broadcast_place(i, x.shape, grid.shape));
    const float number = is_floating(x.element) ? (*x.floats)[at] : static_cast<float>(x.integers[at].factor);
    const float least = static_cast<float>(low) - grid.zero_points[k];
    const float most = static_cast<float>(high) - grid.zero_points[k];
    const float steps = std::fmin(std::fmax(number / grid.scales[k], least), most);
    result.integers[at].factor = static_cast<int64_t>(std::nearbyint(steps) + grid.zero_points[k]);
  }
  return constant_value(std::move(result));
}

// If q are the integers of a tensor by this scale and zero point: the layer `quantize` of that tensor. All readers of q
// share it.
std::optional<Value> rounded(Call& call, const Value& q, const Grid& grid) {
  const LayerSpec* const stored = call.importer().find_layer(q.layer);
  if (stored == nullptr || stored->type != "quantize_linear" || grid.scales.size() != 1) return std::nullopt;
  const auto& tensors = call.importer().tensors_of(q.layer);
  const auto is_only = [&](const char* name, float number) {
    return *tensors.at(name).values == std::vector<float>{number};
  };
  if (!is_only("scale", grid.scales[0]) || !is_only("zero_point", grid.zero_points[0])) return std::nullopt;
  const int64_t low = std::stoll(stored->parameters[0].values[0]), high = std::stoll(stored->parameters[1].values[0]);
  constexpr int64_t kSteps = 255;
  if (high - low != kSteps) return std::nullopt;
  const std::string shared = q.layer + "\tdequantized";
  if (const Value* made = call.importer().find_value(shared)) return *made;
  const Value source{.constant = {}, .layer = stored->from.front(), .shape = {}};
  const auto zero_point = static_cast<double>(static_cast<int64_t>(grid.zero_points[0]) - low);
  const Value y = call.layer(
      "quantize", {&source},
      {{"scale", {text(static_cast<double>(grid.scales[0]))}}, {"zero_point", {text(zero_point)}}}, row_of(q));
  call.importer().set_value(shared, y);
  return y;
}

Shape merged_row(const Value& a, const Value& b) {
  Shape first = row_of(a);
  const Shape second = row_of(b);
  bool fits = first.size() == second.size();
  for (std::size_t i = 0; fits && i < first.size(); ++i) fits = second[i] == 1 || second[i] == first[i];
  if (!fits) throw Unsupported("takes values of " + to_string(a.shape) + " and " + to_string(b.shape));
  return first;
}

// DynamicQuantizeLinear gives scales and zero points of data.
Value dequantized_by_data(Call& call, const Value& q, const Quantization& by) {
  if (q.constant) throw Unsupported("the scale and zero point of a constant must be known before the network runs");
  const Value one = constant_value(floats_constant({}, {1}));
  Value y = q;
  if (by.zero_point != nullptr && by.zero_point->constant) {
    y = dequantized(call, q, {.scale = &one, .zero_point = by.zero_point, .axis = by.axis, .block = by.block});
  } else if (by.zero_point != nullptr) {
    y = call.layer("subtract", {&q, by.zero_point}, {}, merged_row(q, *by.zero_point), "shifted");
  }
  if (by.scale->constant) return dequantized(call, y, {.scale = by.scale, .axis = by.axis, .block = by.block});
  return call.layer("multiply", {&y, by.scale}, {}, merged_row(y, *by.scale));
}

Value in_steps(Call& call, const Value& x, const Grid& grid, const std::pair<int64_t, int64_t>& range) {
  Keys keys = {{"low", {std::to_string(range.first)}}, {"high", {std::to_string(range.second)}}};
  for (auto& key : shape_key(grid)) keys.push_back(std::move(key));
  Value y = call.layer("quantize_linear", {&x}, keys, row_of(x));
  set_grid(call, y, grid);
  return y;
}

// The scale is data. Steps beyond 65,535 are out of the range, whatever the zero point of up to 16 bits is.
Value quantized_by_data(Call& call, const Value& x, const Quantization& by, const std::pair<int64_t, int64_t>& range) {
  constexpr int64_t kFar = 65535;
  if (x.constant || by.scale->constant) {
    throw Unsupported("its scale and zero point must be known before the network runs");
  }
  const Value steps = call.layer("divide", {&x, by.scale}, {}, merged_row(x, *by.scale), "steps");
  const Value one = constant_value(floats_constant({}, {1}));
  const Value* const zero_point = by.zero_point;
  if (zero_point == nullptr || zero_point->constant) {
    const Quantization whole{.scale = &one, .zero_point = zero_point, .axis = by.axis, .block = by.block};
    return in_steps(call, steps, within_row(grid_of(call, whole_shape(x), whole), x.shape.size()), range);
  }
  const Value whole = in_steps(call, steps, {.shape = {}, .scales = {1}, .zero_points = {0}}, {-kFar, kFar});
  const Value sum = call.layer("add", {&whole, zero_point}, {}, merged_row(whole, *zero_point), "shifted");
  const Keys limits = {{"low", {std::to_string(range.first)}}, {"high", {std::to_string(range.second)}}};
  return call.layer("clamp", {&sum}, limits, row_of(sum));
}

// The type of the integers: that of the zero point, or of the attribute.
Element stored_element(const Call& call) {
  if (call.has(2)) return call.input(2).constant ? call.input(2).constant->element : call.input(2).element;
  const int64_t given = call.integer("output_dtype", 0);
  return given == 0 ? Element::u8 : static_cast<Element>(given);
}

Quantization quantization_of(const Call& call) {
  const int64_t block = call.integer("block_size", 0);
  if (block < 0) throw Unsupported("its block_size is " + std::to_string(block));
  const Value& x = call.input(0);
  Quantization by{.scale = &call.input(1), .zero_point = call.has(2) ? &call.input(2) : nullptr, .block = block};
  // With one scale the axis has no meaning, and need not be a dimension.
  const auto is_one = [](const Value* value) {
    return value == nullptr || !value->constant || element_count(value->constant->shape) == 1;
  };
  const bool has_axis = block > 0 || !is_one(by.scale) || !is_one(by.zero_point);
  if (has_axis) by.axis = call.axis("axis", 1, x.shape.size());
  return by;
}

void quantize(Call& call) { call.give(quantized(call, call.input(0), quantization_of(call), stored_element(call))); }

void dequantize(Call& call) {
  const Quantization by = quantization_of(call);
  const Value y = dequantized(call, call.input(0), by);
  call.give(y.constant ? y : with_element(y, numbers_of(*by.scale)));
}

// The importer removes those of the three layers that nothing reads.
void quantize_dynamically(Call& call) {
  const Value& x = call.data(0);
  const Shape row = call.sample(0), one(row.size(), 1);
  const auto give = [&](std::size_t output, const char* gives, const Shape& shape, Element element) {
    const std::vector<std::string>& names = call.node().outputs;
    if (output > 0 && output < names.size() && call.importer().is_output(names[output])) {
      throw Unsupported("its " + std::string(gives) + ", one number, is the graph's output; layers give rows");
    }
    const Value y = call.layer("dynamic_quantize", {&x}, {{"gives", {gives}}}, shape, output == 0 ? "" : gives);
    call.give(output, with_element(y, element));
  };
  give(0, "values", row, Element::u8);
  give(1, "scale", one, Element::f32);
  give(2, "zero_point", one, Element::u8);
}

}  // namespace

std::pair<int64_t, int64_t> integers_of(Element element) {
  switch (element) {
    case Element::u4:
      return {0, 15};
    case Element::i4:
      return {-8, 7};
    case Element::u8:
      return {0, 255};
    case Element::i8:
      return {-128, 127};
    case Element::u16:
      return {0, 65535};
    case Element::i16:
      return {-32768, 32767};
    default:
      throw Unsupported("makes " + name_of(element) + " of numbers; integers of 4, 8 and 16 bits can be imported");
  }
}

Value dequantized(Call& call, const Value& q, const Quantization& by) {
  if (!is_known(by)) return dequantized_by_data(call, q, by);
  if (q.constant) return dequantized_constant(call, *q.constant, by);
  const Grid grid = within_row(grid_of(call, whole_shape(q), by), q.shape.size());
  require_positive(grid);
  if (grid.is_identity()) return with_element(q, Element::f32);
  if (std::optional<Value> y = rounded(call, q, grid)) return *std::move(y);
  Value y = call.layer("dequantize_linear", {&q}, shape_key(grid), row_of(q));
  set_grid(call, y, grid);
  return y;
}

Value quantized(Call& call, const Value& x, const Quantization& by, Element element) {
  const std::pair<int64_t, int64_t> range = integers_of(element);
  if (!is_known(by)) return with_element(quantized_by_data(call, x, by, range), element);
  if (x.constant) return quantized_constant(call, *x.constant, by, element);
  const Grid grid = within_row(grid_of(call, whole_shape(x), by), x.shape.size());
  require_positive(grid);
  return with_element(in_steps(call, x, grid, range), element);
}

void keep_scales(Call& call, const Value& layer, const Shape& shape, const Constant& weights) {
  LayerSpec* const spec = call.importer().find_layer(layer.layer);
  if (weights.scales == nullptr || spec == nullptr || (spec->type != "conv2d" && spec->type != "linear")) return;
  constexpr float kLeast = -128, kMost = 127;
  const auto outputs = static_cast<std::size_t>(shape[0]);
  const std::vector<float>&scales = *weights.scales, &values = *weights.floats;
  if (scales.size() != 1 && scales.size() != outputs) return;
  const std::size_t row = values.size() / outputs;
  std::vector<float> kept(outputs);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float scale = kept[i / row] = scales[scales.size() == 1 ? 0 : i / row];
    const float whole = std::nearbyint(values[i] / scale);
    if (!(scale > 0) || !(whole >= kLeast) || !(whole <= kMost) || whole * scale != values[i]) return;
  }
  spec->parameters.push_back({"int8_weight", {text(true)}, {}});
  const Shape of_outputs = {shape[0]};
  call.set_tensor(layer, "weight_scale", of_outputs, floats_constant(of_outputs, std::move(kept)));
}

std::vector<OpRow> quantization_rows() {
  return {{"QuantizeLinear", 10, quantize, BatchIn::rows},
          {"DequantizeLinear", 10, dequantize, BatchIn::rows},
          {"DynamicQuantizeLinear", 11, quantize_dynamically, BatchIn::rows}};
}

}  // namespace gpunn::interchange
