#include "graph/op_attributes.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include "graph/output_types.hpp"

namespace gpunn::eager {

std::string_view name_of(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::flag:
      return "flag";
    case AttributeKind::integer:
      return "integer";
    case AttributeKind::number:
      return "number";
    case AttributeKind::pair:
      return "pair";
    case AttributeKind::numbers:
      return "numbers";
    case AttributeKind::list:
      return "list";
    case AttributeKind::axes:
      return "axes";
    case AttributeKind::axis:
      return "axis";
    case AttributeKind::elements:
      return "elements";
    case AttributeKind::choice:
      return "choice";
    case AttributeKind::dtype:
      return "dtype";
  }
  return "?";
}

}  // namespace gpunn::eager

namespace gpunn::graph {

using eager::AttributeInfo;
using eager::AttributeKind;
using eager::AttributeValue;
using eager::NamedAttribute;

namespace {

// --- Values ---

// What does not fit an attribute; the caller adds its name.
class BadValue : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

double as_number(const AttributeValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<int64_t>(&value)) return static_cast<double>(*number);
  throw BadValue("must be a number");
}

int64_t as_integer(const AttributeValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  throw BadValue("must be an integer");
}

template <class Int>
Int narrow(int64_t value) {
  if constexpr (std::is_same_v<Int, uint64_t>) {
    return static_cast<uint64_t>(value);  // a seed: any 64 bits
  } else {
    if (value < int64_t{std::numeric_limits<Int>::min()} || value > int64_t{std::numeric_limits<Int>::max()}) {
      throw BadValue(std::to_string(value) + " is too large");
    }
    return static_cast<Int>(value);
  }
}

std::vector<int64_t> as_integers(const AttributeValue& value) {
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return *list;
  if (const auto* list = std::get_if<std::vector<double>>(&value); list != nullptr && list->empty()) return {};
  throw BadValue("must be a list of integers");
}

template <class Member>
void write_scalar(void* to, const AttributeValue& value) {
  Member member;
  if constexpr (std::is_floating_point_v<Member>) {
    member = static_cast<Member>(as_number(value));
  } else {
    member = narrow<Member>(as_integer(value));
  }
  std::memcpy(to, &member, sizeof(member));
}

void write_flag(void* to, const AttributeValue& value) {
  const auto* flag = std::get_if<bool>(&value);
  if (flag == nullptr) throw BadValue("must be true or false");
  const int32_t member = *flag ? 1 : 0;
  std::memcpy(to, &member, sizeof(member));
}

void write_pair(void* to, const AttributeValue& value) {
  std::vector<int64_t> given;
  if (const auto* one = std::get_if<int64_t>(&value)) given = {*one, *one};
  if (given.empty()) given = as_integers(value);
  if (given.size() != 2) throw BadValue("must be two integers, for rows and columns, or one for both");
  const int32_t members[2] = {narrow<int32_t>(given[0]), narrow<int32_t>(given[1])};
  std::memcpy(to, members, sizeof(members));
}

void write_numbers(void* to, const AttributeValue& value) {
  std::vector<double> given;
  if (const auto* list = std::get_if<std::vector<double>>(&value)) given = *list;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) given = {list->begin(), list->end()};
  if (given.empty()) given = {as_number(value), as_number(value)};
  if (given.size() != 2) throw BadValue("must be two numbers, for rows and columns, or one for both");
  const float members[2] = {static_cast<float>(given[0]), static_cast<float>(given[1])};
  std::memcpy(to, members, sizeof(members));
}

template <class Element>
void write_list(void* to, const AttributeValue& value) {
  const std::vector<int64_t> given = as_integers(value);
  if (given.size() > GPUNN_MAX_RANK) {
    throw BadValue("has " + std::to_string(given.size()) + " entries; tensors have at most 8 dimensions");
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto element = narrow<Element>(given[i]);
    std::memcpy(static_cast<std::byte*>(to) + i * sizeof(Element), &element, sizeof(Element));
  }
}

void write_axes(void* to, const AttributeValue& value) {
  uint32_t mask = 0;
  for (const int64_t axis : as_integers(value)) {
    if (axis < 0 || axis >= GPUNN_MAX_RANK) {
      throw BadValue("names dimension " + std::to_string(axis) + "; dimensions are counted from 0 to 7");
    }
    mask |= 1U << static_cast<unsigned>(axis);
  }
  std::memcpy(to, &mask, sizeof(mask));
}

