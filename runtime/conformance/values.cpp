#include "conformance/values.hpp"

#include <gpunn/error.hpp>
#include <gpunn/random.h>

#include <cstring>
#include <string>

namespace gpunn::conformance {

namespace {

// FNV-1a: a number from a case's name.
uint64_t hash(std::string_view text) {
  uint64_t value = 14695981039346656037ULL;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return value;
}

template <class T>
void encode_as(const std::vector<double>& values, std::vector<std::byte>& bytes) {
  bytes.resize(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <class T>
void decode_as(std::span<const std::byte> bytes, std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
}

[[noreturn]] void no_such_type(DType type) {
  throw Error("the conformance suites have no values of type " + std::string(name_of(type)));
}

}  // namespace

Random::Random(uint64_t seed, std::string_view stream) : seed_(seed), stream_(hash(stream)) {}

uint32_t Random::word() {
  const gpunn_random_words words = gpunn_philox(seed_, stream_, position_ / 4);
  return words.word[position_++ % 4];
}

double Random::uniform(double low, double high) { return low + gpunn_random_unit(word()) * (high - low); }

int64_t Random::below(int64_t n) { return static_cast<int64_t>(word() % static_cast<uint64_t>(n)); }

double rounded(double value, DType type) {
  switch (type) {
    case DType::f64:
      return value;
    case DType::f32:
      return static_cast<float>(value);
    case DType::i32:
    case DType::i64:
    case DType::u8:
      return static_cast<double>(static_cast<int64_t>(value));
    case DType::bf16:
    case DType::f16:
      break;
  }
  no_such_type(type);
}

std::vector<std::byte> encode(const OracleTensor& tensor) {
  std::vector<std::byte> bytes;
  switch (tensor.type.dtype) {
    case DType::f32:
      encode_as<float>(tensor.values, bytes);
      return bytes;
    case DType::f64:
      encode_as<double>(tensor.values, bytes);
      return bytes;
    case DType::i32:
      encode_as<int32_t>(tensor.values, bytes);
      return bytes;
    case DType::i64:
      encode_as<int64_t>(tensor.values, bytes);
      return bytes;
    case DType::u8:
      encode_as<uint8_t>(tensor.values, bytes);
      return bytes;
    case DType::bf16:
    case DType::f16:
      break;
  }
  no_such_type(tensor.type.dtype);
}

OracleTensor decode(const TensorType& type, std::span<const std::byte> bytes) {
  if (bytes.size() != type.bytes()) throw Error("expected the bytes of " + to_string(type));
  OracleTensor tensor{type, std::vector<double>(static_cast<std::size_t>(type.elements()))};
  switch (type.dtype) {
    case DType::f32:
      decode_as<float>(bytes, tensor.values);
      return tensor;
    case DType::f64:
      decode_as<double>(bytes, tensor.values);
      return tensor;
    case DType::i32:
      decode_as<int32_t>(bytes, tensor.values);
      return tensor;
    case DType::i64:
      decode_as<int64_t>(bytes, tensor.values);
      return tensor;
    case DType::u8:
      decode_as<uint8_t>(bytes, tensor.values);
      return tensor;
    case DType::bf16:
    case DType::f16:
      break;
  }
  no_such_type(type.dtype);
}

}  // namespace gpunn::conformance
