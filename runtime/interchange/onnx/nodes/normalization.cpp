#include <cmath>
#include <cstddef>
#include <vector>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"
#include "interchange/onnx/operands.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

namespace {

// Of a value that layers don't have as [N, C, ...]: by a factor and a term for each channel.
Value normalised_by_channel(Call& call, const Value& x) {
  const std::size_t rank = x.shape.size();
  const Constant weight = as_floats(call.constant(1, "the weights")), bias = as_floats(call.constant(2, "the biases")),
                 mean = as_floats(call.constant(3, "the means")),
                 variance = as_floats(call.constant(4, "the variances"));
  const double epsilon = call.number("epsilon", 1e-5);
  const std::size_t channels = weight.floats->size();
  std::vector<float> factors(channels), terms(channels);
  for (const Constant* one : {&bias, &mean, &variance}) {
    if (one->floats->size() != channels) throw Unsupported("its statistics are not by channel");
  }
  for (std::size_t c = 0; c < channels; ++c) {
    const double factor =
        static_cast<double>((*weight.floats)[c]) / std::sqrt(static_cast<double>((*variance.floats)[c]) + epsilon);
    factors[c] = static_cast<float>(factor);
    terms[c] =
        static_cast<float>(static_cast<double>((*bias.floats)[c]) - factor * static_cast<double>((*mean.floats)[c]));
  }
  Shape shape(rank - 1, 1);
  shape.front() = static_cast<int64_t>(channels);
  const Value scaled = product_of(call, x, constant_value(floats_constant(shape, std::move(factors))));
  return sum_of(call, scaled, constant_value(floats_constant(shape, std::move(terms))));
}

void batch_normalization(Call& call) {
  const Value& given = call.data_anywhere(0);
  constexpr int64_t kSaysItself = 6;  // up to this opset a node says that it is no training
  if (call.integer("training_mode", 0) != 0 || (call.opset() <= kSaysItself && call.integer("is_test", 0) == 0)) {
    throw Unsupported("is as in training; export the network in evaluation mode");
  }
  call.require_first_output_alone("gives its statistics, which layers don't");
  if (call.integer("spatial", 1) == 0 || given.shape.size() < 2) throw Unsupported("its statistics are not by channel");
  // Of [k*N, C] the channels are behind what the batch is one with.
  const BatchPlace place = place_of(given);
  const bool has_channels_last = place.dimension == 0 && place.shift() == 1 && given.shape.size() == 2;
  if (place != BatchPlace() && !has_channels_last) return call.give(normalised_by_channel(call, given));
  const Value x = has_channels_last ? call.transposed(batch_first(call, given), {1, 0}) : given;
  const Shape row = row_of(x);
  const Value y = call.layer(
      "batch_norm", {&x},
      {{"epsilon", {text(call.number("epsilon", 1e-5))}}, {"momentum", {text(1 - call.number("momentum", 0.9))}}}, row);
  const char* const names[] = {"weight", "bias", "running_mean", "running_var"};
  for (std::size_t i = 0; i < 4; ++i) call.set_tensor(y, names[i], {row[0]}, call.floats(i + 1, names[i]));
  call.give(has_channels_last ? placed(call, call.transposed(y, {1, 0}), place, 2) : y);
}

// Of a weight and a bias of this shape, which may have none of the latter.
void set_scale(Call& call, const Value& y, const Shape& shape) {
  call.set_tensor(y, "weight", shape, call.floats(1, "the weights"));
  const std::vector<float> zeros(static_cast<std::size_t>(element_count(shape)), 0);
  call.set_tensor(y, "bias", shape, call.has(2) ? call.floats(2, "the biases") : floats_constant(shape, zeros));
}

// The mean over dimensions of a row, which stay with a size of 1.
Value mean_over(Call& call, const Value& x, const std::vector<int64_t>& dimensions, const char* function = "mean") {
  Shape row = row_of(x);
  for (const int64_t dimension : dimensions) row[static_cast<std::size_t>(dimension)] = 1;
  return call.layer("reduce", {&x}, {{"function", {function}}, {"dimensions", texts(dimensions)}, {"keep", {"true"}}},
                    row);
}

Value power(Call& call, const Value& x, const char* exponent) {
  return call.layer("power", {&x}, {{"exponent", {exponent}}}, row_of(x));
}

// 1 / sqrt(x + epsilon)
Value inverse_root(Call& call, const Value& x, double epsilon) {
  const Value sum =
      call.layer("affine", {&x}, {{"shape", {"1"}}, {"weight", {"false"}}, {"trained", {"false"}}}, row_of(x));
  call.set_tensor(sum, "bias", {1}, floats_constant({1}, {static_cast<float>(epsilon)}));
  return power(call, sum, "-0.5");
}

// Of a row's dimensions those from the first on.
std::vector<int64_t> dimensions_from(std::size_t first, const Shape& row) {
  std::vector<int64_t> dimensions;
  for (std::size_t i = first; i < row.size(); ++i) dimensions.push_back(static_cast<int64_t>(i));
  return dimensions;
}

// The mean and one over the standard deviation, which a layer computes but does not give.
void give_statistics(Call& call, std::size_t first) {
  const Value& x = call.data(0);
  const std::vector<int64_t> dimensions = dimensions_from(first, row_of(x));
  const Value mean = mean_over(call, x, dimensions);
  const Value centred = call.layer("subtract", {&x, &mean}, {}, row_of(x));
  const Value variance = mean_over(call, power(call, centred, "2"), dimensions);
  call.give(1, mean);
  call.give(2, inverse_root(call, variance, call.number("epsilon", 1e-5)));
}

bool uses_statistics(Call& call) {
  const std::vector<std::string>& outputs = call.node().outputs;
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    if (!outputs[i].empty() && call.importer().is_used(outputs[i])) return true;
  }
  return false;
}