// The place of a word in a list, as the enumerations of op_attrs.h count.
template <const auto& words>
void write_choice(void* to, const AttributeValue& value) {
  const auto* word = std::get_if<std::string>(&value);
  const std::vector<std::string> known(std::begin(words), std::end(words));
  const auto found = word == nullptr ? known.end() : std::ranges::find(known, *word);
  if (found == known.end()) {
    throw BadValue(word == nullptr ? "must be a word" + did_you_mean_or_list("", known)
                                   : "'" + *word + "' is none of its words" + did_you_mean_or_list(*word, known));
  }
  const auto member = static_cast<int32_t>(found - known.begin());
  std::memcpy(to, &member, sizeof(member));
}

void write_dtype(void* to, const AttributeValue& value) {
  const auto* word = std::get_if<std::string>(&value);
  std::vector<std::string> known;
  for (const ops::Dtype& one : ops::kDtypes) {
    known.emplace_back(one.name);
    if (word != nullptr && *word == one.name) return static_cast<void>(std::memcpy(to, &one.id, sizeof(one.id)));
  }
  throw BadValue(word == nullptr ? "must be the name of a dtype" + did_you_mean_or_list("", known)
                                 : "there is no dtype '" + *word + "'" + did_you_mean_or_list(*word, known));
}

constexpr std::string_view kActivations[] = {"none", "relu"};
constexpr std::string_view kUpsamplings[] = {"nearest", "bilinear"};
constexpr std::string_view kReductions[] = {"sum", "mean", "max"};

// --- Rows ---

template <class Struct, class Member>
std::size_t offset_of(Member Struct::*member) {
  static const Struct instance{};
  return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&(instance.*member)) -
                                  reinterpret_cast<const std::byte*>(&instance));
}

using Fallback = std::optional<AttributeValue>;
const Fallback kRequired = std::nullopt;
const Fallback kNo = AttributeValue(false);

// A row of a struct's table. `shown` is the name for the caller where that is not the member's.
class Row {
 public:
  template <class Struct, class Member>
  Row(Member Struct::*member, std::string_view name, AttributeKind kind, Fallback fallback, std::string help) {
    field_.member = name;
    field_.offset = offset_of(member);
    field_.write = writer<Member>(kind);
    field_.info = {.name = std::string(name), .kind = kind, .help = std::move(help), .fallback = std::move(fallback)};
  }
  Row& shown(std::string name) { return field_.info.name = std::move(name), *this; }
  Row& same_as(std::string name) { return field_.info.same_as = std::move(name), *this; }
  Row& of(std::vector<int32_t> ops) { return field_.only_of = std::move(ops), *this; }
  template <const auto& words>
  Row& words_of() {
    field_.write = write_choice<words>;
    for (const std::string_view word : words) field_.info.choices.emplace_back(word);
    return *this;
  }
  const AttributeField& field() const { return field_; }

 private:
  template <class Member>
  static auto writer(AttributeKind kind) -> void (*)(void*, const AttributeValue&) {
    using Element = std::remove_extent_t<Member>;
    switch (kind) {
      case AttributeKind::flag:
        return write_flag;
      case AttributeKind::pair:
        return write_pair;
      case AttributeKind::numbers:
        return write_numbers;
      case AttributeKind::axes:
        return write_axes;
      case AttributeKind::dtype:
        return write_dtype;
      case AttributeKind::list:
        if constexpr (std::is_integral_v<Element>) return write_list<Element>;
        return nullptr;
      case AttributeKind::integer:
      case AttributeKind::number:
      case AttributeKind::axis:
      case AttributeKind::elements:
        return write_scalar<Element>;
      case AttributeKind::choice:
        return nullptr;  // words_of() sets it
    }
    return nullptr;
  }

  AttributeField field_;
};

template <class Struct>
AttributeTable table(std::string_view name, const std::vector<Row>& rows) {
  AttributeTable result{.name = name, .bytes = sizeof(Struct), .rank_offset = 0, .fields = {}};
  if constexpr (requires { &Struct::rank; }) result.rank_offset = offset_of(&Struct::rank);
  for (const Row& row : rows) result.fields.push_back(row.field());
  return result;
}

using enum AttributeKind;

template <class Struct>
Row activation(std::vector<int32_t> of = {}) {
  return Row(&Struct::activation, "activation", choice, AttributeValue(std::string("none")),
             "the activation, which is applied last")
      .template words_of<kActivations>()
      .of(std::move(of));
}

