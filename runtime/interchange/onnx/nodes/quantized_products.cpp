// Convolutions and products of quantised tensors: of the numbers that they stand for, or of the integers themselves.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/nodes/quantization.hpp"

namespace gpunn::interchange {

namespace {

// What another operator gives of other inputs, with this node's attributes.
Value computed(Call& call, const std::string& op, const std::vector<const Value*>& inputs) {
  std::vector<Value> values;
  for (const Value* one : inputs) values.push_back(*one);
  return call.apply(op, values, call.node().attributes);
}

Element element_of(const Call& call, std::size_t i) {
  const Value& value = call.input(i);
  return value.constant ? value.constant->element : value.element;
}

const Value* optional_input(const Call& call, std::size_t i) { return call.has(i) ? &call.input(i) : nullptr; }

// The dimension that is this many from the end.
std::size_t from_end(const Value& x, std::size_t places) {
  if (x.shape.size() < places) throw Unsupported("takes a value of " + to_string(x.shape));
  return x.shape.size() - places;
}

// The scale of a convolution's bias is that of the image times that of the filter.
Value dequantized_bias(Call& call, std::size_t i, const Constant& image_scale, const Constant& filter_scales) {
  std::vector<float> scales = *filter_scales.floats;
  if (image_scale.floats->size() != 1) throw Unsupported("its input has several scales");
  for (float& scale : scales) scale *= image_scale.floats->front();
  const Value product = constant_value(floats_constant(filter_scales.shape, std::move(scales)));
  call.constant(i, "the biases");
  return dequantized(call, call.input(i), {.scale = &product});
}

void convolve_quantized(Call& call) {
  enum : std::size_t { kX, kXScale, kXZero, kW, kWScale, kWZero, kYScale, kYZero, kBias };
  const Value x = dequantized(call, call.data(kX), {.scale = &call.input(kXScale), .zero_point = &call.input(kXZero)});
  const Value w = dequantized(call, call.input(kW), {.scale = &call.input(kWScale), .zero_point = &call.input(kWZero)});
  Value bias;
  std::vector<const Value*> inputs = {&x, &w};
  if (call.has(kBias)) {
    bias = dequantized_bias(call, kBias, call.floats(kXScale, "the scales"), call.floats(kWScale, "the scales"));
    inputs.push_back(&bias);
  }
  const Value y = computed(call, "Conv", inputs);
  call.give(
      quantized(call, y, {.scale = &call.input(kYScale), .zero_point = &call.input(kYZero)}, element_of(call, kYZero)));
}

// MatMul checks this too, but it sees the batch in front.
void require_batch_before_matrices(const Call& call, std::size_t b) {
  call.require_batch_before(call.input(b).constant ? 1 : 2);
}

void multiply_quantized(Call& call) {
  enum : std::size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kYScale, kYZero };
  const Value &a = call.input(kA), &b = call.input(kB);
  if (!a.constant || !b.constant) require_batch_before_matrices(call, kB);
  const Value left =
      dequantized(call, a, {.scale = &call.input(kAScale), .zero_point = &call.input(kAZero), .axis = from_end(a, 2)});
  const Value right =
      dequantized(call, b, {.scale = &call.input(kBScale), .zero_point = &call.input(kBZero), .axis = from_end(b, 1)});
  const Value y = computed(call, "MatMul", {&left, &right});
  call.give(
      quantized(call, y, {.scale = &call.input(kYScale), .zero_point = &call.input(kYZero)}, element_of(call, kYZero)));
}

// Sums of products of integers are exact in f32, in whatever order, as long as the sum of their sizes is at most 2^24.
constexpr double kMostExact = 1 << 24;
constexpr double kMostFactor = 255;  // of an integer of eight bits less its zero point

// Which result an element of a constant factor is added up for.
using ResultOf = std::function<std::size_t(std::size_t)>;

double largest_sum(const std::vector<float>& factor, const ResultOf& result_of) {
  std::vector<double> sums;
  for (std::size_t i = 0; i < factor.size(); ++i) {
    const std::size_t result = result_of(i);
    if (result >= sums.size()) sums.resize(result + 1, 0);
    sums[result] += std::abs(static_cast<double>(factor[i]));
  }
  return sums.empty() ? 0 : *std::ranges::max_element(sums);
}

[[noreturn]] void refuse_sum() { throw Unsupported("adds up more products than f32 holds exactly"); }

// Splits a constant into terms whose products are exact: remainders by a power of two, which are small, and multiples
// of that power, whose sums are multiples of it.
std::vector<Constant> exact_parts(const Constant& factor, const ResultOf& result_of) {
  std::vector<float> rest = *factor.floats;
  float unit = 1;
  const auto is_exact = [&](const std::vector<float>& one) {
    return largest_sum(one, result_of) / static_cast<double>(unit) * kMostFactor <= kMostExact;
  };
  if (is_exact(rest)) return {factor};
  std::vector<Constant> parts;
  while (!is_exact(rest)) {
    std::vector<float> small(rest.size());
    float step = unit * 32;
    do {
      step /= 2;
      if (step <= unit) refuse_sum();
      std::ranges::transform(rest, small.begin(), [&](float one) { return one - step * std::nearbyint(one / step); });
    } while (!is_exact(small));
    std::ranges::transform(rest, small, rest.begin(), std::minus<>());
    parts.push_back(floats_constant(factor.shape, std::move(small)));
    unit = step;
  }
  parts.push_back(floats_constant(factor.shape, std::move(rest)));
  return parts;
}

// Runs the operator with each part in place of that input, and adds the results.
Value sum_of_parts(Call& call, const std::string& op, std::vector<const Value*> inputs, std::size_t place,
                   const std::vector<Value>& parts) {
  Value sum;
  for (const Value& part : parts) {
    inputs[place] = &part;
    const Value y = computed(call, op, inputs);
    sum = sum.layer.empty() ? y : call.layer("add", {&sum, &y}, {}, row_of(y), "sum");
  }
  sum.element = Element::i32;
  return sum;
}

Value sum_of_parts(Call& call, const std::string& op, const std::vector<const Value*>& inputs, std::size_t place,
                   const ResultOf& result_of) {
  std::vector<Value> parts;
  for (Constant& part : exact_parts(*inputs[place]->constant, result_of)) {
    parts.push_back(constant_value(std::move(part)));
  }
  return sum_of_parts(call, op, inputs, place, parts);
}

// Subtracts the zero point of an input.
Value shifted(Call& call, std::size_t i, std::size_t zero_point, std::size_t axis) {
  const Value one = constant_value(floats_constant({}, {1}));
  return dequantized(call, call.input(i),
                     {.scale = &one, .zero_point = optional_input(call, zero_point), .axis = axis});
}

void convolve_integers(Call& call) {
  call.data(0);
  const Constant& filters = call.constant(1, "the weights");
  if (filters.shape.empty() || filters.shape.front() < 1) throw Unsupported("its weights are empty");
  const Value x = shifted(call, 0, 2, 0), w = shifted(call, 1, 3, 0);
  const auto filter = w.constant->floats->size() / static_cast<std::size_t>(filters.shape.front());
  call.give(sum_of_parts(call, "Conv", {&x, &w}, 1, [=](std::size_t i) { return i / filter; }));
}

// Splits a factor of data into multiples of 16 and remainders of at most 8.
std::vector<Value> exact_parts(Call& call, const Value& factor, int64_t terms) {
  constexpr double kStep = 16;
  const double products = static_cast<double>(terms) * kMostFactor;
  if (products * kMostFactor <= kMostExact) return {factor};
  if (products * kStep > kMostExact) refuse_sum();
  const Value large =
      call.layer("quantize", {&factor}, {{"scale", {text(kStep)}}, {"zero_point", {"128"}}}, row_of(factor), "large");
  return {large, call.layer("subtract", {&factor, &large}, {}, row_of(factor), "small")};
}

void multiply_integers(Call& call) {
  require_batch_before_matrices(call, 1);
  const Value a = shifted(call, 0, 2, from_end(call.input(0), 2)), b = shifted(call, 1, 3, from_end(call.input(1), 1));
  const auto terms = static_cast<std::size_t>(std::max<int64_t>(1, a.shape.back().factor));
  const auto columns = static_cast<std::size_t>(std::max<int64_t>(1, b.shape.back().factor));
  const std::vector<const Value*> inputs = {&a, &b};
  if (b.constant) {
    return call.give(sum_of_parts(call, "MatMul", inputs, 1,
                                  [=](std::size_t i) { return i / (terms * columns) * columns + i % columns; }));
  }
  if (a.constant) {
    return call.give(sum_of_parts(call, "MatMul", inputs, 0, [=](std::size_t i) { return i / terms; }));
  }
  call.give(sum_of_parts(call, "MatMul", inputs, 1, exact_parts(call, b, static_cast<int64_t>(terms))));
}

}  // namespace

std::vector<OpRow> quantized_product_rows() {
  return {{"QLinearConv", 10, convolve_quantized, BatchIn::front},
          {"QLinearMatMul", 10, multiply_quantized, BatchIn::rows},
          {"ConvInteger", 10, convolve_integers, BatchIn::front},
          {"MatMulInteger", 10, multiply_integers, BatchIn::rows}};
}

}  // namespace gpunn::interchange
