#include "inference/explanation/class_map.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace gpunn::inference {

namespace {

constexpr double kEpsilon = 1e-6;        // of alpha
constexpr double kSmallestRange = 1e-7;  // a map without any range stays 0

std::span<const float> plane_of(const std::vector<float>& values, std::size_t channel, std::size_t plane) {
  return std::span(values).subspan(channel * plane, plane);
}

double sum_of(std::span<const float> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

double positive_gradients(std::span<const float> activations, std::span<const float> gradients) {
  const double total = sum_of(activations);
  double weight = 0;
  for (const float one : gradients) {
    const double gradient = one, square = gradient * gradient;
    if (gradient <= 0) continue;
    weight += gradient * square / (2 * square + total * square * gradient + kEpsilon);
  }
  return weight;
}

void stretch_to_unit(std::vector<float>& map) {
  const auto [least, most] = std::ranges::minmax(map);
  const double range = static_cast<double>(most) - static_cast<double>(least) + kSmallestRange;
  for (float& value : map)
    value = static_cast<float>((static_cast<double>(value) - static_cast<double>(least)) / range);
}

// Where a pixel of the larger line lies in the smaller.
struct Place {
  std::size_t first = 0, second = 0;
  double share = 0;  // of the second
};

std::vector<Place> places(int64_t from, int64_t to) {
  std::vector<Place> line;
  const double ratio = static_cast<double>(from) / static_cast<double>(to);
  for (int64_t i = 0; i < to; ++i) {
    const double at = std::clamp((static_cast<double>(i) + 0.5) * ratio - 0.5, 0.0, static_cast<double>(from - 1));
    const auto first = static_cast<std::size_t>(at);
    line.push_back({first, std::min(first + 1, static_cast<std::size_t>(from - 1)), at - std::floor(at)});
  }
  return line;
}

}  // namespace

std::vector<float> channel_weights(const LayerGradients& layer, ExplainMethod method) {
  const auto plane = static_cast<std::size_t>(layer.height * layer.width);
  std::vector<float> weights;
  for (std::size_t c = 0; c < static_cast<std::size_t>(layer.channels); ++c) {
    const std::span<const float> gradients = plane_of(layer.gradients, c, plane);
    const double weight = method == ExplainMethod::gradcam
                              ? sum_of(gradients) / static_cast<double>(plane)
                              : positive_gradients(plane_of(layer.activations, c, plane), gradients);
    weights.push_back(static_cast<float>(weight));
  }
  return weights;
}

std::vector<float> class_activation_map(const LayerGradients& layer, ExplainMethod method, int64_t height,
                                        int64_t width) {
  const std::vector<float> weights = channel_weights(layer, method);
  const auto plane = static_cast<std::size_t>(layer.height * layer.width);
  std::vector<float> map(plane);
  for (std::size_t i = 0; i < plane; ++i) {
    double sum = 0;
    for (std::size_t c = 0; c < weights.size(); ++c) {
      sum += static_cast<double>(weights[c]) * static_cast<double>(layer.activations[c * plane + i]);
    }
    map[i] = static_cast<float>(std::max(0.0, sum));
  }
  stretch_to_unit(map);
  map = resize_bilinear(map, layer.height, layer.width, height, width);
  stretch_to_unit(map);
  return map;
}

std::vector<float> resize_bilinear(std::span<const float> map, int64_t rows, int64_t columns, int64_t height,
                                   int64_t width) {
  const std::vector<Place> down = places(rows, height), across = places(columns, width);
  const auto stride = static_cast<std::size_t>(columns);
  std::vector<float> result;
  result.reserve(down.size() * across.size());
  for (const Place& y : down) {
    const std::span<const float> upper = map.subspan(y.first * stride, stride);
    const std::span<const float> lower = map.subspan(y.second * stride, stride);
    for (const Place& x : across) {
      const double above =
          std::lerp(static_cast<double>(upper[x.first]), static_cast<double>(upper[x.second]), x.share);
      const double below =
          std::lerp(static_cast<double>(lower[x.first]), static_cast<double>(lower[x.second]), x.share);
      result.push_back(static_cast<float>(std::lerp(above, below, y.share)));
    }
  }
  return result;
}

}  // namespace gpunn::inference
