// Resampling as products with matrices of weights, in double precision: the sums of data::TriangleFilter are whole
// numbers below 2^53, so every runtime and every opset gives the same bytes. ONNX's Resize rounds elsewhere.
#include "export/preparation.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "data/images/image.hpp"

namespace gpunn::interchange {

namespace {

const std::string kPreparationLayer = "preparation";
constexpr double kWhole = 1 << 22;  // the sum of the weights of a pixel, as in data::TriangleFilter

}  // namespace

ImagePreparation::ImagePreparation(OnnxBuilder& builder, const Field& input, std::string picture)
    : b_(builder), input_(input), picture_(std::move(picture)) {}

std::string ImagePreparation::add(const char* op, std::vector<std::string> inputs,
                                  std::vector<OnnxAttribute> attributes) {
  return b_.add(kPreparationLayer, op, std::move(inputs), std::move(attributes), false);
}
std::string ImagePreparation::number(double value) { return b_.doubles(kPreparationLayer, {value}, {}); }
std::string ImagePreparation::integer(int64_t value) { return b_.integer(kPreparationLayer, value); }
std::string ImagePreparation::cast(const std::string& x, OnnxType to) {
  return add("Cast", {x}, {{"to", static_cast<int64_t>(to)}});
}
std::string ImagePreparation::size(int64_t dimension) {
  return add("Gather", {shape_, integer(dimension)}, {{"axis", int64_t{0}}});
}
std::string ImagePreparation::as_list(const std::string& x) {
  return add("Reshape", {x, b_.integers(kPreparationLayer, {1})});
}

std::string ImagePreparation::run() {
  const Shape& sample = input_.type.shape;
  shape_ = add("Shape", {picture_});
  std::string image = colours();
  const bool one_channel = sample[0] == 1;
  if (one_channel) image = grey(image);
  image = add("Transpose", {image}, {{"perm", std::vector<int64_t>{2, 0, 1}}});
  const bool may_invert = one_channel && input_.light_on_dark;
  const std::string is_light = may_invert ? has_light_background(image) : std::string();
  measure();
  image = resized(image);
  if (input_.fit.inside) image = on_grey(image);
  if (may_invert) image = add("Where", {is_light, add("Sub", {number(255), image}), image});
  const std::string row = b_.integers(kPreparationLayer, {1, sample[0], sample[1], sample[2]});
  return add("Reshape", {cast(image, OnnxType::f32), row});
}

// f64[height, width, 3], of grey pictures three times the same. Opacity, which is there if the number of channels is
// even, puts the picture on white.
std::string ImagePreparation::colours() {
  const std::string channels = size(2), one = integer(1);
  const std::string has_opacity = add("Equal", {add("Mod", {channels, integer(2)}), integer(0)});
  const std::string last = add("Sub", {channels, one});
  const std::string last_colour = add("Sub", {last, cast(has_opacity, OnnxType::i64)});
  const std::string places = add("Min", {b_.integers(kPreparationLayer, {0, 1, 2}), last_colour});
  const OnnxAttribute axis{"axis", int64_t{2}};
  const std::string colours = cast(add("Gather", {picture_, places}, {axis}), OnnxType::f64);
  const auto on_white = b_.branch([&] {
    const std::string opacity = cast(
        add("Gather", {picture_, add("Reshape", {last, b_.integers(kPreparationLayer, {1})})}, {axis}), OnnxType::f64);
    const std::string white = add("Mul", {add("Sub", {number(255), opacity}), number(255)});
    const std::string sum = add("Add", {add("Mul", {colours, opacity}), white});
    add("Floor", {add("Div", {add("Add", {sum, number(127)}), number(255)})});
  });
  const auto as_it_is = b_.branch([&] { add("Identity", {colours}); });
  return add("If", {has_opacity}, {{"then_branch", on_white}, {"else_branch", as_it_is}});
}

// By the weights of data::convert_channels().
std::string ImagePreparation::grey(const std::string& colours) {
  const std::string luminance = add("MatMul", {colours, b_.doubles(kPreparationLayer, {19595, 38470, 7471}, {3, 1})});
  return add("Floor", {add("Mul", {add("Add", {luminance, number(32768)}), number(1.0 / 65536)})});
}

std::string ImagePreparation::has_light_background(const std::string& grey) {
  const std::string ends = b_.integers(kPreparationLayer, {0, -1});
  const auto border = [&](int64_t axis) {
    return add("ReduceSum", {add("Gather", {grey, ends}, {{"axis", axis}})}, {{"keepdims", int64_t{0}}});
  };
  const std::string pixels = add("Mul", {add("Add", {size(0), size(1)}), integer(2)});
  return add("Less", {add("Mul", {cast(pixels, OnnxType::f64), number(127)}), add("Add", {border(1), border(2)})});
}

void ImagePreparation::measure() {
  const int64_t height = input_.type.shape[1], width = input_.type.shape[2];
  rows_.length = size(0);
  columns_.length = size(1);
  if (input_.fit.inside) {
    fit_inside(height, width);
  } else {
    rows_.kept = rows_.target = integer(height);
    columns_.kept = columns_.target = integer(width);
    if (input_.fit.crop) return crop(height, width);
  }
  rows_.first = columns_.first = number(0);
}

// As data::resize_and_crop().
void ImagePreparation::crop(int64_t height, int64_t width) {
  const int64_t shorter = input_.fit.shorter_side;
  const std::string rows = integer(shorter > 0 ? shorter : height), columns = integer(shorter > 0 ? shorter : width);
  const std::string across = add("Mul", {columns, rows_.length}), down = add("Mul", {rows, columns_.length});
  const std::string keeps_rows = add("Less", {across, down});
  rows_.target = add("Where", {keeps_rows, rows, add("Div", {across, columns_.length})});
  columns_.target = add("Where", {keeps_rows, add("Div", {down, rows_.length}), columns});
  for (Side* side : {&rows_, &columns_}) {
    const std::string around = cast(add("Sub", {side->target, side->kept}), OnnxType::f64);
    side->first = add("Round", {add("Div", {around, number(2)})});  // halves to the even number
  }
}

// As data::fit_inside().
void ImagePreparation::fit_inside(int64_t height, int64_t width) {
  const auto ratio = [&](int64_t side, const std::string& length) {
    return add("Div", {number(static_cast<double>(side)), cast(length, OnnxType::f64)});
  };
  scale_ = add("Min", {ratio(height, rows_.length), ratio(width, columns_.length)});
  const auto fit = [&](Side& side, int64_t most) {
    const std::string scaled = add("Mul", {cast(side.length, OnnxType::f64), scale_});
    const std::string whole = cast(add("Floor", {add("Add", {scaled, number(0.5)})}), OnnxType::i64);
    side.target = side.kept = add("Min", {add("Max", {whole, integer(1)}), integer(most)});
  };
  fit(rows_, height);
  fit(columns_, width);
}

// f64[kept, length], the whole numbers of data::TriangleFilter. Pixels that a triangle does not reach have weight 0.
std::string ImagePreparation::weights(const Side& side) {
  const std::string length = cast(side.length, OnnxType::f64), half = number(0.5), one = number(1);
  const auto counted = [&](const std::string& count, const std::vector<int64_t>& shape) {
    const std::string list = add("Range", {integer(0), count, integer(1)});
    return cast(add("Reshape", {list, b_.integers(kPreparationLayer, shape)}), OnnxType::f64);
  };
  const std::string scale = add("Div", {length, cast(side.target, OnnxType::f64)});
  const std::string slope = add("Div", {one, add("Max", {one, scale})});
  const std::string target = add("Add", {counted(side.kept, {-1, 1}), side.first});
  const std::string centre = add("Mul", {add("Add", {target, half}), scale});
  const std::string distance = add("Add", {add("Sub", {counted(side.length, {1, -1}), centre}), half});
  const std::string height = add("Sub", {one, add("Abs", {add("Mul", {distance, slope})})});
  const std::string exact = add("Max", {height, number(0)});
  const std::string sum = add("ReduceSum", {exact, b_.integers(kPreparationLayer, {1})}, {{"keepdims", int64_t{1}}});
  const std::string share = add("Mul", {add("Div", {exact, sum}), number(kWhole)});
  return add("Floor", {add("Add", {share, half})});
}

// Bytes of weighted sums of bytes.
std::string ImagePreparation::rounded(const std::string& sums) {
  const std::string raised = add("Add", {sums, number(kWhole / 2)});
  return add("Min", {add("Floor", {add("Mul", {raised, number(1 / kWhole)})}), number(255)});
}

// In two passes with bytes between them, in the order of data::resize().
std::string ImagePreparation::resized(const std::string& image) {
  const std::string down = weights(rows_);
  const std::string across = add("Transpose", {weights(columns_)}, {{"perm", std::vector<int64_t>{1, 0}}});
  const auto fewer = [&](const Side& side) { return add("Sub", {side.length, side.target}); };
  const std::string fewer_rows = fewer(rows_), fewer_columns = add("Mul", {fewer(columns_), integer(2)});
  const std::string down_first = add("Less", {add("Max", {fewer_columns, integer(0)}), fewer_rows});
  const auto first_down = b_.branch([&] {
    const std::string low = rounded(add("MatMul", {down, image}));
    rounded(add("MatMul", {low, across}));
  });
  const auto first_across = b_.branch([&] {
    const std::string narrow = rounded(add("MatMul", {image, across}));
    rounded(add("MatMul", {down, narrow}));
  });
  return add("If", {down_first}, {{"then_branch", first_down}, {"else_branch", first_across}});
}

// At the top left of a grey picture of the sample's size.
std::string ImagePreparation::on_grey(const std::string& image) {
  const Shape& sample = input_.type.shape;
  const auto rest = [&](int64_t whole, const Side& side) { return as_list(add("Sub", {integer(whole), side.kept})); };
  const std::string pads =
      add("Concat", {b_.integers(kPreparationLayer, {0, 0, 0, 0}), rest(sample[1], rows_), rest(sample[2], columns_)},
          {{"axis", int64_t{0}}});
  return add("Pad", {image, pads, number(data::kGreyAround)});
}

// As inference::boxes_on_image().
std::string ImagePreparation::boxes_on_picture(const std::string& boxes) {
  if (!input_.fit.inside) return boxes;
  const std::string scaled = add("Div", {boxes, cast(scale_, OnnxType::f32)});
  const std::string sides =
      add("Gather", {shape_, b_.integers(kPreparationLayer, {1, 0, 1, 0})}, {{"axis", int64_t{0}}});
  const std::string most = cast(sides, OnnxType::f32);
  return add("Max", {add("Min", {scaled, most}), b_.number(kPreparationLayer, 0)});
}

std::string preparation_text(const ModelInfo& info) {
  const Field& input = info.fields.input();
  if (info.photographs) {
    return nlohmann::ordered_json{{"colours", info.photographs->colours == ColourPlanes::luma ? "luma" : "rgb"},
                                  {"enlarged", info.photographs->input == ModelInput::enlarged},
                                  {"scale", info.photographs->scale}}
        .dump();
  }
  if (input.type.dtype != DType::u8 || input.type.shape.size() != 3) return {};
  const Shape& sample = input.type.shape;
  const ImageFit& fit = input.fit;
  nlohmann::ordered_json json = {{"colours", sample[0] == 1 ? "grey" : "rgb"},
                                 {"height", sample[1]},
                                 {"width", sample[2]},
                                 {"fit", fit.inside ? "inside"
                                         : fit.crop ? "crop"
                                                    : "stretch"}};
  if (fit.crop && !fit.inside && fit.shorter_side > 0) json["shorter_side"] = fit.shorter_side;
  if (fit.inside) json["fill"] = data::kGreyAround;
  json["filter"] = "bilinear, antialiased";
  json["opacity"] = "on white";
  json["orientation"] = "as EXIF says";
  json["invert_light_background"] = input.light_on_dark && sample[0] == 1;
  return json.dump();
}

}  // namespace gpunn::interchange
