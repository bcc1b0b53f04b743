// Images and lines of another size.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"
#include "interchange/onnx/resize_plan.hpp"

namespace gpunn::interchange {

namespace {

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
    const std::vector<double> shares = resize_weights(rule, row[i + 1], side.to, side.scale, side.begin, side.end);
    weights[i] = floats_constant({side.to, row[i + 1]}, {shares.begin(), shares.end()});
  }
  if (keys.empty()) return image;
  Value y = call.layer("resize", {&image}, keys, whole);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!weights[i].shape.empty()) call.set_tensor(y, kNames[i], weights[i].shape, weights[i]);
  }
  return y;
}

// By rows and columns of images [C, H, W], or of lines [C, L].
void resize_by(Call& call, const ResizeRule& rule, const std::vector<Resized>& dimensions) {
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

void resize(Call& call) {
  call.data(0);
  const ResizePlan plan = plan_resize(call);
  resize_by(call, plan.rule, plan.dimensions);
}

}  // namespace

std::vector<OpRow> resizing_rows() {
  return {{"Upsample", 7, resize, BatchIn::front}, {"Resize", 10, resize, BatchIn::front}};
}

}  // namespace gpunn::interchange
