#pragma once

#include <gpunn/abi.h>
#include <gpunn/export.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// The type of a tensor's elements, by the numbers of the plugin contract.
enum class DType : int32_t {
  f32 = GPUNN_F32,
  bf16 = GPUNN_BF16,
  f16 = GPUNN_F16,
  f64 = GPUNN_F64,
  i32 = GPUNN_I32,
  i64 = GPUNN_I64,
  u8 = GPUNN_U8,
};

// bf16 or f16.
constexpr bool is_half(DType type) { return type == DType::bf16 || type == DType::f16; }
// f32, f64, bf16 or f16.
constexpr bool is_floating(DType type) { return type == DType::f32 || type == DType::f64 || is_half(type); }

// Bytes of an element.
GPUNN_API std::size_t size_of(DType type);
// "f32", "bf16", ...
GPUNN_API std::string_view name_of(DType type);

// Dimensions, outermost first; empty is a scalar.
using Shape = std::vector<int64_t>;

// The product of the dimensions; 1 of a scalar.
GPUNN_API int64_t element_count(const Shape& shape);
GPUNN_API Shape batch_shape(const Shape& row, int64_t rows);  // [rows, row...]
GPUNN_API std::string to_string(const Shape& shape);          // "[128, 1, 28, 28]"

// How an image [N,C,H,W] lies in memory: as it says, or as [N,H,W,C].
enum class Layout : uint8_t { packed, channels_last };

// The type and shape of a tensor, without its place in memory.
struct TensorType {
  DType dtype = DType::f32;
  Shape shape;
  Layout layout = Layout::packed;  // channels_last of images alone, and of those of several channels and pixels
  bool operator==(const TensorType&) const = default;
  int64_t elements() const { return element_count(shape); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }
};

// Whether both layouts differ: they do for an image of several channels and pixels.
GPUNN_API bool has_layouts(const TensorType& type);
// Of each dimension, in elements.
GPUNN_API std::vector<int64_t> strides_of(const TensorType& type);

GPUNN_API std::string to_string(const TensorType& type);  // "f32[128, 10]", "bf16[8, 64, 32, 32] channels-last"

}  // namespace gpunn
