#include "interchange/onnx/operands.hpp"

#include <algorithm>
#include <numeric>

#include "interchange/onnx/constants/number_format.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/fold.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

Operands::Operands(Call& call, std::vector<Value> operands, std::size_t last)
    : call_(call), operands_(std::move(operands)) {
  for (const Value& one : operands_) rank_ = std::max(rank_, one.shape.size());
  for (Value& one : operands_) {
    if (one.constant) continue;
    std::vector<int64_t> front(rank_ - one.shape.size());
    std::iota(front.begin(), front.end(), 0);
    if (!front.empty()) one = unsqueezed(call_, one, front);
  }
  find_place(last);
  for (Value& one : operands_) {
    one = one.constant ? constant_value(without_batch(as_floats(*one.constant))) : batch_first(call_, one);
    const Shape row = one.constant ? one.constant->shape : row_of(one);
    row_ = broadcast_shape(row_, Shape(row.begin(), row.end() - static_cast<std::ptrdiff_t>(last)));
  }
}

std::string Operands::joined_shapes() const {
  std::string shapes;
  for (const Value& one : operands_) {
    if (!one.constant) shapes += (shapes.empty() ? "" : " and ") + to_string(one.shape);
  }
  return shapes;
}

// A value that comes whole for each row has the batch where the others have it, in a dimension of 1. Where batches are
// in different places otherwise, those of one row go outside.
void Operands::find_place(std::size_t last) {
  place_ = BatchPlace::outside();
  bool is_found = false, is_mixed = false;
  for (const Value& one : operands_) {
    if (one.constant) continue;
    is_found = true;
    if (place_.is_outside()) place_ = place_of(one);
  }
  if (!is_found) throw Unsupported("takes constants alone");
  for (Value& one : operands_) {
    if (one.constant) continue;
    const bool is_whole = place_of(one).is_outside() && call_.importer().baked_batch() != 1;
    if (is_whole && !place_.is_outside()) one = with_batch_in(call_, one, place_);
    is_mixed = is_mixed || place_ != place_of(one);
  }
  is_mixed = is_mixed || (!place_.is_outside() && place_.dimension + last >= rank_);
  if (!is_mixed) return;
  place_ = BatchPlace::outside();
  for (Value& one : operands_) {
    if (one.constant) continue;
    const std::optional<Value> whole = outside(call_, one);
    if (!whole) {
      throw Unsupported("takes values of " + joined_shapes() + ", whose batches are in different places");
    }
    one = *whole;
  }
}

// A constant of fewer dimensions has 1 for those in front.
Constant Operands::without_batch(const Constant& constant) const {
  Constant own = constant;
  own.shape.insert(own.shape.begin(), rank_ - own.shape.size(), 1);
  if (place_.is_outside()) {
    if (own.shape.empty()) own.shape = {1};
    return own;
  }
  if (own.shape[place_.dimension] != 1) {
    throw Unsupported("its constant " + gpunn::to_string(constant.shape) + " differs along the batch");
  }
  if (place_.others == 1) own.shape.erase(own.shape.begin() + static_cast<std::ptrdiff_t>(place_.dimension));
  if (own.shape.empty()) own.shape = {1};
  return own;
}

Value Operands::layered(std::size_t i) {
  const Value& one = operands_[i];
  return one.constant ? constant_layer(call_, *one.constant, one.constant->shape) : one;
}

std::vector<Value> Operands::all_layered() {
  std::vector<Value> result;
  for (std::size_t i = 0; i < operands_.size(); ++i) result.push_back(layered(i));
  return result;
}

Value Operands::in_place(const Value& result) const {
  if (place_ == BatchPlace() && rank_ > 1) return result;
  return placed(call_, result, place_, rank_);
}

Value constant_layer(Call& call, const Constant& constant, const Shape& row) {
  const bool is_trained = constant.trained && element_count(row) > 1;
  Value y = call.layer("constant", {}, {{"shape", texts(row)}, {"trained", {text(is_trained)}}}, row, "constant");
  call.set_tensor(y, "value", row, constant);
  return y;
}

