#include "export/photograph_steps.hpp"

#include <limits>
#include <utility>
#include <vector>

#include "inference/enlarging/enlarger.hpp"
#include "inference/pictures/pictures.hpp"
#include "inference/tiles/any_size.hpp"

namespace gpunn::interchange {

namespace {

const std::string kPictureLayer = "picture";
constexpr int64_t kReach = 4;  // pixels beyond the border that are mirrored: more than bicubic looks at
constexpr float kMost = 255;

}  // namespace

PhotographSteps::PhotographSteps(OnnxBuilder& builder, const PhotographInfo& photographs, std::string picture)
    : b_(builder), info_(photographs), picture_(std::move(picture)) {}

std::string PhotographSteps::add(const char* op, std::vector<std::string> inputs,
                                 std::vector<OnnxAttribute> attributes) {
  return b_.add(kPictureLayer, op, std::move(inputs), std::move(attributes), false);
}
std::string PhotographSteps::integers(const std::vector<int64_t>& values) { return b_.integers(kPictureLayer, values); }
std::string PhotographSteps::size(int64_t dimension) {
  return add("Gather", {shape_, integers({dimension})}, {{"axis", int64_t{0}}});
}

std::string PhotographSteps::before() {
  shape_ = add("Shape", {picture_});
  is_grey_ = add("Less", {size(2), integers({3})});
  // Three times the same of a grey picture.
  const std::string last_colour = add("Where", {is_grey_, integers({0}), integers({2})});
  const std::string places = add("Min", {integers({0, 1, 2}), last_colour});
  const std::string bytes = add("Gather", {picture_, places}, {{"axis", int64_t{2}}});
  const std::string rgb = add(
      "Div", {add("Cast", {bytes}, {{"to", static_cast<int64_t>(OnnxType::f32)}}), b_.number(kPictureLayer, kMost)});
  std::string seen = rgb;
  if (info_.colours == ColourPlanes::luma) {
    const inference::ColourMatrix& matrix = inference::kToLuma;
    std::vector<float> luma, colours;
    for (std::size_t c = 0; c < 3; ++c) {
      luma.push_back(static_cast<float>(matrix[0][c]));
      colours.push_back(static_cast<float>(matrix[1][c]));
      colours.push_back(static_cast<float>(matrix[2][c]));
    }
    const std::string grey = add("Slice", {rgb, integers({0}), integers({1}), integers({2})});
    seen = add("Where", {is_grey_, grey, mixed(rgb, luma, 1, static_cast<float>(inference::kBlack))});
    colours_ = channels_first(mixed(rgb, colours, 2, static_cast<float>(inference::kMiddle)));
  }
  seen = channels_first(seen);
  return filled_up(info_.input == ModelInput::enlarged ? bicubic(seen) : seen);
}

std::string PhotographSteps::after(const std::string& output) {
  const std::string sides =
      add("Mul", {add("Concat", {size(0), size(1)}, {{"axis", int64_t{0}}}), integers({info_.scale, info_.scale})});
  std::string image = add("Slice", {output, integers({0, 0}), sides, integers({2, 3})});
  if (info_.colours == ColourPlanes::luma) {
    image = add("Where", {is_grey_, image, joined(image)});
  } else if (info_.scale > 1) {
    const std::string mean = add("MatMul", {add("Transpose", {image}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}}),
                                            b_.floats(kPictureLayer, std::vector<float>(9, 1.0F / 3), {3, 3})});
    const std::string grey = add("Transpose", {mean}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
    image = add("Where", {is_grey_, grey, image});
  }
  const std::string clipped = add("Clip", {image, b_.number(kPictureLayer, 0), b_.number(kPictureLayer, 1)});
  const std::string raised =
      add("Add", {add("Mul", {clipped, b_.number(kPictureLayer, kMost)}), b_.number(kPictureLayer, 0.5)});
  const std::string bytes = add("Cast", {add("Floor", {raised})}, {{"to", static_cast<int64_t>(OnnxType::u8)}});
  std::string pixels =
      add("Transpose", {add("Squeeze", {bytes, integers({0})})}, {{"perm", std::vector<int64_t>{1, 2, 0}}});
  if (info_.scale == 1) return pixels;
  const std::string channels = add("Where", {is_grey_, integers({1}), integers({3})});
  return add("Slice", {pixels, integers({0}), channels, integers({2})});
}

