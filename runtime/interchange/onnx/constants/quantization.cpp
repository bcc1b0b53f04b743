// Computes with scales: one for all numbers, one for each entry of a dimension, or one for each block of it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "interchange/onnx/constants/evaluator.hpp"

namespace gpunn::interchange::constants {

namespace {

// Finds the scale and the zero point of each element of the data.
class Scales {
 public:
  Scales(Call& call, const Constant& x, const Constant& scales) {
    const int64_t block = call.integer("block_size", 0);
    shape_ = x.shape;
    if (scales.count() == 1 && scales.shape.size() <= 1) {
      steps_.assign(x.shape.size(), 0);
    } else if (block == 0) {
      const std::size_t axis = call.axis("axis", 1, x.shape.size());
      if (scales.shape != Shape{x.shape[axis]}) refuse(x, scales);
      steps_.assign(x.shape.size(), 0);
      steps_[axis] = 1;
    } else {
      const std::size_t axis = call.axis("axis", 1, x.shape.size());
      if (block < 0 || scales.shape.size() != x.shape.size()) refuse(x, scales);
      Shape fits = x.shape;
      fits[axis] = x.shape[axis] / block + (x.shape[axis] % block != 0 ? 1 : 0);
      if (scales.shape != fits) refuse(x, scales);
      steps_ = strides_of(scales.shape);
      block_ = block;
      axis_ = axis;
    }
  }

  // Calls `visit(element, its scale)` for all elements.
  template <class Visit>
  void for_each(std::size_t count, Visit visit) const {
    Walk<1> walk(shape_, {Shape(shape_.size(), 0)});
    for (std::size_t i = 0; i < count; ++i, walk.next()) {
      int64_t place = 0;
      for (std::size_t d = 0; d < steps_.size(); ++d) place += steps_[d] * (walk.at()[d] / (d == axis_ ? block_ : 1));
      visit(i, static_cast<std::size_t>(place));
    }
  }

 private:
  [[noreturn]] static void refuse(const Constant& x, const Constant& scales) {
    throw Unsupported("its scales " + gpunn::to_string(scales.shape) + " don't fit its data " +
                      gpunn::to_string(x.shape));
  }

