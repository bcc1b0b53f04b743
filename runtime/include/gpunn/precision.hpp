#pragma once

#include <gpunn/tensor_type.hpp>

#include <optional>

namespace gpunn {

// The precision to which factors of a product may be rounded; sums stay f32. With bf16 and f16, values between a
// model's layers have that dtype, too.
enum class Precision { fp32, tf32, bf16, f16 };

// The dtype of a model's values between its layers, if it is not f32.
constexpr std::optional<DType> half_of(Precision precision) {
  if (precision == Precision::bf16) return DType::bf16;
  if (precision == Precision::f16) return DType::f16;
  return std::nullopt;
}

}  // namespace gpunn
