// Images and lines of another size.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"
#include "interchange/onnx/resize_weights.hpp"

namespace gpunn::interchange {

namespace {

// What becomes of a dimension of the input.
struct Resized {
  int64_t to = 0;
  double scale = 1, begin = 0, end = 1;  // begin, end: the part that tf_crop_and_resize takes
};
using Dimensions = std::vector<Resized>;

// As the layer `upsample` does it, which is faster: each pixel repeated, or means of neighbours around the centres of
// pixels, by whole factors.
std::string whole_mode(const ResizeRule& rule, const std::array<Resized, 2>& sides) {
  constexpr double kMost = 64;
  bool small = true;
  for (const Resized& side : sides) {
    if (side.scale < 1 || side.scale > kMost || side.scale != std::floor(side.scale)) return "";
    small = small && side.scale <= 2;
  }
  const bool by_centre = rule.places == "half_pixel" || rule.places == "pytorch_half_pixel";
  if (rule.mode == "linear" && by_centre && !rule.excludes_outside) return "bilinear";
  if (rule.mode != "nearest") return "";
  // Which of these roundings gives copies follows from the places; that of halves does at a factor of 2 alone.
  if (by_centre && rule.rounding.starts_with("round_prefer")) return "nearest";
  const bool copies = rule.rounding == "floor" || (small && rule.rounding == "round_prefer_floor");
  return rule.places == "asymmetric" && copies ? "nearest" : "";
}

Value resized_image(Call& call, const Value& image, const ResizeRule& rule, const std::array<Resized, 2>& sides) {
  const Shape row = row_of(image);
  const Shape whole = {row[0], sides[0].to, sides[1].to};
  if (const std::string mode = whole_mode(rule, sides); !mode.empty()) {
    const Shape factors = {std::llround(sides[0].scale), std::llround(sides[1].scale)};
    return call.layer("upsample", {&image}, {{"factor", texts(factors)}, {"mode", {mode}}}, whole);
  }
  Keys keys;
  std::array<Constant, 2> weights;
  constexpr std::array<const char*, 2> kNames = {"rows", "columns"};
  for (std::size_t i = 0; i < 2; ++i) {
    const Resized& side = sides[i];
    const bool stays = side.to == row[i + 1] && side.scale == 1 && rule.places != "tf_crop_and_resize";
    if (stays) continue;
    keys.push_back({kNames[i], {std::to_string(side.to)}});
    call.importer().take_room({side.to, row[i + 1]});
    weights[i] = floats_constant({side.to, row[i + 1]},
                                 resize_weights(rule, row[i + 1], side.to, side.scale, side.begin, side.end));
  }
  if (keys.empty()) return image;
  Value y = call.layer("resize", {&image}, keys, whole);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!weights[i].shape.empty()) call.set_tensor(y, kNames[i], weights[i].shape, weights[i]);
  }
  return y;
}

// By rows and columns of images [C, H, W], or of lines [C, L].
void resize_by(Call& call, const ResizeRule& rule, const Dimensions& dimensions) {
  const Shape row = call.sample(0);
  const bool is_line = row.size() == 2;
  constexpr int64_t kMost = 65536;
  bool fits = (is_line || row.size() == 3) && dimensions.size() == row.size() + 1;
  for (std::size_t i = 0; fits && i < dimensions.size(); ++i) {
    const Resized& one = dimensions[i];
    fits = i < 2 ? one.scale == 1 && one.begin == 0 && one.end == 1 : one.to >= 1 && one.to <= kMost;
  }
  if (!fits)
    throw Unsupported("resizes " + to_string(call.data(0).shape) + " in other dimensions than an image's sides");
  if (!is_line) return call.give(resized_image(call, call.data(0), rule, {dimensions[2], dimensions[3]}));
  const Value image = call.reshaped(call.data(0), {row[0], 1, row[1]});
  const Value y = resized_image(call, image, rule, {Resized{.to = 1}, dimensions[2]});
  call.give(call.reshaped(y, {row[0], dimensions[2].to}));
}

// Those of all dimensions from one for each of `axes`.
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

Dimensions by_scales(const Call& call, const std::vector<double>& scales) {
  const Sizes& from = call.data(0).shape;
  Dimensions result;
  constexpr double kMost = 65536;
  for (std::size_t i = 0; i < scales.size() && i < from.size(); ++i) {
    const double length = scales[i] * static_cast<double>(from[i].factor);
    if (!(scales[i] > 0 && length <= kMost)) throw Unsupported("resizes by " + text(scales[i]));
    result.push_back({.to = static_cast<int64_t>(std::floor(length)), .scale = scales[i]});
  }
  return result;
}

// With one scale for all where proportions are kept, by which each side is at most, or at least, what is wanted.
Dimensions by_sizes(Call& call, const Constant& wanted, const std::vector<std::size_t>& axes) {
  const Sizes& from = call.data(0).shape;
  if (is_floating(wanted.element) || wanted.integers.size() != axes.size()) throw Unsupported("has no sizes");
  Dimensions result;
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

void resize_10(Call& call) {
  const ResizeRule rule = {.mode = call.word("mode", "nearest"), .places = "asymmetric", .rounding = "floor"};
  resize_by(call, rule, by_scales(call, numbers_in(call, 1, "the factors")));
}

void resize_11(Call& call) {
  const std::size_t rank = call.data(0).shape.size();
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
  Dimensions dimensions = call.has(3) ? by_sizes(call, call.constant(3, "the size"), axes)
                                      : by_scales(call, of_all(numbers_in(call, 2, "the factors"), axes, rank, 1.0));
  for (std::size_t i = 0; rule.places == "align_corners" && !call.has(3) && i < rank; ++i) {
    const double length = dimensions[i].scale * static_cast<double>(call.data(0).shape[i].factor);
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
  resize_by(call, rule, dimensions);
}

void upsample_7(Call& call) {
  std::vector<double> scales;
  for (const float scale : call.numbers("scales")) scales.push_back(scale);
  resize_by(call, {.mode = call.word("mode", "nearest"), .places = "asymmetric", .rounding = "floor"},
            by_scales(call, scales));
}

}  // namespace

std::vector<OpRow> resizing_rows() {
  return {{"Upsample", 7, upsample_7, BatchIn::front},
          {"Upsample", 9, resize_10, BatchIn::front},
          {"Resize", 10, resize_10, BatchIn::front},
          {"Resize", 11, resize_11, BatchIn::front}};
}

}  // namespace gpunn::interchange
