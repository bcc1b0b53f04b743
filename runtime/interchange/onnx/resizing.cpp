#include <cmath>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

// Which image `upsample` makes: each pixel repeated, or means of neighbours around the pixels' centres.
enum class Filling { nearest, bilinear };

// By whole factors in rows and columns alone.
void enlarge_by(Call& call, const std::vector<double>& scales, Filling filling) {
  const Shape row = call.sample(0);
  constexpr double kMost = 64;
  bool fits = row.size() == 3 && scales.size() == 4 && scales[0] == 1 && scales[1] == 1;
  for (const double scale : scales) fits = fits && scale >= 1 && scale <= kMost && scale == std::floor(scale);
  if (!fits) {
    throw Unsupported("enlarges " + to_string(call.data(0).shape) +
                      " by other factors than whole ones, up to 64, in an image's rows and columns");
  }
  const auto rows = static_cast<int64_t>(scales[2]), columns = static_cast<int64_t>(scales[3]);
  call.give_layer(
      "upsample",
      {{"factor", texts({rows, columns})}, {"mode", {filling == Filling::nearest ? "nearest" : "bilinear"}}},
      {row[0], row[1] * rows, row[2] * columns});
}

std::vector<double> scales_in(const Call& call, std::size_t input) {
  const Constant& found = call.floats(input, "the factors");
  return {found.floats->begin(), found.floats->end()};
}

Filling filling_of(const Call& call, const std::string& places, const std::vector<double>& scales) {
  const std::string mode = call.word("mode", "nearest");
  const bool by_centre = places == "half_pixel" || places == "pytorch_half_pixel";
  if (mode == "linear" && by_centre) return Filling::bilinear;
  if (mode == "nearest") {
    // Which of these roundings gives copies follows from the places; that of halves does at a factor of 2 alone.
    const std::string rounding = call.word("nearest_mode", "round_prefer_floor");
    const bool small = scales.size() == 4 && scales[2] <= 2 && scales[3] <= 2;
    if (by_centre && rounding.starts_with("round_prefer")) return Filling::nearest;
    if (places == "asymmetric" && (rounding == "floor" || (small && rounding == "round_prefer_floor"))) {
      return Filling::nearest;
    }
  }
  throw Unsupported("enlarges by " + mode + " of " + places + " pixels, which no layer does");
}

void resize_10(Call& call) {
  const std::vector<double> scales = scales_in(call, 1);
  if (call.word("mode", "nearest") != "nearest") throw Unsupported("enlarges by means of asymmetric pixels");
  enlarge_by(call, scales, Filling::nearest);
}

void resize_11(Call& call) {
  const Sizes& from = call.data(0).shape;
  std::vector<double> scales;
  if (call.has(3)) {
    const Constant& sizes = call.constant(3, "the size");
    std::vector<int64_t> axes = call.list("axes");
    if (axes.empty()) {
      for (std::size_t i = 0; i < from.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    }
    if (is_floating(sizes.element) || sizes.integers.size() != axes.size()) throw Unsupported("has no sizes");
    scales.assign(from.size(), 1);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(from.size()) : axes[i];
      if (axis < 0 || axis >= static_cast<int64_t>(from.size()))
        throw Unsupported("enlarges a dimension that is not there");
      const Size own = from[static_cast<std::size_t>(axis)], wanted = sizes.integers[i];
      const bool is_baked = own.of_batch && !wanted.of_batch && wanted.factor == call.importer().baked_batch();
      if (is_baked) continue;
      if (own.of_batch != wanted.of_batch) throw Unsupported("enlarges the batch");
      scales[static_cast<std::size_t>(axis)] = static_cast<double>(wanted.factor) / static_cast<double>(own.factor);
    }
  } else {
    scales = scales_in(call, 2);
    if (call.has_attribute("axes")) throw Unsupported("enlarges some dimensions by factors");
  }
  if (call.has_attribute("antialias") && call.integer("antialias", 0) != 0) throw Unsupported("enlarges with a filter");
  enlarge_by(call, scales, filling_of(call, call.word("coordinate_transformation_mode", "half_pixel"), scales));
}

void upsample_7(Call& call) {
  if (call.word("mode", "nearest") != "nearest") throw Unsupported("enlarges by means of asymmetric pixels");
  std::vector<double> scales;
  for (const float scale : call.numbers("scales")) scales.push_back(scale);
  enlarge_by(call, scales, Filling::nearest);
}

}  // namespace

std::vector<OpRow> resizing_rows() {
  return {
      {"Upsample", 7, upsample_7}, {"Upsample", 9, resize_10}, {"Resize", 10, resize_10}, {"Resize", 11, resize_11}};
}

}  // namespace gpunn::interchange
