// Constant folding at import: operators whose inputs are all known.
#pragma once

#include <map>
#include <string_view>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

// False if an input is unknown. Throws Unsupported if it can't be computed.
using Folding = bool (*)(Call&);
using Foldings = std::map<std::string_view, Folding>;

Foldings movement_foldings();    // the same elements in another order or shape
Foldings arithmetic_foldings();  // other elements

// Whether all inputs that are there are constants.
bool all_known(const Call& call);

// A constant of this shape whose element i is the input's element from(i). Throws Unsupported where it, with what was
// computed before, is too large.
template <class Function>
Constant taken(Call& call, const Constant& input, Shape shape, Function from) {
  Constant result{.element = input.element, .shape = std::move(shape), .floats = {}, .integers = {}};
  result.trained = input.trained;
  result.scales = input.scales;
  const int64_t count = call.importer().take_room(result.shape);
  if (is_floating(input.element)) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      values[static_cast<std::size_t>(i)] = (*input.floats)[static_cast<std::size_t>(from(i))];
    }
    result.floats = std::make_shared<const std::vector<float>>(std::move(values));
  } else {
    result.integers.resize(static_cast<std::size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      result.integers[static_cast<std::size_t>(i)] = input.integers[static_cast<std::size_t>(from(i))];
    }
  }
  return result;
}

// A constant with its dimensions in another order.
Constant transposed_constant(Call& call, const Constant& from, const std::vector<int64_t>& order);
// The steps from element to element of each dimension of a packed tensor.
Shape strides_of(const Shape& shape);
// The place among elements of `from` of element i of `to`, to which it broadcasts.
int64_t broadcast_place(int64_t i, const Shape& to, const Shape& from);
// The shape that both broadcast to; throws Unsupported where there is none.
Shape broadcast_shape(const Shape& a, const Shape& b);

}  // namespace gpunn::interchange
