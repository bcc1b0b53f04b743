// Subtracts means and divides by deviations or norms.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "interchange/onnx/constants/evaluator.hpp"

namespace gpunn::interchange::constants {

namespace {

const Constant& data_of(const Call& call) {
  const Constant& x = call.constant(0, "the data");
  require_floating(x);
  return x;
}

// Data are [N, C, ...]. A vector has one channel.
int64_t channels_of(const Constant& x) { return x.shape.size() < 2 ? 1 : x.shape[1]; }
std::size_t inner_of(const Constant& x) {
  return x.shape.size() < 2 ? 1 : static_cast<std::size_t>(std::max<int64_t>(strides_of(x.shape)[1], 1));
}

// Gives an input that has so many numbers.
std::vector<double> parameters(const Call& call, std::size_t input, int64_t count, const char* what) {
  const Constant& found = call.constant(input, what);
  require_floating(found);
  if (found.shape != Shape{count}) {
    throw Unsupported(std::string(what) + " are " + gpunn::to_string(found.shape) + ", expected " +
                      gpunn::to_string(Shape{count}));
  }
  return numbers_of(found);
}

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments_of(const double* values, std::size_t count) {
  Moments result;
  const auto number = static_cast<double>(count);
  result.mean = std::accumulate(values, values + count, 0.0) / number;
  for (std::size_t i = 0; i < count; ++i) {
    const double off = values[i] - result.mean;
    result.variance += off * off / number;
  }
  return result;
}

// Takes the given statistics of each channel or, in training, those of the data.
void normalize_channels(Call& call) {
  const Constant& x = data_of(call);
  const int64_t count = channels_of(x);
  const std::vector<double> scale = parameters(call, 1, count, "the weights"),
                            bias = parameters(call, 2, count, "the biases");
  std::vector<double> mean = parameters(call, 3, count, "the means"),
                      variance = parameters(call, 4, count, "the variances");
  constexpr int64_t kSaysItself = 6, kHasMode = 14;
  const bool trains = call.opset() >= kHasMode ? call.integer("training_mode", 0) != 0
                                               : call.opset() <= kSaysItself && call.integer("is_test", 0) == 0;
  if (call.integer("spatial", 1) == 0) throw Unsupported("its statistics are not by channel");
  if (!trains || call.opset() <= kSaysItself)
    call.require_first_output_alone("gives its statistics outside of training");
  call.importer().take_room(x.shape);
  const auto channels = static_cast<std::size_t>(count);
  const std::size_t inner = inner_of(x);
  const auto channel_of = [&](std::size_t i) { return i / inner % channels; };
  std::vector<double> values = numbers_of(x);
  if (trains) {
    std::vector<std::vector<double>> apart(channels);
    for (std::size_t i = 0; i < values.size(); ++i) apart[channel_of(i)].push_back(values[i]);
    const double momentum = call.number("momentum", 0.9F);
    std::vector<double> running_mean = mean, running_variance = variance;
    for (std::size_t c = 0; c < channels; ++c) {
      const Moments own = moments_of(apart[c].data(), apart[c].size());
      running_mean[c] = mean[c] * momentum + own.mean * (1 - momentum);
      running_variance[c] = variance[c] * momentum + own.variance * (1 - momentum);
      mean[c] = own.mean;
      variance[c] = own.variance;
    }
    const Element element = call.constant(3, "the means").element;
    call.give(1, constant_value(rounded_constant(element, {count}, running_mean)));
    call.give(2, constant_value(rounded_constant(element, {count}, running_variance)));
  }
  const double epsilon = call.number("epsilon", 1e-5F);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t c = channel_of(i);
    values[i] = (values[i] - mean[c]) / std::sqrt(variance[c] + epsilon) * scale[c] + bias[c];
  }
  call.give_constant(rounded_constant(x.element, x.shape, std::move(values)));
}

// Calls `normalize(first value, count, number of the part)` for parts of so many values.
template <class Normalize>
Constant normalized_parts(Call& call, const Constant& x, int64_t size, Normalize normalize) {
  call.importer().take_room(x.shape);
  std::vector<double> values = numbers_of(x);
  const auto count = static_cast<std::size_t>(std::max<int64_t>(size, 1));
  for (std::size_t part = 0; part < values.size() / count; ++part) normalize(values.data() + part * count, count, part);
  return rounded_constant(x.element, x.shape, std::move(values));
}

// Normalises each group of channels of a sample by its own mean and deviation, then scales and shifts it.
void normalize_groups(Call& call, int64_t groups, bool is_by_group) {
  const Constant& x = data_of(call);
  const int64_t count = channels_of(x);
  if (x.shape.size() < 2 || groups < 1 || count % groups != 0) throw Unsupported("its groups don't fit its channels");
  const int64_t parameters_count = is_by_group ? groups : count;
  const std::vector<double> scale = parameters(call, 1, parameters_count, "the weights"),
                            bias = parameters(call, 2, parameters_count, "the biases");
  const double epsilon = call.number("epsilon", 1e-5F);
  const std::size_t inner = inner_of(x), each = static_cast<std::size_t>(count / groups);
  const auto of_group = static_cast<std::size_t>(groups);
  call.give_constant(normalized_parts(
      call, x, static_cast<int64_t>(each * inner), [&](double* values, std::size_t size, std::size_t part) {
        const Moments own = moments_of(values, size);
        const std::size_t group = part % of_group;
        for (std::size_t i = 0; i < size; ++i) {
          const std::size_t c = is_by_group ? group : group * each + i / inner;
          values[i] = (values[i] - own.mean) / std::sqrt(own.variance + epsilon) * scale[c] + bias[c];
        }
      }));
}

void normalize_instances(Call& call) { normalize_groups(call, channels_of(data_of(call)), false); }
void group_normalization(Call& call) {
  constexpr int64_t kByChannel = 21;  // from this opset on
  normalize_groups(call, call.integer("num_groups", 0), call.opset() < kByChannel);
}

// Repeats a scale or a bias for each value of the data, to which it broadcasts.
std::vector<double> spread(Call& call, std::size_t input, const Constant& x, const char* what) {
  const Constant& given = call.constant(input, what);
  require_floating(given);
  if (broadcast_shape(x.shape, given.shape) != x.shape) {
    throw Unsupported(std::string(what) + " " + gpunn::to_string(given.shape) + " don't broadcast to " +
                      gpunn::to_string(x.shape));
  }
  call.importer().take_room(x.shape);
  std::vector<double> values(x.count());
  Walk<1> walk(x.shape, {broadcast_steps(given.shape, x.shape)});
  for (double& value : values) {
    value = given.number(walk.place(0));
    walk.next();
  }
  return values;
}

// Gives the number of values from `axis` on, which are normalised together, and the shape of their statistics.
std::pair<int64_t, Shape> normalized_part(Call& call, const Constant& x) {
  const std::size_t axis = call.axis("axis", -1, x.shape.size());
  Shape statistics = x.shape;
  int64_t size = 1;
  for (std::size_t d = axis; d < x.shape.size(); ++d) size *= std::exchange(statistics[d], 1);
  return {size, statistics};
}

void normalize_layers(Call& call) {
  const Constant& x = data_of(call);
  const auto [size, shape] = normalized_part(call, x);
  const std::vector<double> scale = spread(call, 1, x, "the weights");
  const std::vector<double> bias = call.has(2) ? spread(call, 2, x, "the biases") : std::vector<double>(x.count(), 0);
  const double epsilon = call.number("epsilon", 1e-5F);
  std::vector<double> means, deviations;
  Constant result = normalized_parts(call, x, size, [&](double* values, std::size_t count, std::size_t part) {
    const Moments own = moments_of(values, count);
    means.push_back(own.mean);
    deviations.push_back(1 / std::sqrt(own.variance + epsilon));
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = part * count + i;
      values[i] = (values[i] - own.mean) * deviations.back() * scale[at] + bias[at];
    }
  });
  call.give(0, constant_value(std::move(result)));
  const auto computed = static_cast<Element>(call.integer("stash_type", 1));
  if (element_count(shape) != std::ssize(means)) throw Unsupported("has no values to normalise");
  call.give(1, constant_value(rounded_constant(computed, shape, std::move(means))));
  call.give(2, constant_value(rounded_constant(computed, shape, std::move(deviations))));
}

