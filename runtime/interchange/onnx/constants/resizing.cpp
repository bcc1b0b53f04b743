// Resizes dimensions.
#include <algorithm>
#include <utility>

#include "interchange/onnx/constants/evaluator.hpp"
#include "interchange/onnx/resize_plan.hpp"

namespace gpunn::interchange::constants {

namespace {

// Copies the element of each line that has a weight. Beyond the ends of the data there are zeros.
Constant copied_along(Call& call, const Constant& x, std::size_t axis, int64_t to, const std::vector<double>& weights) {
  const Lines lines = lines_along(x.shape, axis);
  Shape shape = x.shape;
  shape[axis] = to;
  const Constant zero = cast_constant(integers_constant(Element::i64, {}, {{0, false}}), x.element);
  std::vector<int64_t> places;
  for (auto row = weights.begin(); row != weights.end(); row += lines.size) {
    const auto found = std::find_if(row, row + lines.size, [](double weight) { return weight != 0; });
    places.push_back(found == row + lines.size ? -1 : found - row);
  }
  return assembled(call, {&x, &zero}, shape, [&](int64_t i) {
    const int64_t outer = i / (to * lines.inner), place = places[static_cast<std::size_t>(i / lines.inner % to)];
    if (place < 0) return Origin{1, 0};
    return Origin{0, (outer * lines.size + place) * lines.inner + i % lines.inner};
  });
}

Constant mixed_along(Call& call, const Constant& x, std::size_t axis, int64_t to, const std::vector<double>& weights) {
  const Lines lines = lines_along(x.shape, axis);
  Shape shape = x.shape;
  shape[axis] = to;
  std::vector<double> values(static_cast<std::size_t>(call.importer().take_room(shape)), 0);
  take_work(call, {std::ssize(values), lines.size});
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<int64_t>(i), outer = at / (to * lines.inner), row = at / lines.inner % to;
    for (int64_t j = 0; j < lines.size; ++j) {
      const double weight = weights[static_cast<std::size_t>(row * lines.size + j)];
      const int64_t from = (outer * lines.size + j) * lines.inner + at % lines.inner;
      if (weight != 0) values[i] += weight * (*x.doubles)[static_cast<std::size_t>(from)];
    }
  }
  return numbers_constant(Element::f64, shape, std::move(values));
}

void resize(Call& call) {
  const Constant& x = call.constant(0, "the data");
  const ResizePlan plan = plan_resize(call);
  if (plan.dimensions.size() != x.shape.size()) throw Unsupported("does not resize each dimension");
  const bool copies = plan.rule.mode == "nearest";
  if (!copies) require_floating(x);
  Constant result = copies ? x : numbers_constant(Element::f64, x.shape, numbers_of(x));
  for (std::size_t axis = 0; axis < x.shape.size(); ++axis) {
    const Resized& side = plan.dimensions[axis];
    const int64_t from = x.shape[axis];
    if (side.to == from && side.scale == 1 && plan.rule.places != "tf_crop_and_resize") continue;
    if (from < 1 || side.to < 1)
      throw Unsupported("resizes " + std::to_string(from) + " to " + std::to_string(side.to));
    call.importer().take_room({side.to, from});
    const std::vector<double> weights = resize_weights(plan.rule, from, side.to, side.scale, side.begin, side.end);
    result =
        copies ? copied_along(call, result, axis, side.to, weights) : mixed_along(call, result, axis, side.to, weights);
  }
  if (!copies) result = rounded_constant(x.element, result.shape, *result.doubles);
  call.give_constant(std::move(result));
}

}  // namespace

std::vector<EvaluatorRow> resizing_evaluators() { return {{"Resize", 10, resize}, {"Upsample", 7, resize}}; }

}  // namespace gpunn::interchange::constants