// Of a row's dimensions the first that is normalised, with all behind it.
std::size_t first_normalised(const Call& call, const Shape& row) {
  const std::size_t axis = call.axis("axis", -1, row.size() + 1);
  if (axis == 0) throw Unsupported("its statistics are over the batch");
  call.require_batch_before(row.size() + 1 - axis);
  return axis - 1;
}

void layer_normalization(Call& call) {
  const Shape row = call.sample(0);
  const std::size_t first = first_normalised(call, row);
  const Shape together(row.begin() + static_cast<std::ptrdiff_t>(first), row.end());
  const std::size_t dimensions = together.size() == row.size() ? 0 : together.size();
  const Value y = call.layer(
      "layer_norm", {&call.data(0)},
      {{"epsilon", {text(call.number("epsilon", 1e-5))}}, {"dimensions", {std::to_string(dimensions)}}}, row);
  set_scale(call, y, together);
  call.give(y);
  if (uses_statistics(call)) give_statistics(call, first);
}

void rms_normalization(Call& call) {
  const Value& x = call.data(0);
  const Shape row = call.sample(0);
  const std::size_t first = first_normalised(call, row);
  const Value squares = mean_over(call, power(call, x, "2"), dimensions_from(first, row));
  const Value factor = inverse_root(call, squares, call.number("epsilon", 1e-5));
  const Value normal = call.layer("multiply", {&x, &factor}, {}, row);
  const Shape together(row.begin() + static_cast<std::ptrdiff_t>(first), row.end());
  const Value y = call.layer("affine", {&normal}, {{"shape", texts(together)}, {"bias", {"false"}}}, row);
  call.set_tensor(y, "weight", together, call.floats(1, "the weights"));
  call.give(y);
}