void normalize_by_squares(Call& call) {
  const Constant& x = data_of(call);
  const int64_t size = normalized_part(call, x).first;
  const std::vector<double> scale = spread(call, 1, x, "the weights");
  const double epsilon = call.number("epsilon", 1e-5F);
  call.give_constant(normalized_parts(call, x, size, [&](double* values, std::size_t count, std::size_t part) {
    const double squares = std::inner_product(values, values + count, values, 0.0);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(count) + epsilon);
    for (std::size_t i = 0; i < count; ++i) values[i] *= factor * scale[part * count + i];
  }));
}

// Divides by a norm along a dimension. Where the norm is 0, so are all values.
void normalize_by_norm(Call& call) {
  const Constant& x = data_of(call);
  const Lines lines = lines_along(x.shape, call.axis("axis", -1, x.shape.size()));
  const int64_t p = call.integer("p", 2);
  if (p != 1 && p != 2) throw Unsupported("normalises by the norm " + std::to_string(p));
  call.importer().take_room(x.shape);
  std::vector<double> values = numbers_of(x);
  for (int64_t line = 0; line < lines.count(); ++line) {
    const auto at = [&](int64_t i) -> double& {
      return values[static_cast<std::size_t>(lines.begin(line) + i * lines.inner)];
    };
    double sum = 0;
    for (int64_t i = 0; i < lines.size; ++i) sum += p == 1 ? std::abs(at(i)) : at(i) * at(i);
    const double norm = p == 1 ? sum : std::sqrt(sum);
    for (int64_t i = 0; norm != 0 && i < lines.size; ++i) at(i) /= norm;
  }
  call.give_constant(rounded_constant(x.element, x.shape, std::move(values)));
}