  Shape shape_, steps_;
  int64_t block_ = 1;
  std::size_t axis_ = 0;
};

const Constant* zero_points(const Call& call, const Constant& scales) {
  if (!call.has(2)) return nullptr;
  const Constant& zero = call.constant(2, "the zero point");
  if (zero.count() != scales.count()) {
    throw Unsupported("has " + std::to_string(scales.count()) + " scales and " + std::to_string(zero.count()) +
                      " zero points");
  }
  return &zero;
}

// Gives the nearest number of the type, ties to even. Numbers beyond its ends become these.
Size quantized_integer(Element element, double quotient, double zero) {
  if (std::isnan(quotient)) throw Unsupported("makes " + name_of(element) + " of NaN");
  const double value = std::nearbyint(quotient) + zero;
  const double low = real(element, lowest_integer(element)), high = real(element, highest_integer(element));
  return {static_cast<int64_t>(std::clamp(value, low, high)), false};
}

// The zero points have the type of the result, which an attribute can name too.
Element quantized_type(const Call& call, const Constant* zeros) {
  const auto named = static_cast<Element>(call.integer("output_dtype", 0));
  if (zeros == nullptr) return named == Element::none ? Element::u8 : named;
  if (named != Element::none && named != zeros->element)
    throw Unsupported("its zero point is " + name_of(zeros->element));
  return zeros->element;
}

void quantize(Call& call) {
  const Constant &x = call.constant(0, "the data"), &scales = call.constant(1, "the scales");
  if (x.element != Element::i32) require_floating(x);
  if (scales.element != Element::f8e8m0) require_floating(scales);
  const Constant* const zeros = zero_points(call, scales);
  const Element element = quantized_type(call, zeros);
  for (std::size_t i = 0; i < scales.count(); ++i) {
    if (!(scales.number(i) > 0)) throw Unsupported("its scale " + text(scales.number(i)) + " is not above 0");
  }
  // The quotient is rounded to a type before it is rounded to a number of steps.
  const auto precision = static_cast<Element>(call.integer("precision", 0));
  const Element computed = precision != Element::none                                    ? precision
                           : is_floating(x.element) && scales.element == Element::f8e8m0 ? x.element
                                                                                         : scales.element;
  const bool saturates = call.integer("saturate", 1) != 0, is_float = is_floating(element);
  constexpr int kMostBits = 16;
  if (format_of(element).bits > kMostBits || element == Element::boolean || format_of(element).bits == 0 ||
      (is_float && format_of(element).bits == kMostBits)) {
    throw Unsupported("makes " + name_of(element));
  }
  call.importer().take_room(x.shape);
  std::vector<double> floats(is_float ? x.count() : 0);
  std::vector<Size> integers(is_float ? 0 : x.count());
  Scales(call, x, scales).for_each(x.count(), [&](std::size_t i, std::size_t place) {
    const double quotient = rounded(computed, x.number(i) / scales.number(place));
    const double zero = zeros != nullptr ? zeros->number(place) : 0;
    if (is_float) {
      floats[i] = rounded(element, quotient + zero, saturates);
    } else {
      integers[i] = quantized_integer(element, quotient, zero);
    }
  });
  call.give_constant(is_float ? numbers_constant(element, x.shape, std::move(floats))
                              : integers_constant(element, x.shape, std::move(integers)));
}

void dequantize(Call& call) {
  const Constant &x = call.constant(0, "the data"), &scales = call.constant(1, "the scales");
  if (scales.element != Element::f8e8m0) require_floating(scales);
  const Constant* const zeros = zero_points(call, scales);
  if (zeros != nullptr) require_same_type(x, *zeros);
  const auto named = static_cast<Element>(call.integer("output_dtype", 0));
  const Element element = named == Element::none ? scales.element : named;
  call.importer().take_room(x.shape);
  std::vector<double> values(x.count());
  Scales(call, x, scales).for_each(values.size(), [&](std::size_t i, std::size_t place) {
    values[i] = (x.number(i) - (zeros != nullptr ? zeros->number(place) : 0)) * scales.number(place);
  });
  Constant result = rounded_constant(element, x.shape, std::move(values));
  require_floating(result);
  result.trained = x.trained;
  if (call.integer("block_size", 0) == 0) result.scales = scales.floats;
  call.give_constant(std::move(result));
}

// Takes the scale from the data: 0 is a step, and the largest and the smallest number are the last ones.
void quantize_by_range(Call& call) {
  const Constant& x = call.constant(0, "the data");
  if (x.element != Element::f32) throw Unsupported("takes " + name_of(x.element) + "; expected float");
  call.importer().take_room(x.shape);
  const std::vector<double> numbers = numbers_of(x);
  double least = 0, most = 0;
  for (const double number : numbers) {
    if (!std::isfinite(number)) throw Unsupported("has no range: one of its numbers is " + text(number));
    least = std::min(least, number);
    most = std::max(most, number);
  }
  constexpr double kSteps = 255;
  const auto single = [](double value) { return rounded(Element::f32, value); };
  // Any scale fits zeros. ONNX Runtime takes 1.
  const double scale = least == most ? 1 : single(single(most - least) / kSteps);
  const double zero = std::nearbyint(std::clamp(single(-least / scale), 0.0, kSteps));
  std::vector<Size> values;
  for (const double number : numbers) values.push_back(quantized_integer(Element::u8, single(number / scale), zero));
  call.give(0, constant_value(integers_constant(Element::u8, x.shape, std::move(values))));
  call.give(1, constant_value(floats_constant({}, {static_cast<float>(scale)})));
  call.give(2, constant_value(integers_constant(Element::u8, {}, {{static_cast<int64_t>(zero), false}})));
}

}  // namespace

std::vector<EvaluatorRow> quantization_evaluators() {
  return {{"DequantizeLinear", 10, dequantize},
          {"DynamicQuantizeLinear", 11, quantize_by_range},
          {"QuantizeLinear", 10, quantize}};
}

}  // namespace gpunn::interchange::constants
