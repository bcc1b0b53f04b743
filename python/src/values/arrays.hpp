// Arrays of Python over the library's memory, and the other way round.
#pragma once

#include <gpunn/tensor_type.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

namespace gpunn::python {

namespace nb = nanobind;

// Throws UsageError where the library knows no such type.
DType dtype_of(nb::dlpack::dtype dtype);
nb::dlpack::dtype dlpack_of(DType dtype);

using Sizes = nb::typed<nb::tuple, int64_t, nb::ellipsis>;
inline Sizes sizes_of(const Shape& shape) { return Sizes(nb::tuple(nb::cast(shape))); }

// An array of numpy that owns its memory. New memory is not cleared.
template <typename T>
class NewArray {
 public:
  explicit NewArray(std::vector<std::size_t> shape) : shape_(std::move(shape)) {
    std::size_t count = 1;
    for (const std::size_t size : shape_) count *= size;
    values_ = std::make_unique_for_overwrite<T[]>(count > 0 ? count : 1);
  }
  T* data() { return values_.get(); }
  nb::ndarray<nb::numpy, T> release() {
    T* const values = values_.release();
    const nb::capsule owner(values, [](void* owned) noexcept { delete[] static_cast<T*>(owned); });
    return nb::ndarray<nb::numpy, T>(values, shape_.size(), shape_.data(), owner);
  }

 private:
  std::vector<std::size_t> shape_;
  std::unique_ptr<T[]> values_;
};

// A copy of the numbers as an array.
template <typename T>
nb::ndarray<nb::numpy, T> array_of(const std::vector<T>& values, std::vector<std::size_t> shape) {
  NewArray<T> array(std::move(shape));
  std::copy(values.begin(), values.end(), array.data());
  return array.release();
}

}  // namespace gpunn::python
