#include "ops/values.hpp"

#include <gpunn/error.hpp>
#include <gpunn/float_formats.hpp>

#include <cstring>
#include <string>
#include <type_traits>

#include "common/hash.hpp"

namespace gpunn::ops {

namespace {

// action(T()) for the C++ type of a dtype.
template <class Action>
auto with_type(DType type, Action action) {
  switch (type) {
    case DType::f32:
      return action(float{});
    case DType::f64:
      return action(double{});
    case DType::i32:
      return action(int32_t{});
    case DType::i64:
      return action(int64_t{});
    case DType::u8:
      return action(uint8_t{});
    case DType::bf16:
      return action(BFloat16{});
    case DType::f16:
      return action(Half{});
  }
  throw Error("there are no test values of type " + std::string(name_of(type)));
}

template <class T>
T narrowed(double value) {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace

Random::Random(uint64_t seed, std::string_view stream) : seed_(seed), stream_(hash_of(stream)) {}

uint32_t Random::word() {
  if (position_ % 4 == 0) block_ = gpunn_philox(seed_, stream_, position_ / 4);
  return block_.word[position_++ % 4];
}

double Random::uniform(double low, double high) { return low + gpunn_random_unit(word()) * (high - low); }

int64_t Random::below(int64_t n) { return static_cast<int64_t>(word() % static_cast<uint64_t>(n)); }

double rounded(double value, DType type) {
  return with_type(type, [=](auto number) {
    using T = decltype(number);
    if constexpr (std::is_integral_v<T>) {
      return static_cast<double>(static_cast<int64_t>(value));
    } else {
      return static_cast<double>(narrowed<T>(value));
    }
  });
}

void store(double value, DType type, std::byte* to) {
  with_type(type, [=](auto number) {
    number = narrowed<decltype(number)>(value);
    std::memcpy(to, &number, sizeof(number));
  });
}

namespace {

// visit(i, at) for each element i, row-major, and the place in memory at which the layout has it.
template <class Visit>
void for_each_place(const TensorType& type, std::size_t elements, const Visit& visit) {
  if (type.layout == Layout::packed) {
    for (std::size_t i = 0; i < elements; ++i) visit(i, i);
    return;
  }
  const auto channels = static_cast<std::size_t>(type.shape[1]);
  const auto size = static_cast<std::size_t>(type.shape[2] * type.shape[3]);
  for (std::size_t i = 0; i < elements; ++i) {
    const std::size_t plane = i / size;
    visit(i, (plane / channels * size + i % size) * channels + plane % channels);
  }
}

}  // namespace

std::vector<std::byte> encode(const ReferenceTensor& tensor) {
  return with_type(tensor.type.dtype, [&](auto number) {
    std::vector<std::byte> bytes(tensor.values.size() * sizeof(number));
    for_each_place(tensor.type, tensor.values.size(), [&](std::size_t i, std::size_t at) {
      number = narrowed<decltype(number)>(tensor.values[i]);
      std::memcpy(bytes.data() + at * sizeof(number), &number, sizeof(number));
    });
    return bytes;
  });
}

ReferenceTensor decode(const TensorType& type, std::span<const std::byte> bytes) {
  if (bytes.size() != type.bytes()) throw Error("expected the bytes of " + to_string(type));
  ReferenceTensor tensor{type, std::vector<double>(static_cast<std::size_t>(type.elements()))};
  with_type(type.dtype, [&](auto number) {
    for_each_place(type, tensor.values.size(), [&](std::size_t i, std::size_t at) {
      std::memcpy(&number, bytes.data() + at * sizeof(number), sizeof(number));
      tensor.values[i] = static_cast<double>(number);
    });
  });
  return tensor;
}

}  // namespace gpunn::ops
