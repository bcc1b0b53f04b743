#include "interchange/onnx/resize_plan.hpp"

#include <algorithm>
#include <cmath>

#include "interchange/onnx/elements.hpp"

namespace gpunn::interchange {

namespace {

// Spreads numbers for each of `axes` over all dimensions.
template <class Number>
std::vector<Number> of_all(const std::vector<Number>& given, const std::vector<std::size_t>& axes, std::size_t rank,
                           Number otherwise) {
  if (given.size() != axes.size()) throw Unsupported("does not have a number for each dimension");
  std::vector<Number> all(rank, otherwise);
  for (std::size_t i = 0; i < axes.size(); ++i) all[axes[i]] = given[i];
  return all;
}

std::vector<double> numbers_in(const Call& call, std::size_t input, const char* what) {
  const Constant& found = call.floats(input, what);
  return {found.floats->begin(), found.floats->end()};
}

std::vector<Resized> by_scales(const Call& call, const std::vector<double>& scales) {
  const Sizes& from = call.input(0).shape;
  std::vector<Resized> result;
  constexpr double kMost = 65536;
  for (std::size_t i = 0; i < scales.size() && i < from.size(); ++i) {
    const double length = scales[i] * static_cast<double>(from[i].factor);
    if (!(scales[i] > 0 && length <= kMost)) throw Unsupported("resizes by " + text(scales[i]));
    result.push_back({.to = static_cast<int64_t>(std::floor(length)), .scale = scales[i]});
  }
  return result;
}

// Where proportions are kept, one scale for all makes each side at most, or at least, the wanted size.
std::vector<Resized> by_sizes(Call& call, const Constant& wanted, const std::vector<std::size_t>& axes) {
  const Sizes& from = call.input(0).shape;
  if (is_floating(wanted.element) || wanted.integers.size() != axes.size()) throw Unsupported("has no sizes");
  std::vector<Resized> result;
  for (const Size& size : from) result.push_back({.to = size.factor});
  const std::string policy = call.word("keep_aspect_ratio_policy", "stretch");
  double shared = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Size own = from[axes[i]], size = wanted.integers[i];
    if (own.of_batch && !size.of_batch && size.factor == call.importer().baked_batch()) continue;
    if (own.of_batch != size.of_batch) throw Unsupported("resizes the batch");
    const double scale = static_cast<double>(size.factor) / static_cast<double>(own.factor);
    result[axes[i]] = {.to = size.factor, .scale = scale};
    const bool is_first = shared == 0;
    shared = is_first ? scale : policy == "not_larger" ? std::min(shared, scale) : std::max(shared, scale);
  }
  if (policy == "stretch") return result;
  if (policy != "not_larger" && policy != "not_smaller") throw Unsupported("keeps proportions by " + policy);
  for (const std::size_t axis : axes) {
    const double length = shared * static_cast<double>(from[axis].factor);
    result[axis] = {.to = static_cast<int64_t>(std::floor(length + 0.5)), .scale = shared};
  }
  return result;
}

ResizePlan plan_10(const Call& call, const std::vector<double>& scales) {
  // ONNX's text up to opset 10 does not say where the pixels of the result lie.
  const bool is_whole = std::ranges::all_of(scales, [](double scale) { return scale == std::floor(scale); });
  if (!is_whole) throw Unsupported("resizes by a factor that is not whole, which opset 11 defines first");
  return {.rule = {.mode = call.word("mode", "nearest"), .places = "asymmetric", .rounding = "floor"},
          .dimensions = by_scales(call, scales)};
}

ResizePlan plan_11(Call& call) {
  const std::size_t rank = call.input(0).shape.size();
  std::vector<std::size_t> axes;
  for (const int64_t given : call.list("axes")) {
    const int64_t axis = given < 0 ? given + static_cast<int64_t>(rank) : given;
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) throw Unsupported("resizes a dimension that is not there");
    axes.push_back(static_cast<std::size_t>(axis));
  }
  for (std::size_t i = 0; !call.has_attribute("axes") && i < rank; ++i) axes.push_back(i);
  const ResizeRule rule = {.mode = call.word("mode", "nearest"),
                           .places = call.word("coordinate_transformation_mode", "half_pixel"),
                           .rounding = call.word("nearest_mode", "round_prefer_floor"),
                           .cubic_a = call.number("cubic_coeff_a", -0.75),
                           .excludes_outside = call.integer("exclude_outside", 0) != 0,
                           .has_filter = call.integer("antialias", 0) != 0};
  std::vector<Resized> dimensions = call.has(3)
                                        ? by_sizes(call, call.constant(3, "the size"), axes)
                                        : by_scales(call, of_all(numbers_in(call, 2, "the factors"), axes, rank, 1.0));
  for (std::size_t i = 0; rule.places == "align_corners" && !call.has(3) && i < rank; ++i) {
    const double length = dimensions[i].scale * static_cast<double>(call.input(0).shape[i].factor);
    if (length != std::floor(length)) {
      throw Unsupported(
          "aligns corners of a length that its factor does not make whole, where ONNX's reference and ONNX Runtime "
          "disagree. Export it with the size of the result");
    }
  }
  if (rule.places == "tf_crop_and_resize") {
    if (call.number("extrapolation_value", 0) != 0) throw Unsupported("fills what is beyond the image with a number");
    const std::vector<double> parts = numbers_in(call, 1, "the part");
    if (parts.size() != 2 * axes.size()) throw Unsupported("does not tell which part of each dimension it takes");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      dimensions[axes[i]].begin = parts[i];
      dimensions[axes[i]].end = parts[axes.size() + i];
    }
  }
  return {rule, dimensions};
}

}  // namespace

ResizePlan plan_resize(Call& call) {
  constexpr int64_t kFactorsAreInputs = 9, kHasPlaces = 11;
  if (call.node().op == "Resize" && call.opset() >= kHasPlaces) return plan_11(call);
  if (call.opset() >= kFactorsAreInputs) return plan_10(call, numbers_in(call, 1, "the factors"));
  const std::vector<float> scales = call.numbers("scales");
  return plan_10(call, {scales.begin(), scales.end()});
}

}  // namespace gpunn::interchange
