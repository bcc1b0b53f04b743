#include "interchange/onnx/elements.hpp"

#include <gpunn/float_formats.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace gpunn::interchange {

namespace {

constexpr std::size_t kNibble = 4;  // bits
constexpr int64_t kMostElements = int64_t{1} << 36;

template <class T>
T element_at(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

float float_at(Element element, std::span<const std::byte> bytes, std::size_t i) {
  switch (element) {
    case Element::f16:
      return Half::of_bits(element_at<uint16_t>(bytes, i));
    case Element::bf16:
      return BFloat16::of_bits(element_at<uint16_t>(bytes, i));
    case Element::f64:
      return static_cast<float>(element_at<double>(bytes, i));
    default:
      return element_at<float>(bytes, i);
  }
}

int64_t integer_at(Element element, std::span<const std::byte> bytes, std::size_t i) {
  switch (element) {
    case Element::u8:
      return element_at<uint8_t>(bytes, i);
    case Element::u4:
      return element_at<uint8_t>(bytes, i / 2) >> (i % 2 * kNibble) & 0xF;
    case Element::i4: {
      const int64_t bits = element_at<uint8_t>(bytes, i / 2) >> (i % 2 * kNibble) & 0xF;
      return bits < 8 ? bits : bits - 16;
    }
    case Element::i8:
      return element_at<int8_t>(bytes, i);
    case Element::u16:
      return element_at<uint16_t>(bytes, i);
    case Element::i16:
      return element_at<int16_t>(bytes, i);
    case Element::i32:
      return element_at<int32_t>(bytes, i);
    case Element::u32:
      return element_at<uint32_t>(bytes, i);
    case Element::boolean:
      return element_at<uint8_t>(bytes, i) != 0 ? 1 : 0;
    default:
      return element_at<int64_t>(bytes, i);
  }
}

}  // namespace

std::string name_of(Element element) {
  static const std::map<Element, const char*> names = {
      {Element::none, "undefined"}, {Element::f32, "float"},    {Element::u8, "uint8"},      {Element::i8, "int8"},
      {Element::u16, "uint16"},     {Element::i16, "int16"},    {Element::i32, "int32"},     {Element::i64, "int64"},
      {Element::text, "string"},    {Element::boolean, "bool"}, {Element::f16, "float16"},   {Element::f64, "double"},
      {Element::u32, "uint32"},     {Element::u64, "uint64"},   {Element::bf16, "bfloat16"}, {Element::u4, "uint4"},
      {Element::i4, "int4"}};
  const auto found = names.find(element);
  return found != names.end() ? found->second : "type " + std::to_string(static_cast<int32_t>(element));
}

bool is_floating(Element element) {
  return element == Element::f32 || element == Element::f16 || element == Element::f64 || element == Element::bf16;
}

bool is_integer(Element element) { return bytes_of(element) > 0 && !is_floating(element); }

std::size_t bytes_of(Element element) {
  switch (element) {
    case Element::u8:
    case Element::i8:
    case Element::boolean:
    case Element::u4:
    case Element::i4:
      return 1;
    case Element::u16:
    case Element::i16:
    case Element::f16:
    case Element::bf16:
      return 2;
    case Element::f32:
    case Element::i32:
    case Element::u32:
      return 4;
    case Element::f64:
    case Element::i64:
    case Element::u64:
      return 8;
    default:
      return 0;
  }
}

uint64_t stored_bytes(Element element, int64_t count) {
  const bool in_pairs = element == Element::u4 || element == Element::i4;
  return in_pairs ? (static_cast<uint64_t>(count) + 1) / 2 : static_cast<uint64_t>(count) * bytes_of(element);
}

std::optional<int64_t> checked_count(const Shape& shape) {
  int64_t count = 1;
  bool empty = false;
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) empty = true;
    if (size > 0 && (__builtin_mul_overflow(count, size, &count) || count > kMostElements)) return std::nullopt;
  }
  return empty ? 0 : count;
}

Constant constant_of(Element element, Shape shape, std::span<const std::byte> bytes) {
  Constant result{.element = element, .shape = std::move(shape), .floats = {}, .integers = {}};
  const auto count = static_cast<std::size_t>(element_count(result.shape));
  if (is_floating(element)) {
    std::vector<float> values(count);
    if (element == Element::f32) {
      if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    } else {
      for (std::size_t i = 0; i < count; ++i) values[i] = float_at(element, bytes, i);
    }
    result.floats = std::make_shared<const std::vector<float>>(std::move(values));
  } else {
    result.integers.resize(count);
    for (std::size_t i = 0; i < count; ++i) result.integers[i].factor = integer_at(element, bytes, i);
  }
  return result;
}

Constant floats_constant(Shape shape, std::vector<float> values) {
  return {.element = Element::f32,
          .shape = std::move(shape),
          .floats = std::make_shared<const std::vector<float>>(std::move(values)),
          .integers = {}};
}

Constant sizes_constant(Shape shape, std::vector<Size> values) {
  return {.element = Element::i64, .shape = std::move(shape), .floats = {}, .integers = std::move(values)};
}

Constant integers_constant(const std::vector<int64_t>& values) {
  std::vector<Size> sizes;
  sizes.reserve(values.size());
  for (const int64_t value : values) sizes.push_back({value, false});
  return sizes_constant({static_cast<int64_t>(values.size())}, std::move(sizes));
}

bool hides_a_row(const Constant& mask) {
  const int64_t columns = mask.shape.empty() ? 1 : mask.shape.back();
  for (auto begin = mask.floats->begin(); begin != mask.floats->end(); begin += columns) {
    const bool is_hidden = std::all_of(begin, begin + columns, [](float x) { return std::isinf(x) && x < 0; });
    if (is_hidden) return true;
  }
  return false;
}

}  // namespace gpunn::interchange
