#include "tasks/super_resolution/quality.hpp"

#include <gpunn/metric.hpp>

#include <array>
#include <cmath>
#include <vector>

namespace gpunn::tasks {

namespace {

constexpr std::size_t kReach = 5;  // pixels from the middle of a window
constexpr std::size_t kWindow = 2 * kReach + 1;
constexpr double kSigma = 1.5;

std::array<double, kWindow> gaussian() {
  std::array<double, kWindow> weights = {};
  double sum = 0;
  for (std::size_t i = 0; i < kWindow; ++i) {
    const double x = static_cast<double>(i) - static_cast<double>(kReach);
    weights[i] = std::exp(-x * x / (2 * kSigma * kSigma));
    sum += weights[i];
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// A plane of numbers.
struct Field {
  std::size_t height = 0, width = 0;
  std::vector<double> values;
};

template <class Of>
Field field_of(const ComparedPlanes& p, const Of& of) {
  const auto at = [](int64_t i) { return static_cast<std::size_t>(i); };
  Field field{at(p.height - 2 * p.border), at(p.width - 2 * p.border), {}};
  field.values.reserve(field.height * field.width);
  for (int64_t y = p.border; y < p.height - p.border; ++y) {
    for (int64_t x = p.border; x < p.width - p.border; ++x) {
      const std::size_t i = at(y * p.width + x);
      field.values.push_back(of(static_cast<double>(p.image[i]), static_cast<double>(p.original[i])));
    }
  }
  return field;
}

// The weighted means of the windows that lie within the field.
Field blurred(const Field& field) {
  static const std::array<double, kWindow> weights = gaussian();
  Field across{field.height, field.width - kWindow + 1, {}};
  for (std::size_t y = 0; y < across.height; ++y) {
    for (std::size_t x = 0; x < across.width; ++x) {
      double sum = 0;
      for (std::size_t k = 0; k < kWindow; ++k) sum += weights[k] * field.values[y * field.width + x + k];
      across.values.push_back(sum);
    }
  }
  Field result{field.height - kWindow + 1, across.width, {}};
  for (std::size_t y = 0; y < result.height; ++y) {
    for (std::size_t x = 0; x < result.width; ++x) {
      double sum = 0;
      for (std::size_t k = 0; k < kWindow; ++k) sum += weights[k] * across.values[(y + k) * across.width + x];
      result.values.push_back(sum);
    }
  }
  return result;
}

}  // namespace

std::vector<uint8_t> measured_plane(const data::Planes& image) {
  std::vector<uint8_t> bytes = data::to_bytes(image.values);
  if (image.channels == 1) return bytes;
  const std::size_t pixels = image.plane();
  std::vector<uint8_t> plane(pixels);
  for (std::size_t i = 0; i < pixels; ++i) plane[i] = data::luma(bytes[i], bytes[pixels + i], bytes[2 * pixels + i]);
  return plane;
}

double psnr(const ComparedPlanes& planes) {
  if (planes.height <= 2 * planes.border || planes.width <= 2 * planes.border) return kUndefined;
  const Field errors = field_of(planes, [](double a, double b) { return (a - b) * (a - b); });
  double sum = 0;
  for (const double error : errors.values) sum += error;
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(errors.values.size()) / sum);
}

double ssim(const ComparedPlanes& planes) {
  const auto window = static_cast<int64_t>(kWindow);
  if (planes.height < 2 * planes.border + window || planes.width < 2 * planes.border + window) return kUndefined;
  constexpr double kC1 = (0.01 * 255) * (0.01 * 255), kC2 = (0.03 * 255) * (0.03 * 255);
  const Field a = blurred(field_of(planes, [](double x, double) { return x; }));
  const Field b = blurred(field_of(planes, [](double, double y) { return y; }));
  const Field aa = blurred(field_of(planes, [](double x, double) { return x * x; }));
  const Field bb = blurred(field_of(planes, [](double, double y) { return y * y; }));
  const Field ab = blurred(field_of(planes, [](double x, double y) { return x * y; }));
  double sum = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double ma = a.values[i], mb = b.values[i];
    const double va = aa.values[i] - ma * ma, vb = bb.values[i] - mb * mb, cov = ab.values[i] - ma * mb;
    sum += (2 * ma * mb + kC1) * (2 * cov + kC2) / ((ma * ma + mb * mb + kC1) * (va + vb + kC2));
  }
  return sum / static_cast<double>(a.values.size());
}

}  // namespace gpunn::tasks