// Divides by a power of the squares of neighbouring channels.
void normalize_by_neighbours(Call& call) {
  const Constant& x = data_of(call);
  if (x.shape.size() < 2) throw Unsupported("takes " + gpunn::to_string(x.shape) + "; expected [N, C, ...]");
  const int64_t size = call.integer("size", 0);
  if (size < 1) throw Unsupported("has " + std::to_string(size) + " neighbours");
  const double alpha = call.number("alpha", 1e-4F), beta = call.number("beta", 0.75), bias = call.number("bias", 1);
  const Lines lines = lines_along(x.shape, 1);
  call.importer().take_room(x.shape);
  take_work(call, {static_cast<int64_t>(x.count()), std::min(size, lines.size)});
  const std::vector<double> numbers = numbers_of(x);
  std::vector<double> values = numbers;
  for (int64_t line = 0; line < lines.count(); ++line) {
    const auto at = [&](int64_t i) { return static_cast<std::size_t>(lines.begin(line) + i * lines.inner); };
    for (int64_t i = 0; i < lines.size; ++i) {
      const int64_t first = std::max<int64_t>(0, i - (size - 1) / 2), last = std::min(lines.size - 1, i + size / 2);
      double squares = 0;
      for (int64_t j = first; j <= last; ++j) squares += numbers[at(j)] * numbers[at(j)];
      values[at(i)] /= std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
    }
  }
  call.give_constant(rounded_constant(x.element, x.shape, std::move(values)));
}

}  // namespace

std::vector<EvaluatorRow> normalization_evaluators() {
  return {
      {"BatchNormalization", 1, normalize_channels, first_known},
      {"GroupNormalization", 18, group_normalization},
      {"InstanceNormalization", 1, normalize_instances},
      {"LayerNormalization", 17, normalize_layers},
      {"LpNormalization", 1, normalize_by_norm},
      {"LRN", 1, normalize_by_neighbours},
      {"RMSNormalization", 23, normalize_by_squares},
  };
}

}  // namespace gpunn::interchange::constants
