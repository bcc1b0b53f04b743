// Functions of values of the graph, wherever their batch is. They take and give values as the file has them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

// Operands as NumPy broadcasts them: of one number of dimensions, the batch in front of all that layers give.
class Operands {
 public:
  // Of matrices (`last` 2) the last dimensions don't broadcast. Throws Unsupported where others do not, or where the
  // batch is in different places, or in the last dimensions.
  Operands(Call& call, std::vector<Value> operands, std::size_t last = 0);

  // A layer's value, or a constant less the batch's dimension.
  const Value& operator[](std::size_t i) const { return operands_[i]; }
  // A layer's value: a constant as a layer of that type.
  Value layered(std::size_t i);
  std::vector<Value> all_layered();
  const Shape& row() const { return row_; }  // of the result, without the last dimensions of matrices
  // A result, which has the batch in front, as the file has it.
  Value in_place(const Value& result) const;

 private:
  void find_place(std::size_t last);
  std::string joined_shapes() const;
  Constant without_batch(const Constant& constant) const;

  Call& call_;
  std::vector<Value> operands_;
  std::size_t rank_ = 0;
  BatchPlace place_;
  Shape row_;
};

// A constant as a layer: of one row, [1, row...].
Value constant_layer(Call& call, const Constant& constant, const Shape& row);

// A layer of operands that broadcast, element by element.
Value elementwise(Call& call, const std::string& layer, std::vector<Value> operands, const Keys& keys = {});
// The same by an op of the catalogue.
Value elementwise_op(Call& call, const std::string& op, std::vector<Value> operands);
Value number(float value);                           // a constant
Value integers(const std::vector<int64_t>& values);  // likewise, a list
Attribute attribute(const char* name, int64_t value);
Attribute attribute(const char* name, std::vector<int64_t> value);
// Whole numbers as integers of a type, which wrap. Those of 32 and 64 bits are exact up to 2^24.
Value wrapped(Call& call, const Value& x, Element element);

// a + b and so on. A constant that training may change is the parameter of a layer `affine`.
Value sum_of(Call& call, const Value& a, const Value& b);
Value difference_of(Call& call, const Value& a, const Value& b);
Value product_of(Call& call, const Value& a, const Value& b);
Value quotient_of(Call& call, const Value& a, const Value& b);
// 1 where it holds, else 0: "less", "equal", ... as the layer `compare` has them.
Value comparison_of(Call& call, const std::string& is, const Value& a, const Value& b);
Value choice_of(Call& call, const Value& condition, const Value& a, const Value& b);

}  // namespace gpunn::interchange