template <class Struct>
Row decayed() {
  return {&Struct::decayed, "decayed", elements, AttributeValue(int64_t{-1}),
          "how many of the first elements decay; by default all"};
}
template <class Struct>
Row weight_decay() {
  return {&Struct::weight_decay, "weight_decay", number, AttributeValue(0.0), "weight decay"};
}
template <class Struct>
Row seed() {
  return {&Struct::seed, "seed", integer, AttributeValue(int64_t{0}), "seed of the random numbers"};
}
template <class Struct>
Row stream() {
  return {&Struct::stream, "stream", integer, AttributeValue(int64_t{0}),
          "which of the seed's independent sequences of random numbers"};
}
template <class Struct>
Row epsilon(double fallback, std::string help = "added to the variance") {
  return {&Struct::epsilon, "epsilon", number, AttributeValue(fallback), std::move(help)};
}
template <class Struct>
Row dimensions(std::string help) {
  return Row(&Struct::dim, "dim", list, kRequired, std::move(help)).shown("shape");
}

std::vector<AttributeTable> make_tables() {
  const double infinity = std::numeric_limits<double>::infinity();
  const AttributeValue one = int64_t{1}, zero = int64_t{0};
  const std::string denominator = "added to the denominator";
  std::vector<AttributeTable> tables;

  tables.push_back(table<gpunn_scale_attrs>(
      "gpunn_scale_attrs", {{&gpunn_scale_attrs::factor, "factor", number, kRequired, "what x is multiplied by"}}));
  tables.push_back(table<gpunn_fill_attrs>(
      "gpunn_fill_attrs",
      {dimensions<gpunn_fill_attrs>("shape of the result"),
       {&gpunn_fill_attrs::value, "value", number, AttributeValue(0.0), "value of each element"},
       {&gpunn_fill_attrs::dtype, "dtype", dtype, AttributeValue(std::string("f32")), "dtype of the result"}}));
  tables.push_back(table<gpunn_expand_attrs>("gpunn_expand_attrs",
                                             {dimensions<gpunn_expand_attrs>("the shape that x is broadcast to")}));
  tables.push_back(table<gpunn_axpby_attrs>(
      "gpunn_axpby_attrs", {{&gpunn_axpby_attrs::alpha, "alpha", number, AttributeValue(1.0), "factor of a"},
                            {&gpunn_axpby_attrs::beta, "beta", number, AttributeValue(1.0), "factor of b"}}));
  tables.push_back(table<gpunn_clamp_attrs>(
      "gpunn_clamp_attrs",
      {{&gpunn_clamp_attrs::low, "low", number, AttributeValue(-infinity), "smallest value of the result"},
       {&gpunn_clamp_attrs::high, "high", number, AttributeValue(infinity), "largest value of the result"}}));
  tables.push_back(table<gpunn_leaky_relu_attrs>(
      "gpunn_leaky_relu_attrs",
      {{&gpunn_leaky_relu_attrs::slope, "slope", number, AttributeValue(0.01), "slope for negative numbers"}}));
  tables.push_back(table<gpunn_gelu_attrs>(
      "gpunn_gelu_attrs", {{&gpunn_gelu_attrs::tanh, "tanh", flag, kNo, "use the approximation by tanh"}}));
  tables.push_back(table<gpunn_matmul_attrs>(
      "gpunn_matmul_attrs", {{&gpunn_matmul_attrs::transpose_a, "transpose_a", flag, kNo, "a is transposed"},
                             {&gpunn_matmul_attrs::transpose_b, "transpose_b", flag, kNo, "b is transposed"}}));
  tables.push_back(table<gpunn_matmul_bias_activation_attrs>(
      "gpunn_matmul_bias_activation_attrs",
      {{&gpunn_matmul_bias_activation_attrs::transpose_a, "transpose_a", flag, kNo, "a is transposed"},
       {&gpunn_matmul_bias_activation_attrs::transpose_b, "transpose_b", flag, kNo, "b is transposed"},
       activation<gpunn_matmul_bias_activation_attrs>()}));
  tables.push_back(table<gpunn_bias_activation_backward_attrs>("gpunn_bias_activation_backward_attrs",
                                                               {activation<gpunn_bias_activation_backward_attrs>()}));
  using conv = gpunn_conv2d_attrs;
  tables.push_back(
      table<conv>("gpunn_conv2d_attrs",
                  {{&conv::stride, "stride", pair, one, "step of the filter in rows and columns"},
                   {&conv::pad, "pad", pair, zero, "zeros on both sides of rows and columns"},
                   {&conv::dilation, "dilation", pair, one, "distance between the filter's elements"},
                   {&conv::groups, "groups", integer, one, "groups of channels that are convolved by themselves"},
                   activation<conv>({GPUNN_OP_CONV2D_BIAS_ACTIVATION, GPUNN_OP_CONV2D_BIAS_ADD_ACTIVATION}),
                   Row(&conv::input_size, "input_size", pair, kRequired, "rows and columns of dx")
                       .of({GPUNN_OP_CONV2D_BACKWARD_DATA}),
                   Row(&conv::filter_size, "filter_size", pair, kRequired, "rows and columns of the filter")
                       .of({GPUNN_OP_CONV2D_BACKWARD_FILTER})}));
  using eight = gpunn_quantize_attrs;
  tables.push_back(table<eight>("gpunn_quantize_attrs",
                                {{&eight::scale, "scale", number, kRequired, "the value of one step"},
                                 {&eight::zero_point, "zero_point", integer, zero, "the stored value of 0"}}));
  using quantized = gpunn_quantized_conv2d_attrs;
  tables.push_back(table<quantized>(
      "gpunn_quantized_conv2d_attrs",
      {{&quantized::stride, "stride", pair, one, "step of the filter in rows and columns"},
       {&quantized::pad, "pad", pair, zero, "the value of the padding on both sides of rows and columns"},
       {&quantized::dilation, "dilation", pair, one, "distance between the filter's elements"},
       {&quantized::groups, "groups", integer, one, "groups of channels that are convolved by themselves"},
       activation<quantized>(),
       {&quantized::x_scale, "x_scale", number, kRequired, "scale of x"},
       {&quantized::x_zero_point, "x_zero_point", integer, zero, "zero point of x"},
       {&quantized::residual_scale, "residual_scale", number, AttributeValue(1.0), "scale of the residual"},
       {&quantized::residual_zero_point, "residual_zero_point", integer, zero, "zero point of the residual"},
       {&quantized::y_scale, "y_scale", number, kRequired, "scale of y"},
       {&quantized::y_zero_point, "y_zero_point", integer, zero, "zero point of y"}}));
  using anew = gpunn_requantize_attrs;
  tables.push_back(
      table<anew>("gpunn_requantize_attrs", {{&anew::x_scale, "x_scale", number, kRequired, "scale of x"},
                                             {&anew::x_zero_point, "x_zero_point", integer, zero, "zero point of x"},
                                             {&anew::y_scale, "y_scale", number, kRequired, "scale of y"},
                                             {&anew::y_zero_point, "y_zero_point", integer, zero, "zero point of y"}}));
  using pool = gpunn_pool2d_attrs;
  tables.push_back(table<pool>(
      "gpunn_pool2d_attrs",
      {{&pool::window, "window", pair, kRequired, "rows and columns of the window"},
       Row(&pool::stride, "stride", pair, kRequired, "step of the window; by default its size").same_as("window"),
       {&pool::pad, "pad", pair, zero, "padding on both sides, at most half the window"},
       Row(&pool::count_padding, "count_padding", flag, kNo, "zeros of the padding count in the mean")
           .of({GPUNN_OP_AVG_POOL2D, GPUNN_OP_AVG_POOL2D_BACKWARD}),
       Row(&pool::input_size, "input_size", pair, kRequired, "rows and columns of dx")
           .of({GPUNN_OP_AVG_POOL2D_BACKWARD})}));
  using upsample = gpunn_upsample2d_attrs;
  tables.push_back(
      table<upsample>("gpunn_upsample2d_attrs",
                      {{&upsample::factor, "factor", pair, kRequired, "how many times as many rows and columns"},
                       Row(&upsample::mode, "mode", choice, AttributeValue(std::string("nearest")),
                           "how pixels in between are computed")
                           .words_of<kUpsamplings>()}));
  using reflect = gpunn_reflect_pad2d_attrs;
  tables.push_back(
      table<reflect>("gpunn_reflect_pad2d_attrs",
                     {{&reflect::before, "before", pair, zero, "rows added at the top, columns on the left"},
                      {&reflect::after, "after", pair, zero, "rows added at the bottom, columns on the right"}}));
  using batch_norm = gpunn_batch_norm_attrs;
  tables.push_back(
      table<batch_norm>("gpunn_batch_norm_attrs",
                        {epsilon<batch_norm>(1e-5), Row(&batch_norm::momentum, "momentum", number, AttributeValue(0.1),
                                                        "the batch's share of the running statistics")
                                                        .of({GPUNN_OP_BATCH_NORM})}));
  using attention = gpunn_attention_attrs;
  tables.push_back(table<attention>("gpunn_attention_attrs", {{&attention::scale, "scale", number, kRequired,
                                                               "factor of the scores, mostly 1 / sqrt(D)"}}));
  tables.push_back(table<gpunn_layer_norm_attrs>("gpunn_layer_norm_attrs", {epsilon<gpunn_layer_norm_attrs>(1e-5)}));
  using response = gpunn_local_response_norm_attrs;
  tables.push_back(
      table<response>("gpunn_local_response_norm_attrs",
                      {{&response::size, "size", integer, kRequired, "channels that are summed"},
                       {&response::alpha, "alpha", number, AttributeValue(1e-4), "factor of the mean square"},
                       {&response::beta, "beta", number, AttributeValue(0.75), "exponent"},
                       {&response::k, "k", number, AttributeValue(1.0), "added before the exponent is applied"}}));
  using grid = gpunn_grid_points_attrs;
  tables.push_back(table<grid>("gpunn_grid_points_attrs",
                               {{&grid::rows, "rows", integer, kRequired, "rows of the map"},
                                {&grid::columns, "columns", integer, kRequired, "columns of the map"},
                                {&grid::stride, "stride", number, kRequired, "how much larger the image is"}}));
  using points = gpunn_assign_points_attrs;
  tables.push_back(table<points>("gpunn_assign_points_attrs",
                                 {{&points::radius, "radius", number, AttributeValue(1.5),
                                   "largest distance of a point to its box's centre, in strides"},
                                  {&points::reach, "reach", number, AttributeValue(8.0),
                                   "largest distance of a point to its box's farthest side, in strides"},
                                  {&points::least_stride, "least_stride", number, kRequired,
                                   "the stride whose points accept boxes of any small size"},
                                  {&points::most_stride, "most_stride", number, kRequired,
                                   "the stride whose points accept boxes of any large size"}}));
  using anchors = gpunn_assign_anchors_attrs;
  tables.push_back(table<anchors>(
      "gpunn_assign_anchors_attrs",
      {{&anchors::positive, "positive", number, AttributeValue(0.5), "the overlap from which an anchor learns a box"},
       {&anchors::negative, "negative", number, AttributeValue(0.5),
        "the overlap below which it learns that there is no box"}}));
  using focal = gpunn_focal_attrs;
  tables.push_back(table<focal>(
      "gpunn_focal_attrs",
      {{&focal::alpha, "alpha", number, AttributeValue(0.25), "weight of the label's class"},
       {&focal::gamma, "gamma", number, AttributeValue(2.0), "power of 1 - p, with p the probability of the label"}}));
  using suppression = gpunn_suppression_attrs;
  tables.push_back(table<suppression>(
      "gpunn_suppression_attrs",
      {{&suppression::overlap, "overlap", number, AttributeValue(0.5),
        "overlap above which the weaker of two boxes is dropped"},
       {&suppression::least_score, "least_score", number, zero, "scores of at most this are dropped"},
       {&suppression::most, "most", integer, AttributeValue(int64_t{100}), "most boxes that are kept"},
       {&suppression::by_class, "by_class", flag, AttributeValue(true), "only boxes of the same class are compared"}}));
  using entropy = gpunn_cross_entropy_attrs;
  tables.push_back(table<entropy>("gpunn_cross_entropy_attrs",
                                  {{&entropy::ignore_index, "ignore_index", integer, AttributeValue(int64_t{-100}),
                                    "label of positions that count nowhere"},
                                   {&entropy::label_smoothing, "label_smoothing", number, AttributeValue(0.0),
                                    "share of the target that is spread over all classes, from 0 to 1"}}));
  using hinge = gpunn_hinge_attrs;
  tables.push_back(table<hinge>("gpunn_hinge_attrs", {{&hinge::margin, "margin", number, AttributeValue(1.0), "margin"},
                                                      {&hinge::power, "power", integer, one, "1 or 2"}}));
  tables.push_back(
      table<gpunn_huber_attrs>("gpunn_huber_attrs", {{&gpunn_huber_attrs::delta, "delta", number, AttributeValue(1.0),
                                                      "where the loss turns from square to linear"}}));
  tables.push_back(table<gpunn_pad_attrs>(
      "gpunn_pad_attrs", {{&gpunn_pad_attrs::before, "before", list, kRequired, "zeros in front of each dimension"},
                          {&gpunn_pad_attrs::after, "after", list, kRequired, "zeros behind each dimension"}}));
  tables.push_back(table<gpunn_slice_attrs>(
      "gpunn_slice_attrs", {{&gpunn_slice_attrs::start, "start", list, kRequired, "first element of each dimension"},
                            {&gpunn_slice_attrs::size, "size", list, kRequired, "elements of each dimension"}}));
  tables.push_back(table<gpunn_concat_attrs>(
      "gpunn_concat_attrs", {{&gpunn_concat_attrs::axis, "axis", axis, zero, "the dimension that grows"}}));
  tables.push_back(table<gpunn_transpose_attrs>(
      "gpunn_transpose_attrs",
      {{&gpunn_transpose_attrs::permutation, "permutation", list, kRequired, "the dimension of x for each of y"}}));
  tables.push_back(table<gpunn_classes_attrs>("gpunn_classes_attrs", {{&gpunn_classes_attrs::classes, "classes",
                                                                       integer, kRequired, "columns of the result"}}));
  tables.push_back(table<gpunn_rows_attrs>(
      "gpunn_rows_attrs", {{&gpunn_rows_attrs::rows, "rows", integer, kRequired, "rows of the result"}}));
  using reduce = gpunn_reduce_attrs;
  tables.push_back(table<reduce>(
      "gpunn_reduce_attrs",
      {Row(&reduce::kind, "kind", choice, AttributeValue(std::string("sum")), "how the elements are combined")
           .words_of<kReductions>(),
       {&reduce::axes, "axes", axes, kRequired, "the dimensions that are reduced"},
       {&reduce::keep_dims, "keep_dims", flag, kNo, "reduced dimensions stay, with size 1"}}));
  using sgd = gpunn_sgd_attrs;
  tables.push_back(table<sgd>("gpunn_sgd_attrs",
                              {{&sgd::momentum, "momentum", number, AttributeValue(0.0), "share of the old velocity"},
                               weight_decay<sgd>(),
                               {&sgd::nesterov, "nesterov", flag, kNo, "look ahead by one step"},
                               decayed<sgd>()}));
  using adam = gpunn_adam_attrs;
  tables.push_back(table<adam>("gpunn_adam_attrs",
                               {{&adam::beta1, "beta1", number, AttributeValue(0.9), "share of the old mean"},
                                {&adam::beta2, "beta2", number, AttributeValue(0.999), "share of the old mean square"},
                                epsilon<adam>(1e-8, denominator),
                                weight_decay<adam>(),
                                {&adam::decoupled, "decoupled", flag, kNo, "AdamW"},
                                decayed<adam>()}));
  using rmsprop = gpunn_rmsprop_attrs;
  tables.push_back(
      table<rmsprop>("gpunn_rmsprop_attrs",
                     {{&rmsprop::alpha, "alpha", number, AttributeValue(0.99), "share of the old mean square"},
                      epsilon<rmsprop>(1e-8, denominator),
                      {&rmsprop::momentum, "momentum", number, AttributeValue(0.0), "share of the old velocity"},
                      weight_decay<rmsprop>(),
                      decayed<rmsprop>()}));
  using adagrad = gpunn_adagrad_attrs;
  tables.push_back(table<adagrad>("gpunn_adagrad_attrs",
                                  {epsilon<adagrad>(1e-10, denominator), weight_decay<adagrad>(), decayed<adagrad>()}));
  using lion = gpunn_lion_attrs;
  tables.push_back(table<lion>("gpunn_lion_attrs",
                               {{&lion::beta1, "beta1", number, AttributeValue(0.9), "momentum's share of the step"},
                                {&lion::beta2, "beta2", number, AttributeValue(0.99), "share of the old momentum"},
                                weight_decay<lion>(),
                                decayed<lion>()}));
  using lars = gpunn_lars_attrs;
  tables.push_back(table<lars>("gpunn_lars_attrs",
                               {{&lars::momentum, "momentum", number, AttributeValue(0.9), "share of the old velocity"},
                                weight_decay<lars>(),
                                {&lars::trust, "trust", number, AttributeValue(0.001), "trust coefficient"},
                                epsilon<lars>(1e-8, denominator),
                                decayed<lars>()}));
  using lbfgs = gpunn_lbfgs_attrs;
  tables.push_back(table<lbfgs>("gpunn_lbfgs_attrs", {weight_decay<lbfgs>(), decayed<lbfgs>()}));
  tables.push_back(table<gpunn_all_reduce_attrs>(
      "gpunn_all_reduce_attrs", {{&gpunn_all_reduce_attrs::parts, "parts", integer, kRequired, "parts of all ranks"}}));
  using clip = gpunn_clip_norm_attrs;
  tables.push_back(table<clip>("gpunn_clip_norm_attrs",
                               {{&clip::max_norm, "max_norm", number, kRequired, "largest norm of the result"},
                                epsilon<clip>(1e-6, "added to the norm"),
                                {&clip::rescale, "rescale", flag, kNo, "smaller norms grow to max_norm too"}}));
  tables.push_back(table<gpunn_l1_attrs>(
      "gpunn_l1_attrs", {{&gpunn_l1_attrs::weight, "weight", number, kRequired, "weight of the sum of absolute values"},
                         decayed<gpunn_l1_attrs>()}));
  using random = gpunn_random_attrs;
  tables.push_back(table<random>(
      "gpunn_random_attrs",
      {dimensions<random>("shape of the result"), seed<random>(), stream<random>(),
       Row(&random::low, "low", number, AttributeValue(0.0), "least value; of RANDOM_NORMAL the mean")
           .of({GPUNN_OP_RANDOM_UNIFORM, GPUNN_OP_RANDOM_NORMAL}),
       Row(&random::high, "high", number, AttributeValue(1.0), "largest value; of RANDOM_NORMAL the standard deviation")
           .of({GPUNN_OP_RANDOM_UNIFORM, GPUNN_OP_RANDOM_NORMAL})}));
  using dropout = gpunn_dropout_attrs;
  tables.push_back(table<dropout>("gpunn_dropout_attrs",
                                  {{&dropout::p, "p", number, AttributeValue(0.5), "share of elements that become 0"},
                                   seed<dropout>(),
                                   stream<dropout>()}));
  using sample = gpunn_sample_attrs;
  tables.push_back(
      table<sample>("gpunn_sample_attrs",
                    {{&sample::rows, "rows", integer, kRequired, "rows of the data"},
                     {&sample::batch, "batch", integer, kRequired, "rows of a batch"},
                     {&sample::shuffle, "shuffle", flag, AttributeValue(true), "draw a new order for each epoch"},
                     {&sample::drop_last, "drop_last", flag, kNo, "skip a last batch that is not full"},
                     seed<sample>(),
                     stream<sample>()}));
  using shift = gpunn_random_shift_attrs;
  tables.push_back(table<shift>(
      "gpunn_random_shift_attrs",
      {{&shift::reach, "reach", pair, zero, "most pixels that rows and columns move"},
       {&shift::flip, "flip", number, AttributeValue(0.0), "share of images that are mirrored left to right"},
       seed<shift>(),
       stream<shift>()}));
  using affine = gpunn_random_affine_attrs;
  tables.push_back(table<affine>(
      "gpunn_random_affine_attrs",
      {{&affine::rotate, "rotate", number, AttributeValue(0.0), "most degrees to either side"},
       {&affine::translate, "translate", numbers, AttributeValue(0.0), "most of rows and columns, as shares"},
       {&affine::scale_low, "scale_low", number, AttributeValue(1.0), "least factor"},
       {&affine::scale_high, "scale_high", number, AttributeValue(1.0), "largest factor"},
       seed<affine>(),
       stream<affine>()}));
  using zoom = gpunn_random_zoom_attrs;
  tables.push_back(table<zoom>("gpunn_random_zoom_attrs",
                               {{&zoom::low, "low", number, AttributeValue(1.0), "least factor, 1 or more"},
                                {&zoom::high, "high", number, AttributeValue(1.0), "largest factor"},
                                seed<zoom>(),
                                stream<zoom>()}));
  using color = gpunn_random_color_attrs;
  tables.push_back(
      table<color>("gpunn_random_color_attrs",
                   {{&color::brightness, "brightness", number, AttributeValue(0.0), "reach of the factor, from 0 to 1"},
                    {&color::contrast, "contrast", number, AttributeValue(0.0), "reach of the factor, from 0 to 1"},
                    {&color::saturation, "saturation", number, AttributeValue(0.0), "reach of the factor, from 0 to 1"},
                    {&color::white, "white", number, AttributeValue(1.0), "the colour of white"},
                    seed<color>(),
                    stream<color>()}));
  using erase = gpunn_random_erase_attrs;
  tables.push_back(table<erase>("gpunn_random_erase_attrs",
                                {{&erase::size, "size", pair, kRequired, "rows and columns of the rectangle"},
                                 {&erase::p, "p", number, AttributeValue(0.5), "share of images with a rectangle"},
                                 seed<erase>(),
                                 stream<erase>()}));
  tables.push_back(table<gpunn_advance_attrs>("gpunn_advance_attrs", {{&gpunn_advance_attrs::increment, "increment",
                                                                       integer, one, "what the counter grows by"}}));
  return tables;
}

