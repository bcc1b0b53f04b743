#pragma once

#include <gpunn/abi.h>
#include <gpunn/export.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

enum class DType : int32_t {
  f32 = GPUNN_F32,
  bf16 = GPUNN_BF16,
  f16 = GPUNN_F16,
  f64 = GPUNN_F64,
  i32 = GPUNN_I32,
  i64 = GPUNN_I64,
  u8 = GPUNN_U8,
};

constexpr bool is_half(DType type) { return type == DType::bf16 || type == DType::f16; }
constexpr bool is_floating(DType type) { return type == DType::f32 || type == DType::f64 || is_half(type); }

GPUNN_API std::size_t size_of(DType type);
GPUNN_API std::string_view name_of(DType type);

// Dimensions, outermost first; empty is a scalar.
using Shape = std::vector<int64_t>;

GPUNN_API int64_t element_count(const Shape& shape);
GPUNN_API std::string to_string(const Shape& shape);  // "[128, 1, 28, 28]"

struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
  int64_t elements() const { return element_count(shape); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
};

GPUNN_API std::string to_string(const TensorType& type);  // "f32[128, 10]"

}  // namespace gpunn
