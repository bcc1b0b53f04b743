#include "inference/results/number_outputs.hpp"

#include <cstddef>
#include <cstring>

namespace gpunn::inference {

namespace {

std::size_t count_of(const MutableArrayView& output) {
  std::size_t count = 1;
  for (const int64_t size : output.shape) count *= static_cast<std::size_t>(size);
  return count;
}

}  // namespace

void* place_of_scaled(const MutableArrayView& output) {
  if (output.dtype != DType::f64) return output.data;
  return static_cast<std::byte*>(output.data) + count_of(output) * (sizeof(double) - sizeof(float));
}

void write_in_data_units(const ModelInfo& info, const MutableArrayView& output) {
  const auto* const scaled = static_cast<const std::byte*>(place_of_scaled(output));
  auto* const to = static_cast<std::byte*>(output.data);
  const std::size_t columns = info.fields.target().mean.size();
  for (std::size_t i = 0; i < count_of(output); ++i) {
    float number = 0;
    std::memcpy(&number, scaled + i * sizeof(float), sizeof(float));
    const double value =
        static_cast<double>(number) * info.fields.target().stddev[i % columns] + info.fields.target().mean[i % columns];
    if (output.dtype == DType::f64) {
      std::memcpy(to + i * sizeof(double), &value, sizeof(double));
    } else {
      const auto rounded = static_cast<float>(value);
      std::memcpy(to + i * sizeof(float), &rounded, sizeof(float));
    }
  }
}

}  // namespace gpunn::inference