// The structs by the ops that have them.
const std::map<int32_t, const AttributeTable*>& tables_by_op() {
  static const std::map<int32_t, const AttributeTable*> result = [] {
    const std::vector<std::pair<int32_t, std::string_view>> structs{
#define GPUNN_OP(name, id, attributes, signature) {id, #attributes},
#include <gpunn/op_list.inc>
#undef GPUNN_OP
    };
    std::map<int32_t, const AttributeTable*> by_op;
    for (const auto& [op, name] : structs) {
      const auto found = std::ranges::find(attribute_tables(), name, &AttributeTable::name);
      if (found != attribute_tables().end()) by_op[op] = &*found;
    }
    return by_op;
  }();
  return result;
}

}  // namespace

const std::vector<AttributeTable>& attribute_tables() {
  static const std::vector<AttributeTable> tables = make_tables();
  return tables;
}

const AttributeTable* attribute_table(int32_t op) {
  const auto found = tables_by_op().find(op);
  return found == tables_by_op().end() ? nullptr : found->second;
}

std::vector<const AttributeField*> attribute_fields(int32_t op) {
  std::vector<const AttributeField*> result;
  const AttributeTable* const found = attribute_table(op);
  if (found == nullptr) return result;
  for (const AttributeField& field : found->fields) {
    if (field.only_of.empty() || std::ranges::count(field.only_of, op) != 0) result.push_back(&field);
  }
  return result;
}

