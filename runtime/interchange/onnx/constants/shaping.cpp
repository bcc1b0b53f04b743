// Gives elements another shape.
#include <algorithm>
#include <utility>

#include "interchange/onnx/constants/evaluator.hpp"

namespace gpunn::interchange::constants {

namespace {

void give_shaped(Call& call, Shape shape) {
  Constant result = call.constant(0, "the data");
  if (checked_count(shape) != checked_count(result.shape)) {
    throw Unsupported("makes " + gpunn::to_string(shape) + " of a constant " + gpunn::to_string(result.shape));
  }
  result.shape = std::move(shape);
  call.give_constant(std::move(result));
}

void pass(Call& call) { call.give(call.input(0)); }

// Nothing is dropped outside of training; the mask says that all is kept.
void drop_out(Call& call) {
  if (call.has(2) && call.scalar(2, "the mode") != 0 && (!call.has(1) || call.scalar(1, "the ratio") != 0)) {
    throw Unsupported("is as in training; export the network in evaluation mode");
  }
  pass(call);
  constexpr int64_t kMaskOfTruths = 10;
  if (call.node().outputs.size() < 2 || !call.importer().is_used(call.node().outputs[1])) return;
  const Constant& x = call.constant(0, "the data");
  call.importer().take_room(x.shape);
  const Constant kept = truths_constant(x.shape, std::vector<bool>(x.count(), true));
  call.give(1, constant_value(call.opset() < kMaskOfTruths ? cast_constant(kept, x.element) : kept));
}

void reshape(Call& call) {
  const Shape& from = call.constant(0, "the data").shape;
  Shape shape = call.integers(1, "the shape");
  const bool keeps_zeros = call.integer("allowzero", 0) != 0;
  std::ptrdiff_t open = -1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !keeps_zeros) {
      if (i >= from.size()) throw Unsupported("keeps dimension " + std::to_string(i) + ", which is not there");
      shape[i] = from[i];
    } else if (shape[i] == -1) {
      if (open >= 0) throw Unsupported("leaves two sizes open");
      open = static_cast<std::ptrdiff_t>(i);
    }
  }
  if (open < 0) return give_shaped(call, std::move(shape));
  shape[static_cast<std::size_t>(open)] = 1;
  const int64_t rest = checked_count(shape).value_or(0);
  if (rest == 0) throw Unsupported("leaves a size open that any number fits");
  shape[static_cast<std::size_t>(open)] = element_count(from) / rest;
  give_shaped(call, std::move(shape));
}

void flatten(Call& call) {
  const Shape& shape = call.constant(0, "the data").shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t given = call.integer("axis", 1), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) throw Unsupported("flattens from dimension " + std::to_string(given) + " on");
  give_shaped(call, {element_count(Shape(shape.begin(), shape.begin() + axis)),
                     element_count(Shape(shape.begin() + axis, shape.end()))});
}

void squeeze(Call& call) {
  Shape shape = call.constant(0, "the data").shape;
  std::vector<std::size_t> axes = sound_axes(call, axes_of(call, 1), shape.size());
  if (!call.has(1) && !call.has_attribute("axes")) {
    std::erase(shape, 1);
    return give_shaped(call, std::move(shape));
  }
  std::ranges::sort(axes, std::greater<>());
  for (const std::size_t axis : axes) {
    if (shape[axis] != 1) throw Unsupported("takes away a dimension of " + std::to_string(shape[axis]));
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  give_shaped(call, std::move(shape));
}

void unsqueeze(Call& call) {
  Shape shape = call.constant(0, "the data").shape;
  const std::vector<int64_t> given = axes_of(call, 1);
  std::vector<std::size_t> axes = sound_axes(call, given, shape.size() + given.size());
  std::ranges::sort(axes);
  for (const std::size_t axis : axes) shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
  give_shaped(call, std::move(shape));
}

}  // namespace

std::vector<EvaluatorRow> shaping_evaluators() {
  return {
      {"Dropout", 1, drop_out, first_known},
      {"Flatten", 1, flatten},
      {"Identity", 1, pass},
      {"Reshape", 5, reshape},
      {"Squeeze", 1, squeeze},
      {"Unsqueeze", 1, unsqueeze},
  };
}

}  // namespace gpunn::interchange::constants
