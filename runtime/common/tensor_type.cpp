#include <gpunn/error.hpp>
#include <gpunn/tensor_type.hpp>

namespace gpunn {

std::size_t size_of(DType type) {
  switch (type) {
    case DType::u8:
      return 1;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f64:
    case DType::i64:
      return 8;
  }
  return 0;
}

std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::f64:
      return "f64";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
  }
  return "?";
}

int64_t element_count(const Shape& shape) {
  // Far beyond any memory, and so small that a count times the size of an element can't wrap.
  constexpr int64_t kMost = int64_t{1} << 56;
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count) || count > kMost) {
      throw Error("a tensor of shape " + to_string(shape) + " is too large, or has a negative size", ExitCode::usage);
    }
  }
  return count;
}

std::string to_string(const Shape& shape) {
  std::string result = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) result += ", ";
    result += std::to_string(shape[i]);
  }
  return result + "]";
}

std::string to_string(const TensorType& type) { return std::string(name_of(type.dtype)) + to_string(type.shape); }

}  // namespace gpunn
