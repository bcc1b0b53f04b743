#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "serving/protocol/datatype.hpp"
#include "serving/protocol/infer_request.hpp"
#include "serving/protocol/service_error.hpp"

namespace gpunn::serving {

namespace {

// As many as the shape says; a shape that no memory could hold has no such count.
std::optional<std::size_t> count_of(const Shape& shape) {
  std::size_t count = 1;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size != 0 && count > (std::size_t{1} << 60) / static_cast<std::size_t>(size)) return std::nullopt;
    count *= static_cast<std::size_t>(size);
  }
  return count;
}

template <class T>
void convert(const InferInput& input, std::string& converted) {
  converted.resize(input.numbers.size() * sizeof(T));
  char* target = converted.data();
  for (const uint64_t bits : input.numbers) {
    T value{};
    if constexpr (std::is_floating_point_v<T>) {
      value = input.floating ? static_cast<T>(std::bit_cast<double>(bits)) : static_cast<T>(static_cast<int64_t>(bits));
    } else {
      int64_t whole = static_cast<int64_t>(bits);
      bool fits = true;
      if (input.floating) {
        const double number = std::bit_cast<double>(bits);
        fits = number >= -0x1p63 && number < 0x1p63 && number == std::floor(number);
        whole = fits ? static_cast<int64_t>(number) : 0;
      }
      if (!fits || whole < std::numeric_limits<T>::min() || whole > std::numeric_limits<T>::max()) {
        throw ServiceError(400,
                           "input '" + input.name + "' holds " +
                               (input.floating ? std::to_string(std::bit_cast<double>(bits)) : std::to_string(whole)) +
                               ", which is no " + input.datatype);
      }
      value = static_cast<T>(whole);
    }
    std::memcpy(target, &value, sizeof value);
    target += sizeof value;
  }
}

}  // namespace

std::string_view packed_values(const InferInput& input, DType type, std::string& converted) {
  const std::optional<std::size_t> count = count_of(input.shape);
  const auto require_count = [&](std::size_t found, std::size_t expected, const char* of) {
    if (found == expected) return;
    throw ServiceError(400, "unexpected size for input '" + input.name + "': expected " + std::to_string(expected) +
                                " " + of + " for shape " + to_string(input.shape) + ", found " + std::to_string(found));
  };
  if (!count) throw ServiceError(400, "input '" + input.name + "': no tensor has the shape " + to_string(input.shape));
  if (input.binary_bytes) {
    require_count(input.binary.size(), *count * size_of(type), "bytes");
    return input.binary;
  }
  if (!input.has_data) {
    throw ServiceError(400, "input '" + input.name + "' has neither 'data' nor 'binary_data_size'");
  }
  require_count(input.numbers.size(), *count, "numbers");
  if (!with_type(type, [&]<class T>(T /*type*/) { convert<T>(input, converted); })) {
    throw ServiceError(
        400, "input '" + input.name + "': JSON has no numbers of type " + input.datatype + "; send it as binary data");
  }
  return converted;
}

}  // namespace gpunn::serving