namespace {

// The value of a field: the given one, or its default; nullptr where there is none.
const AttributeValue* value_of(const AttributeField& field, std::span<const NamedAttribute> values) {
  for (const std::string& name : {field.info.name, field.info.same_as}) {
    const auto given = std::ranges::find(values, name, &NamedAttribute::first);
    if (given != values.end()) return &given->second;
  }
  return field.info.fallback ? &*field.info.fallback : nullptr;
}

}  // namespace

Attributes attributes_of(int32_t op, std::string_view op_name, std::span<const NamedAttribute> values) {
  const std::vector<const AttributeField*> fields = attribute_fields(op);
  const auto fail = [&](const std::string& what) { throw Error(std::string(op_name) + ": " + what, ExitCode::usage); };
  std::vector<std::string> names;
  for (const AttributeField* field : fields) names.push_back(field->info.name);
  for (const auto& [name, value] : values) {
    if (std::ranges::count(names, name) != 0) continue;
    fail(names.empty() ? "has no attributes; found '" + name + "'"
                       : "has no attribute '" + name + "'" + did_you_mean_or_list(name, names));
  }
  const AttributeTable* const layout = attribute_table(op);
  if (layout == nullptr) return {};
  std::vector<std::byte> bytes(layout->bytes);
  std::optional<std::size_t> rank;
  for (const AttributeField* field : fields) {
    const AttributeInfo& info = field->info;
    const AttributeValue* const value = value_of(*field, values);
    if (value == nullptr) fail("the attribute '" + info.name + "' is missing: " + info.help);
    try {
      field->write(bytes.data() + field->offset, *value);
    } catch (const BadValue& bad) {
      fail("the attribute '" + info.name + "' " + bad.what());
    }
    if (info.kind != AttributeKind::list) continue;
    const std::size_t entries = as_integers(*value).size();
    if (rank && *rank != entries) {
      fail("the attribute '" + info.name + "' has " + std::to_string(entries) + " entries, the list before it " +
           std::to_string(*rank));
    }
    rank = entries;
  }
  if (layout->rank_offset != 0) {
    const auto member = static_cast<int32_t>(rank.value_or(0));
    std::memcpy(bytes.data() + layout->rank_offset, &member, sizeof(member));
  }
  return Attributes::of_struct(std::move(bytes));
}

}  // namespace gpunn::graph
