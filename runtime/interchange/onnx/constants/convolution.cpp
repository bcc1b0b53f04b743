// Computes weighted sums of neighbours.
#include <algorithm>
#include <utility>

#include "interchange/onnx/constants/windows.hpp"

namespace gpunn::interchange::constants {

namespace {

struct Groups {
  int64_t count = 1, inputs = 1, outputs = 1;  // channels of each group
};

[[noreturn]] void refuse_weights(const Shape& x, const Shape& weights, int64_t groups) {
  throw Unsupported("its weights " + gpunn::to_string(weights) + " in " + std::to_string(groups) +
                    " groups don't fit its input " + gpunn::to_string(x));
}

Shape kernel_of(const Shape& x, const Shape& weights) {
  if (weights.size() != x.size()) refuse_weights(x, weights, 1);
  Shape kernel = space_of(weights);
  if (std::ranges::any_of(kernel, [](int64_t size) { return size < 1; })) refuse_weights(x, weights, 1);
  return kernel;
}

std::vector<double> biases_of(Call& call, std::size_t input, const Constant& x, int64_t channels) {
  if (!call.has(input)) return std::vector<double>(static_cast<std::size_t>(channels), 0);
  const Constant& found = call.constant(input, "the biases");
  require_same_type(x, found);
  if (found.shape != Shape{channels}) throw Unsupported("its biases are " + gpunn::to_string(found.shape));
  return numbers_of(found);
}

struct Sums {
  Shape shape;
  std::vector<double> values;
};

Sums convolved(Call& call, const Shape& x_shape, const std::vector<double>& x, const Shape& w_shape,
               const std::vector<double>& weights, const std::vector<double>* biases) {
  const Windows w = windows_over(call, space_of(x_shape), kernel_of(x_shape, w_shape));
  const int64_t count = call.integer("group", 1), filters = w_shape[0];
  if (count < 1 || filters % count != 0 || x_shape[1] % count != 0 || w_shape[1] != x_shape[1] / count) {
    refuse_weights(x_shape, w_shape, count);
  }
  const Groups groups{count, x_shape[1] / count, filters / count};
  Sums result{{x_shape[0], filters}, {}};
  result.shape.insert(result.shape.end(), w.output.begin(), w.output.end());
  result.values.resize(static_cast<std::size_t>(call.importer().take_room(result.shape)));
  const int64_t taps = std::ssize(w.taps), space = element_count(w.space), outputs = w.outputs();
  take_work(call, {std::ssize(result.values), groups.inputs, taps});
  auto to = result.values.begin();
  for (int64_t sample = 0; sample < x_shape[0]; ++sample) {
    for (int64_t filter = 0; filter < filters; ++filter) {
      const int64_t channel = sample * x_shape[1] + filter / groups.outputs * groups.inputs;
      Walk<1> walk(w.output, {Shape(w.output.size(), 0)});
      for (int64_t i = 0; i < outputs; ++i, walk.next()) {
        double sum = biases != nullptr ? (*biases)[static_cast<std::size_t>(filter)] : 0;
        w.for_each_tap(walk.at(), [&](int64_t place, std::size_t tap) {
          for (int64_t c = 0; c < groups.inputs; ++c) {
            const int64_t weight = (filter * groups.inputs + c) * taps + static_cast<int64_t>(tap);
            sum +=
                x[static_cast<std::size_t>((channel + c) * space + place)] * weights[static_cast<std::size_t>(weight)];
          }
        });
        *to++ = sum;
      }
    }
  }
  return result;
}

void convolve(Call& call) {
  const Constant &x = call.constant(0, "the data"), &weights = call.constant(1, "the weights");
  require_floating(x);
  require_same_type(x, weights);
  space_of(weights.shape);
  const std::vector<double> biases = biases_of(call, 2, x, weights.shape[0]);
  Sums sums = convolved(call, x.shape, numbers_of(x), weights.shape, numbers_of(weights), &biases);
  call.give_constant(rounded_constant(x.element, std::move(sums.shape), std::move(sums.values)));
}

// Subtracts the zero point from integers of 8 bits: one for all, or one for each entry of the first dimension.
std::vector<double> centred(Call& call, std::size_t input, std::size_t zero_input) {
  const Constant& x = call.constant(input, "a factor");
  constexpr int kByte = 8;
  if (!is_integer(x.element) || format_of(x.element).bits > kByte)
    throw Unsupported("multiplies " + name_of(x.element));
  std::vector<double> values = numbers_of(x);
  if (!call.has(zero_input)) return values;
  const Constant& zero = call.constant(zero_input, "the zero point");
  require_same_type(x, zero);
  const std::size_t count = zero.count();
  if (count != 1 && (x.shape.empty() || zero.shape != Shape{x.shape[0]}))
    throw Unsupported("its zero points don't fit");
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= zero.number(i / (values.size() / count));
  return values;
}

void convolve_bytes(Call& call) {
  const Shape &x = call.constant(0, "the data").shape, &weights = call.constant(1, "the weights").shape;
  const Sums sums = convolved(call, x, centred(call, 0, 2), weights, centred(call, 1, 3), nullptr);
  std::vector<Size> values;
  for (const double sum : sums.values) values.push_back({wrapped(Element::i32, static_cast<int64_t>(sum)), false});
  call.give_constant(integers_constant(Element::i32, sums.shape, std::move(values)));
}

// Sets the padding and the output. Either the padding decides on the output, or the wanted size on the padding.
void size_transposed(Call& call, Windows& w) {
  const std::size_t rank = w.space.size();
  const Shape more = window_list(call, "output_padding", rank, 0, 0);
  bool is_upper = false;
  const bool is_same = pads_to_same(call, is_upper);
  Shape wanted = call.list("output_shape");
  if (wanted.size() == rank + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != rank) throw Unsupported("its output_shape is not that of its output");
  for (std::size_t d = 0; d < rank; ++d) {
    const int64_t whole = (w.space[d] - 1) * w.stride[d] + w.dilation[d] * (w.kernel[d] - 1) + 1 + more[d];
    if (wanted.empty() && !is_same) {
      w.output.push_back(whole - w.before[d] - w.behind[d]);
    } else {
      // An output that is larger than the windows reach holds only the biases at its end.
      w.output.push_back(wanted.empty() ? w.space[d] * w.stride[d] : wanted[d]);
      const int64_t all = std::max<int64_t>(0, whole - w.output[d]);
      w.before[d] = is_upper ? all / 2 : all - all / 2;
    }
    if (w.output.back() < 1) throw Unsupported("its padding leaves nothing");
  }
}

void convolve_transposed(Call& call) {
  const Constant &x = call.constant(0, "the data"), &weights = call.constant(1, "the weights");
  require_floating(x);
  require_same_type(x, weights);
  Windows w = windows_in(call, space_of(x.shape), kernel_of(x.shape, weights.shape));
  size_transposed(call, w);
  const int64_t count = call.integer("group", 1), channels = x.shape[1], each = weights.shape[1];
  if (count < 1 || channels != weights.shape[0] || channels % count != 0) refuse_weights(x.shape, weights.shape, count);
  const Groups groups{count, channels / count, each};
  const int64_t filters = each * count, taps = std::ssize(w.taps), space = element_count(w.space),
                outputs = w.outputs();
  const std::vector<double> biases = biases_of(call, 2, x, filters), numbers = numbers_of(x),
                            factors = numbers_of(weights);
  Shape shape = {x.shape[0], filters};
  shape.insert(shape.end(), w.output.begin(), w.output.end());
  std::vector<double> values(static_cast<std::size_t>(call.importer().take_room(shape)));
  take_work(call, {std::ssize(numbers), each, taps});
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = biases[i / static_cast<std::size_t>(outputs) % biases.size()];
  }
  // The same windows lie over the output: each one adds to what it sees.
  std::swap(w.space, w.output);
  for (int64_t line = 0; line < x.shape[0] * channels; ++line) {
    const int64_t sample = line / channels, channel = line % channels, first = channel / groups.inputs * each;
    Walk<1> walk(w.output, {Shape(w.output.size(), 0)});
    for (int64_t i = 0; i < space; ++i, walk.next()) {
      const double number = numbers[static_cast<std::size_t>(line * space + i)];
      w.for_each_tap(walk.at(), [&](int64_t place, std::size_t tap) {
        for (int64_t f = 0; f < each; ++f) {
          const int64_t to = (sample * filters + first + f) * outputs + place;
          const int64_t weight = (channel * each + f) * taps + static_cast<int64_t>(tap);
          values[static_cast<std::size_t>(to)] += number * factors[static_cast<std::size_t>(weight)];
        }
      });
    }
  }
  call.give_constant(rounded_constant(x.element, std::move(shape), std::move(values)));
}

}  // namespace

std::vector<EvaluatorRow> convolution_evaluators() {
  return {{"Conv", 1, convolve}, {"ConvInteger", 10, convolve_bytes}, {"ConvTranspose", 1, convolve_transposed}};
}

}  // namespace gpunn::interchange::constants