namespace {

Value merged(Call& call, Operands& operands, const std::string& layer, const Keys& keys) {
  const std::vector<Value> values = operands.all_layered();
  std::vector<const Value*> from;
  for (const Value& one : values) from.push_back(&one);
  return operands.in_place(call.layer(layer, from, keys, operands.row()));
}

// Whether a value is the input, or what a few constants that stay as they are make of it.
bool is_of_input(Call& call, const std::string& name) {
  constexpr int kMostSteps = 16;
  std::string source = name;
  for (int step = 0; step < kMostSteps && !call.importer().is_input(source); ++step) {
    const LayerSpec* layer = call.importer().find_layer(source);
    if (layer == nullptr || layer->type != "affine") return false;
    const bool is_fixed = std::ranges::any_of(layer->parameters, [](const LayerParameter& one) {
      return one.name == "trained" && one.values == std::vector<std::string>{text(false)};
    });
    if (!is_fixed) return false;
    source = layer->from.front();
  }
  return call.importer().is_input(source);
}

// x times or plus a constant that broadcasts to it, `tensor` being the name that the layer has for it. A constant that
// training may change is a parameter, another one a buffer.
Value affine(Call& call, const Value& x, const Constant& constant, const char* tensor) {
  const Shape row = row_of(x);
  Shape shape = constant.shape;
  while (shape.size() > 1 && shape.front() == 1) shape.erase(shape.begin());
  const bool by_channel = shape.size() == row.size() && shape.front() == row.front() && element_count(shape) == row[0];
  if (by_channel) shape = {row.front()};
  const bool trained = constant.trained && element_count(shape) > 1 && !is_of_input(call, x.layer);
  const bool is_weight = std::string_view(tensor) == "weight";
  Keys keys = {{is_weight ? "bias" : "weight", {text(false)}}, {"trained", {text(trained)}}};
  if (!by_channel) keys.push_back({"shape", texts(shape)});
  Value y = call.layer("affine", {&x}, keys, row);
  call.set_tensor(y, tensor, shape, constant);
  return y;
}

// The layer `type` of two operands, or an `affine` of data and a constant that does not make it larger.
Value combined(Call& call, const Value& a, const Value& b, const char* type, const char* tensor) {
  Operands operands(call, {a, b});
  for (const std::size_t data : {std::size_t{0}, std::size_t{1}}) {
    const Value &x = operands[data], &other = operands[1 - data];
    if (x.constant || !other.constant || row_of(x) != operands.row()) continue;
    return operands.in_place(affine(call, x, *other.constant, tensor));
  }
  return merged(call, operands, type, {});
}

Value mapped(const Value& from, float (*function)(float)) {
  Constant result = as_floats(*from.constant);
  std::vector<float> values = *result.floats;
  std::ranges::transform(values, values.begin(), function);
  result.floats = std::make_shared<const std::vector<float>>(std::move(values));
  return constant_value(std::move(result));
}

// Arithmetic of integers gives integers of their type.
Value of_type(Call& call, const Value& a, const Value& b, const Value& y) {
  const Element element = a.constant ? b.element : a.element;
  return is_floating(element) ? y : wrapped(call, y, element);
}

}  // namespace

Value elementwise(Call& call, const std::string& layer, std::vector<Value> operands, const Keys& keys) {
  Operands aligned(call, std::move(operands));
  return merged(call, aligned, layer, keys);
}

Value elementwise_op(Call& call, const std::string& op, std::vector<Value> operands) {
  return elementwise(call, "op", std::move(operands), {{"op", {op}}});
}

Value wrapped(Call& call, const Value& x, Element element) {
  Value y = x;
  y.element = element;
  const NumberFormat format = format_of(element);
  constexpr int kMostBits = 16;
  if (format.kind != NumberKind::integer || element == Element::boolean || format.bits > kMostBits) return y;
  const float range = static_cast<float>(1 << format.bits), low = format.is_signed ? -range / 2 : 0;
  const Value steps = elementwise(call, "round", {product_of(call, sum_of(call, x, number(-low)), number(1 / range))},
                                  {{"mode", {"floor"}}});
  y = difference_of(call, x, product_of(call, steps, number(range)));
  y.element = element;
  return y;
}

Value number(float value) { return constant_value(floats_constant({}, {value})); }

Value integers(const std::vector<int64_t>& values) { return constant_value(integers_constant(values)); }

Attribute attribute(const char* name, int64_t value) { return {.name = name, .reference = {}, .value = value}; }

Attribute attribute(const char* name, std::vector<int64_t> value) {
  return {.name = name, .reference = {}, .value = std::move(value)};
}

Value sum_of(Call& call, const Value& a, const Value& b) {
  return of_type(call, a, b, combined(call, a, b, "add", "bias"));
}

Value difference_of(Call& call, const Value& a, const Value& b) {
  if (b.constant) return of_type(call, a, b, combined(call, a, mapped(b, [](float x) { return -x; }), "add", "bias"));
  return of_type(call, a, b, elementwise(call, "subtract", {a, b}));
}

Value product_of(Call& call, const Value& a, const Value& b) {
  return of_type(call, a, b, combined(call, a, b, "multiply", "weight"));
}

Value quotient_of(Call& call, const Value& a, const Value& b) {
  Value y = elementwise(call, "divide", {a, b});
  const Element element = a.constant ? b.element : a.element;
  if (is_floating(element)) return y;
  return wrapped(call, elementwise(call, "round", {y}, {{"mode", {"trunc"}}}), element);
}

Value comparison_of(Call& call, const std::string& is, const Value& a, const Value& b) {
  Value y = elementwise(call, "compare", {a, b}, {{"is", {is}}});
  y.element = Element::boolean;
  return y;
}

Value choice_of(Call& call, const Value& condition, const Value& a, const Value& b) {
  Value y = elementwise(call, "where", {condition, a, b});
  y.element = a.element;
  return y;
}

}  // namespace gpunn::interchange
