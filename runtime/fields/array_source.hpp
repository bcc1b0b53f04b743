#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gpunn::fields {

// An array of a file, [rows, ...], whatever the file's format.
class ArraySource {
 public:
  virtual ~ArraySource() = default;
  virtual std::string name() const = 0;  // for messages: "FILE: array 'labels'"
  virtual const Shape& shape() const = 0;
  virtual bool integers() const = 0;  // its elements are integers of any size
  virtual std::vector<int64_t> read_integers() const = 0;
  virtual std::vector<double> read_numbers() const = 0;
};

}  // namespace gpunn::fields
