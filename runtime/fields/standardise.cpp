#include "fields/standardise.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "common/parallel.hpp"

namespace gpunn::fields {

namespace {

constexpr int64_t kNumbersOfStretch = int64_t{1} << 16;  // that are worth a thread

// The caller's memory may lie at any address.
template <class T>
T number_at(const std::byte* numbers, int64_t index) {
  T number;
  std::memcpy(&number, numbers + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return number;
}

template <class T>
void set_number(std::byte* numbers, int64_t index, T number) {
  std::memcpy(numbers + index * static_cast<int64_t>(sizeof(T)), &number, sizeof(T));
}

// Calls on(first, count, channel) for the stretches of equal channels among numbers of rows.
template <class On>
void for_each_channel(int64_t first, int64_t count, int64_t inner, int64_t channels, const On& on) {
  int64_t channel = first / inner % channels, left = inner - first % inner;
  for (int64_t done = 0; done < count;) {
    const int64_t here = std::min(left, count - done);
    on(done, here, static_cast<std::size_t>(channel));
    done += here;
    left = inner;
    if (++channel == channels) channel = 0;
  }
}

}  // namespace

TensorType device_type(TensorType type) {
  if (type.dtype == DType::f64) type.dtype = DType::f32;
  return type;
}

double unit_of(DType dtype) { return dtype == DType::u8 ? 1.0 / 255 : 1.0; }

bool changes_nothing(std::span<const double> mean, std::span<const double> stddev) {
  return std::ranges::all_of(mean, [](double value) { return value == 0; }) &&
         std::ranges::all_of(stddev, [](double value) { return value == 1; });
}

std::string non_finite_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return "an infinity";
  std::ostringstream text;
  text << number << ", which is beyond f32 (3.4e38)";
  return text.str();
}

double element_of(DType type, std::span<const std::byte> values, std::size_t index) {
  const auto at = static_cast<int64_t>(index);
  if (type == DType::u8) return std::to_integer<uint8_t>(values[index]);
  return type == DType::f64 ? number_at<double>(values.data(), at)
                            : static_cast<double>(number_at<float>(values.data(), at));
}

Standardiser::Standardiser(const TensorType& type, std::span<const double> mean, std::span<const double> stddev)
    : from_(type.dtype), mean_(mean.begin(), mean.end()), stddev_(stddev.begin(), stddev.end()) {
  if (from_ != DType::f32 && from_ != DType::f64) return;
  for (std::size_t i = 2; i < type.shape.size(); ++i) inner_ *= type.shape[i];
  if (mean_.empty() && stddev_.empty()) {
    mean_ = {0};
    stddev_ = {1};
  }
  copies_ = from_ == DType::f32 && changes_nothing(mean_, stddev_);
}

void Standardiser::convert(const std::byte* from, int64_t first, int64_t count, std::byte* to) const {
  if (copies_) {
    if (to != from) std::memcpy(to, from, static_cast<std::size_t>(count) * size_of(from_));
    return;
  }
  const auto convert_from = [&]<class T>(T /*type*/) {
    for_each_channel(first, count, inner_, std::ssize(mean_), [&](int64_t begin, int64_t here, std::size_t channel) {
      const double mean = mean_[channel], stddev = stddev_[channel];
      for (int64_t i = begin; i < begin + here; ++i) {
        set_number(to, i, static_cast<float>((static_cast<double>(number_at<T>(from, i)) - mean) / stddev));
      }
    });
  };
  if (from_ == DType::f64) return convert_from(double{});
  convert_from(float{});
}

std::vector<std::byte> Standardiser::converted(std::span<const std::byte> rows) const {
  const std::size_t size = size_of(from_);
  const auto count = static_cast<int64_t>(rows.size() / size);
  const auto to_size = static_cast<int64_t>(copies_ ? size : sizeof(float));
  std::vector<std::byte> result(static_cast<std::size_t>(count * to_size));
  for_row_stretches(count, kNumbersOfStretch, [&](int64_t first, int64_t last) {
    convert(rows.data() + first * static_cast<int64_t>(size), first, last - first, result.data() + first * to_size);
  });
  return result;
}

std::vector<std::byte> Standardiser::restored(std::span<const float> rows) const {
  std::vector<std::byte> result(rows.size() * size_of(from_));
  if (copies_) {
    std::memcpy(result.data(), rows.data(), result.size());
    return result;
  }
  const auto restore_to = [&]<class T>(T /*type*/) {
    for_each_channel(0, std::ssize(rows), inner_, std::ssize(mean_), [&](int64_t begin, int64_t here, std::size_t c) {
      for (int64_t i = begin; i < begin + here; ++i) {
        const auto number = static_cast<double>(rows[static_cast<std::size_t>(i)]);
        set_number(result.data(), i, static_cast<T>(number * stddev_[c] + mean_[c]));
      }
    });
  };
  if (from_ == DType::f64) {
    restore_to(double{});
  } else {
    restore_to(float{});
  }
  return result;
}

}  // namespace gpunn::fields