// [height, width, results] of [height, width, 3].
std::string PhotographSteps::mixed(const std::string& colours, const std::vector<float>& weights, int64_t results,
                                   float raised) {
  return add("Add", {add("MatMul", {colours, b_.floats(kPictureLayer, weights, {3, results})}),
                     b_.number(kPictureLayer, raised)});
}

std::string PhotographSteps::channels_first(const std::string& image) {
  return add("Unsqueeze", {add("Transpose", {image}, {{"perm", std::vector<int64_t>{2, 0, 1}}}), integers({0})});
}

// The image with kReach more pixels on both sides, mirrored with the border itself.
std::string PhotographSteps::turned_over(const std::string& image, int64_t axis) {
  const std::string side = add("Squeeze", {size(axis - 2), integers({0})});
  const auto whole = [&](int64_t value) { return b_.integer(kPictureLayer, value); };
  const std::string all = add("Range", {whole(-kReach), add("Add", {side, whole(kReach)}), whole(1)});
  const std::string period = add("Mul", {side, whole(2)});
  const std::string place = add("Mod", {all, period});
  const std::string mirrored = add("Sub", {add("Sub", {period, whole(1)}), place});
  return add("Gather", {image, add("Min", {place, mirrored})}, {{"axis", axis}});
}

// As data::resize_bicubic(), for a whole number of times.
std::string PhotographSteps::bicubic(const std::string& image) {
  const auto scale = static_cast<float>(info_.scale);
  const std::string larger =
      add("Resize", {turned_over(turned_over(image, 2), 3), "", b_.floats(kPictureLayer, {1, 1, scale, scale}, {4})},
          {{"coordinate_transformation_mode", std::string("half_pixel")},
           {"cubic_coeff_a", -0.5F},
           {"mode", std::string("cubic")}});
  const int64_t around = kReach * info_.scale;
  return add("Slice", {larger, integers({around, around}), integers({-around, -around}), integers({2, 3})});
}

// The last row and column are repeated, so that the model takes the image.
std::string PhotographSteps::filled_up(const std::string& image) {
  const std::string shape = add("Shape", {image});
  const std::string sides = add("Slice", {shape, integers({2}), integers({4})});
  std::string missing;
  if (info_.scale > 1) {
    missing = add("Max", {add("Sub", {integers({inference::kLeastSide}), sides}), integers({0})});
  } else {
    const std::string multiple = integers({inference::kMultipleOfSides});
    missing = add("Mod", {add("Neg", {sides}), multiple});
  }
  const std::string pads = add("Concat", {integers({0, 0, 0, 0, 0, 0}), missing}, {{"axis", int64_t{0}}});
  return add("Pad", {image, pads}, {{"mode", std::string("edge")}});
}

// Red, green and blue of the luma that the model made and the colours that bicubic enlarges.
std::string PhotographSteps::joined(const std::string& luma) {
  std::vector<float> weights;
  for (const auto& row : inference::kFromLuma) {
    for (const double one : row) weights.push_back(static_cast<float>(one));
  }
  const std::string all = add("Concat", {luma, bicubic(colours_)}, {{"axis", int64_t{1}}});
  const auto black = static_cast<float>(inference::kBlack), middle = static_cast<float>(inference::kMiddle);
  const std::string centred = add("Sub", {all, b_.floats(kPictureLayer, {black, middle, middle}, {3, 1, 1})});
  return add("Conv", {centred, b_.floats(kPictureLayer, weights, {3, 3, 1, 1})});
}

}  // namespace gpunn::interchange
