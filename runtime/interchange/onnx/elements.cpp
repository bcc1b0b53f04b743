#include "interchange/onnx/elements.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "interchange/onnx/constants/number_format.hpp"
#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

constexpr int64_t kMostElements = int64_t{1} << 36;

// The bits of an element.
uint64_t bits_at(std::span<const std::byte> bytes, std::size_t i, int bits) {
  constexpr int kByte = 8;
  uint64_t result = 0;
  if (bits >= kByte) {
    const auto size = static_cast<std::size_t>(bits / kByte);
    std::memcpy(&result, bytes.data() + i * size, size);
    return result;
  }
  const auto each = static_cast<std::size_t>(kByte / bits);
  const auto shift = static_cast<int>(i % each) * bits;
  return std::to_integer<uint64_t>(bytes[i / each]) >> shift & ((uint64_t{1} << bits) - 1);
}

}  // namespace

std::string name_of(Element element) {
  static const std::map<Element, const char*> names = {
      {Element::none, "undefined"},
      {Element::f32, "float"},
      {Element::u8, "uint8"},
      {Element::i8, "int8"},
      {Element::u16, "uint16"},
      {Element::i16, "int16"},
      {Element::i32, "int32"},
      {Element::i64, "int64"},
      {Element::text, "string"},
      {Element::boolean, "bool"},
      {Element::f16, "float16"},
      {Element::f64, "double"},
      {Element::u32, "uint32"},
      {Element::u64, "uint64"},
      {Element::bf16, "bfloat16"},
      {Element::f8e4m3fn, "float8e4m3fn"},
      {Element::f8e4m3fnuz, "float8e4m3fnuz"},
      {Element::f8e5m2, "float8e5m2"},
      {Element::f8e5m2fnuz, "float8e5m2fnuz"},
      {Element::u4, "uint4"},
      {Element::i4, "int4"},
      {Element::f4e2m1, "float4e2m1"},
      {Element::f8e8m0, "float8e8m0"},
      {Element::u2, "uint2"},
      {Element::i2, "int2"},
  };
  const auto found = names.find(element);
  return found != names.end() ? found->second : "type " + std::to_string(static_cast<int32_t>(element));
}

bool is_floating(Element element) { return format_of(element).kind == NumberKind::floating; }

bool computes_in(Element element) {
  constexpr int kHalf = 16;
  return is_floating(element) && format_of(element).bits >= kHalf;
}

bool is_integer(Element element) { return format_of(element).kind == NumberKind::integer; }

uint64_t bytes_of(Element element, int64_t count) {
  constexpr uint64_t kByte = 8;
  return (static_cast<uint64_t>(count) * static_cast<uint64_t>(format_of(element).bits) + kByte - 1) / kByte;
}

std::size_t Constant::count() const { return floats ? floats->size() : integers.size(); }

double Constant::number(std::size_t i) const {
  if (doubles) return (*doubles)[i];
  if (floats) return double{(*floats)[i]};
  if (integers[i].of_batch) throw Unsupported("computes a number that depends on the size of the batch");
  return real(element, integers[i].factor);
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
  const NumberFormat format = format_of(element);
  const auto count = static_cast<std::size_t>(element_count(shape));
  if (element == Element::f32) {
    std::vector<float> values(count);
    if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
    return floats_constant(std::move(shape), std::move(values));
  }
  if (is_floating(element)) {
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = decoded(format, bits_at(bytes, i, format.bits));
    return numbers_constant(element, std::move(shape), std::move(values));
  }
  std::vector<Size> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i].factor = wrapped(element, static_cast<int64_t>(bits_at(bytes, i, format.bits)));
  }
  return integers_constant(element, std::move(shape), std::move(values));
}

Constant numbers_constant(Element element, Shape shape, std::vector<double> values) {
  Constant result = floats_constant(std::move(shape), {values.begin(), values.end()});
  result.element = element;
  if (element == Element::f64) result.doubles = std::make_shared<const std::vector<double>>(std::move(values));
  return result;
}

Constant integers_constant(Element element, Shape shape, std::vector<Size> values) {
  return {.element = element, .shape = std::move(shape), .floats = {}, .integers = std::move(values)};
}

Constant floats_constant(Shape shape, std::vector<float> values) {
  return {.element = Element::f32,
          .shape = std::move(shape),
          .floats = std::make_shared<const std::vector<float>>(std::move(values)),
          .integers = {}};
}

Constant sizes_constant(Shape shape, std::vector<Size> values) {
  return integers_constant(Element::i64, std::move(shape), std::move(values));
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
