#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpunn::fields {

// The type that such numbers have on a device: f64 becomes f32, other types stay.
TensorType device_type(TensorType type);

// A mean and a standard deviation count in it: images of bytes reach from 0 to 1, other numbers keep their size.
double unit_of(DType dtype);

// How messages call a number that is not finite in f32: "NaN", "an infinity" or "1e+40, which is beyond f32 (3.4e38)".
std::string non_finite_text(double number);

// Whether (x - mean) / stddev is x.
bool changes_nothing(std::span<const double> mean, std::span<const double> stddev);

// Number `index` of an array of u8, f32 or f64.
double element_of(DType type, std::span<const std::byte> values, std::size_t index);

// The only way of the user's numbers to a device: (number - mean) / stddev is computed in f64, and the result becomes
// f32. A large offset is gone before anything is rounded. Bytes and labels pass unchanged.
class Standardiser {
 public:
  // `type` is [rows, channels, ...]; `mean` and `stddev` have a number for each channel. If both are empty, the numbers
  // keep their units.
  Standardiser(const TensorType& type, std::span<const double> mean, std::span<const double> stddev);

  // Whether convert() copies bytes.
  bool copies() const { return copies_; }
  int64_t size() const { return static_cast<int64_t>(size_of(from_)); }  // bytes of a number that comes in
  // Converts `count` numbers. The first one is number `first` of a row, or of an array of rows. `to` may be `from` if
  // the numbers are f32.
  void convert(const std::byte* from, int64_t first, int64_t count, std::byte* to) const;
  // Converts a whole array on several threads.
  std::vector<std::byte> converted(std::span<const std::byte> rows) const;
  // The inverse for the numbers of whole rows: number * stddev + mean, in the type that convert() takes.
  std::vector<std::byte> restored(std::span<const float> rows) const;

 private:
  DType from_;
  bool copies_ = true;
  int64_t inner_ = 1;  // numbers of a channel in a row
  std::vector<double> mean_, stddev_;
};

}  // namespace gpunn::fields
