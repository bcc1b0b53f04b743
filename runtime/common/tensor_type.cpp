#include <gpunn/error.hpp>
#include <gpunn/op_signature.hpp>
#include <gpunn/tensor_type.hpp>

#include <numeric>

namespace gpunn {

std::size_t size_of(DType type) { return ops::dtype_bytes(static_cast<int32_t>(type)); }

std::string_view name_of(DType type) {
  const ops::Dtype* found = ops::find_dtype(static_cast<int32_t>(type));
  return found != nullptr ? found->name : "?";
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

Shape batch_shape(const Shape& row, int64_t rows) {
  Shape shape = {rows};
  shape.insert(shape.end(), row.begin(), row.end());
  return shape;
}

std::string to_string(const Shape& shape) {
  std::string result = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) result += ", ";
    result += std::to_string(shape[i]);
  }
  return result + "]";
}

bool has_layouts(const TensorType& type) {
  const Shape& shape = type.shape;
  return shape.size() == 4 && shape[0] > 0 && shape[1] > 1 && shape[2] > 0 && shape[3] > 0 &&
         (shape[2] > 1 || shape[3] > 1);
}

std::vector<int64_t> strides_of(const TensorType& type) {
  std::vector<std::size_t> order(type.shape.size());  // outermost first
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (type.layout == Layout::channels_last) order = {0, 2, 3, 1};
  std::vector<int64_t> strides(order.size());
  int64_t stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride *= type.shape[order[i]];
  }
  return strides;
}

std::string to_string(const TensorType& type) {
  return std::string(name_of(type.dtype)) + to_string(type.shape) +
         (type.layout == Layout::channels_last ? " channels-last" : "");
}

}  // namespace gpunn
