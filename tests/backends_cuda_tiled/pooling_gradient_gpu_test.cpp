// The gradient through pooling, ReLU and bias in one kernel, and the convolution that pools what it makes, against
// plain loops: equal but for the order of the bias's sum.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "conv/direct/direct_convolution.hpp"
#include "counters.hpp"
#include "device_memory.hpp"
#include "pooling/pooling_gradient.hpp"

namespace {

using gpunn::backends::ConvolutionShape;
using gpunn::backends::Pool;
using gpunn::backends::PoolAxis;
using namespace gpunn::cuda_tiled;

PoolAxis axis(int64_t inputs, int64_t window, int64_t stride, int64_t pad) {
  return {inputs, (inputs + 2 * pad - window) / stride + 1, window, stride, pad};
}

struct Case {
  int64_t images, channels;
  PoolAxis rows, columns;
  bool mean = false, count_padding = false;
  Pool pool() const {
    return {.planes = images * channels,
            .channels = channels,
            .rows = rows,
            .columns = columns,
            .count_padding = count_padding};
  }
};

Case square(int64_t images, int64_t channels, int64_t rows, int64_t columns, int64_t window, int64_t stride,
            int64_t pad) {
  return {images, channels, axis(rows, window, stride, pad), axis(columns, window, stride, pad)};
}

// Of the windows with whole numbers many are equal, and some hold a NaN or an infinity.
std::vector<float> activations(int64_t count) {
  std::vector<float> values = random_values(count, 1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::max(0.0F, std::round(2 * values[i]));
    if (i % 97 == 5) values[i] = std::numeric_limits<float>::quiet_NaN();
    if (i % 89 == 7) values[i] = std::numeric_limits<float>::infinity();
  }
  return values;
}

// visit(window's index, indices of its elements) in the windows' order.
template <class Visit>
void each_window(const Pool& pool, Visit visit) {
  for (int64_t i = 0; i < pool.planes * pool.output_size(); ++i) {
    const int64_t top = i % pool.output_size() / pool.columns.outputs * pool.rows.stride - pool.rows.pad;
    const int64_t left = i % pool.columns.outputs * pool.columns.stride - pool.columns.pad;
    std::vector<std::size_t> elements;
    for (int64_t row = std::max<int64_t>(0, top); row < std::min(pool.rows.inputs, top + pool.rows.window); ++row) {
      for (int64_t column = std::max<int64_t>(0, left);
           column < std::min(pool.columns.inputs, left + pool.columns.window); ++column) {
        elements.push_back(
            static_cast<std::size_t>(i / pool.output_size() * pool.input_size() + row * pool.columns.inputs + column));
      }
    }
    visit(static_cast<std::size_t>(i), elements);
  }
}

std::size_t place_of_maximum(const std::vector<float>& values, const std::vector<std::size_t>& elements) {
  std::size_t place = elements.front();
  for (const std::size_t at : elements) {
    const bool beaten = values[at] > values[place] || std::isnan(values[at]);
    if (!std::isnan(values[place]) && beaten) place = at;
  }
  return place;
}

std::vector<float> gradient_of(const Case& test, const std::vector<float>& y, const std::vector<float>& dpooled) {
  const Pool pool = test.pool();
  std::vector<float> dx(y.size(), 0.0F);
  each_window(pool, [&](std::size_t window, const std::vector<std::size_t>& elements) {
    if (!test.mean) {
      dx[place_of_maximum(y, elements)] += dpooled[window];
      return;
    }
    const auto size = static_cast<float>(pool.count_padding ? pool.rows.window * pool.columns.window
                                                            : static_cast<int64_t>(elements.size()));
    for (const std::size_t at : elements) dx[at] += dpooled[window] / size;
  });
  for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = y[i] > 0 ? dx[i] : 0.0F;
  return dx;
}

void check_gradient(const Case& test, bool bias) {
  const Pool pool = test.pool();
  const std::vector<float> y = activations(pool.planes * pool.input_size());
  const std::vector<float> dpooled = random_values(pool.planes * pool.output_size(), 2);
  const std::vector<float> wanted = gradient_of(test, y, dpooled);
  const auto channels = static_cast<std::size_t>(test.channels);
  const PoolingGradient plan = pooling_gradient_of(pool, test.channels, test.mean, bias);
  const Memory on_y(y), on_dpooled(dpooled), dx(y.size() * sizeof(float)), workspace(plan.workspace_bytes);
  const Memory db(channels * sizeof(float));
  const Counters counters(channels);
  std::vector<float> before;
  for (int run = 0; run < 2; ++run) {
    run_pooling_gradient(plan,
                         {.dpooled = static_cast<const float*>(on_dpooled.data()),
                          .y = static_cast<const float*>(on_y.data()),
                          .dx = static_cast<float*>(dx.data()),
                          .db = bias ? static_cast<float*>(db.data()) : nullptr,
                          .sums = static_cast<float*>(workspace.data()),
                          .counters = counters.data()},
                         nullptr);
    CHECK(dx.read(y.size()) == wanted);
    if (!bias) continue;
    const std::vector<float> sums = db.read(channels);
    if (run > 0) CHECK(sums == before);
    before = sums;
    for (std::size_t channel = 0; channel < channels; ++channel) {
      double sum = 0, absolute = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (i / static_cast<std::size_t>(pool.input_size()) % channels != channel) continue;
        sum += double{wanted[i]};
        absolute += std::abs(double{wanted[i]});
      }
      CHECK(std::abs(sums[channel] - sum) <= 1e-6 * absolute);
    }
  }
}