// Over a norm along a dimension; where that is 0, so is what it divides.
void lp_normalization(Call& call) {
  const Value& x = call.data(0);
  const Shape row = call.sample(0);
  const std::size_t axis = call.axis("axis", -1, row.size() + 1);
  const int64_t p = call.integer("p", 2);
  if (axis == 0 || (p != 1 && p != 2)) throw Unsupported("normalises the batch, or by another norm than 1 and 2");
  const std::vector<int64_t> along = {static_cast<int64_t>(axis) - 1};
  const Value sizes = p == 1 ? call.layer("abs", {&x}, {}, row) : power(call, x, "2");
  const Value sum = mean_over(call, sizes, along, "sum");
  const Value norm = p == 1 ? sum : power(call, sum, "0.5");
  const Value bounded = call.layer("clamp", {&norm}, {{"low", {"1e-30"}}, {"high", {"3.4e38"}}}, row_of(norm));
  call.give(call.layer("divide", {&x, &bounded}, {}, row));
}

void instance_normalization(Call& call) {
  const Shape row = call.sample(0);
  if (row.size() < 2) throw Unsupported("takes " + to_string(call.data(0).shape) + "; expected [N, C, ...]");
  const Value y = call.layer("instance_norm", {&call.data(0)},
                             {{"epsilon", {text(call.number("epsilon", 1e-5))}}, {"affine", {"true"}}}, row);
  set_scale(call, y, {row[0]});
  call.give(y);
}

// A number for each group, as up to opset 20, is that number for each of its channels.
Constant by_channel_of(const Constant& groups, int64_t channels) {
  const auto count = static_cast<int64_t>(groups.floats->size());
  if (count == 0 || channels % count != 0) throw Unsupported("its groups don't fit its channels");
  std::vector<float> values;
  for (int64_t i = 0; i < channels; ++i) {
    values.push_back((*groups.floats)[static_cast<std::size_t>(i / (channels / count))]);
  }
  return floats_constant({channels}, std::move(values));
}

void group_normalization(Call& call) {
  const Shape row = call.sample(0);
  const int64_t groups = call.integer("num_groups", 0);
  if (row.size() < 2 || groups < 1 || row[0] % groups != 0) throw Unsupported("its groups don't fit its channels");
  const Value y =
      call.layer("group_norm", {&call.data(0)},
                 {{"groups", {std::to_string(groups)}}, {"epsilon", {text(call.number("epsilon", 1e-5))}}}, row);
  call.set_tensor(y, "weight", {row[0]}, by_channel_of(call.floats(1, "the weights"), row[0]));
  call.set_tensor(y, "bias", {row[0]}, by_channel_of(call.floats(2, "the biases"), row[0]));
  call.give(y);
}

void local_response(Call& call) {
  const int64_t size = call.integer("size", 0);
  if (size < 1 || size % 2 == 0) throw Unsupported("its size must be odd, is " + std::to_string(size));
  call.give_layer("local_response_norm",
                  {{"size", {std::to_string(size)}},
                   {"alpha", {text(call.number("alpha", 1e-4))}},
                   {"beta", {text(call.number("beta", 0.75))}},
                   {"k", {text(call.number("bias", 1))}}},
                  call.sample(0));
}

void mean_variance_normalization(Call& call) {
  const Value& x = call.input(0);
  const Value axes = integers(call.list("axes", {0, 2, 3}));
  constexpr float kEpsilon = 1e-9F;  // the operator's definition has it
  const Value mean = call.apply("ReduceMean", {x, axes});
  const Value centred = call.apply("Sub", {x, mean});
  const Value variance = call.apply("ReduceMean", {call.apply("Mul", {centred, centred}), axes});
  const Value deviation = call.apply("Add", {call.apply("Sqrt", {variance}), number(kEpsilon)});
  call.give(call.apply("Div", {centred, deviation}));
}

}  // namespace

std::vector<OpRow> normalization_rows() {
  return {{"BatchNormalization", 6, batch_normalization},
          {"LayerNormalization", 17, layer_normalization, BatchIn::rows},
          {"RMSNormalization", 23, rms_normalization, BatchIn::rows},
          {"LpNormalization", 1, lp_normalization, BatchIn::rows},
          {"InstanceNormalization", 6, instance_normalization, BatchIn::front},
          {"GroupNormalization", 18, group_normalization, BatchIn::front},
          {"LRN", 1, local_response, BatchIn::front},
          {"MeanVarianceNormalization", 9, mean_variance_normalization}};
}

}  // namespace gpunn::interchange