TEST_CASE("the gradient through pooling and ReLU is that of the ops one by one", "[pooling]") {
  std::vector<Case> cases = {
      square(2, 3, 8, 8, 2, 2, 0),    square(5, 4, 10, 10, 2, 2, 0), square(3, 5, 9, 6, 2, 2, 0),
      square(3, 5, 7, 9, 2, 2, 0),    square(1, 1, 2, 2, 2, 2, 0),   square(700, 3, 12, 12, 2, 2, 0),
      square(2, 3, 13, 13, 3, 2, 0),  square(3, 2, 14, 15, 3, 2, 1), square(2, 2, 9, 8, 2, 3, 0),
      square(2, 2, 9, 8, 3, 1, 1),    square(300, 2, 5, 4, 2, 2, 1), square(2, 2, 3, 3, 1, 2, 0),
      square(1200, 1, 3, 3, 3, 2, 1), square(4, 3, 7, 7, 7, 1, 0),   {3, 4, axis(11, 5, 2, 1), axis(10, 4, 3, 1)}};
  for (Case& test : cases) {
    for (const int kind : {0, 1, 2}) {
      test.mean = kind > 0;
      if (test.mean && test.pool().output_size() == 1) continue;  // a kernel of its own
      test.count_padding = kind > 1;
      INFO((test.mean ? "mean of " : "maximum of ")
           << test.images << "x" << test.channels << "x" << test.rows.inputs << "x" << test.columns.inputs
           << ", window " << test.rows.window << "x" << test.columns.window << ", padding " << test.rows.pad);
      check_gradient(test, true);
      if (test.mean || test.rows.window != 2 || test.columns.inputs != 9) check_gradient(test, false);
    }
  }
}

TEST_CASE("a convolution that pools is the convolution, and its maxima", "[pooling]") {
  struct Layer {
    int64_t images, channels, filters, size, taps, pad;
    int64_t window, stride, pool_pad;
  };
  for (const Layer& layer :
       {Layer{3, 1, 6, 28, 5, 2, 2, 2, 0}, Layer{9, 6, 16, 14, 5, 0, 2, 2, 0}, Layer{2, 3, 16, 13, 3, 1, 3, 2, 1},
        Layer{5, 2, 5, 11, 3, 0, 2, 2, 0}, Layer{2, 3, 33, 17, 5, 1, 3, 2, 0}, Layer{2, 4, 7, 9, 7, 3, 2, 2, 0},
        Layer{200, 6, 16, 10, 3, 1, 2, 2, 0}, Layer{3, 3, 19, 32, 3, 1, 2, 2, 0}}) {
    INFO(layer.images << "x" << layer.channels << "x" << layer.size << ", " << layer.filters << " filters");
    const int64_t outputs = layer.size + 2 * layer.pad - layer.taps + 1;
    const gpunn::backends::ConvolutionAxis along{layer.size, outputs, layer.taps, 1, layer.pad, 1};
    const ConvolutionShape shape{layer.images, 1, layer.channels, layer.filters, along, along};
    const Pool pool =
        square(layer.images, layer.filters, outputs, outputs, layer.window, layer.stride, layer.pool_pad).pool();
    const direct::FpropPlan plain = direct::fprop_of(shape, false);
    const direct::FpropPlan pooling = direct::fprop_pooling_of(shape, pool);
    REQUIRE(plain.data);
    REQUIRE(pooling.data);
    std::vector<float> image = random_values(layer.images * layer.channels * layer.size * layer.size, 1);
    image[image.size() / 2] = std::numeric_limits<float>::quiet_NaN();
    const Memory x(image);
    const Memory w(random_values(layer.filters * layer.channels * layer.taps * layer.taps, 2));
    const Memory bias(random_values(layer.filters, 3));
    const auto count = static_cast<std::size_t>(pool.planes * pool.input_size());
    const auto maxima = static_cast<std::size_t>(pool.planes * pool.output_size());
    const auto run = [&](const direct::FpropPlan& plan, const Memory* y, const Memory* pooled) {
      const auto at = [](const Memory* memory) {
        return memory == nullptr ? nullptr : static_cast<float*>(memory->data());
      };
      direct::run_fprop(plan, at(&x), at(&w), at(&bias), true, at(y), 0, nullptr, at(pooled));
    };
    const Memory y(count * sizeof(float)), same_y(count * sizeof(float));
    const Memory with_y(maxima * sizeof(float)), without(maxima * sizeof(float));
    run(plain, &y, nullptr);
    run(pooling, &same_y, &with_y);
    run(pooling, nullptr, &without);
    const auto equal = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    const std::vector<float> values = y.read(count);
    CHECK(std::ranges::equal(values, same_y.read(count), equal));
    std::vector<float> wanted(maxima);
    each_window(pool, [&](std::size_t window, const std::vector<std::size_t>& elements) {
      wanted[window] = values[place_of_maximum(values, elements)];
    });
    CHECK(std::ranges::equal(wanted, with_y.read(maxima), equal));
    CHECK(std::ranges::equal(wanted, without.read(maxima), equal));
  }
}

}  // namespace
