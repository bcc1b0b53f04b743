#include "data/described.hpp"

#include "common/text.hpp"

namespace gpunn::data {

std::string described(const Dataset& set) {
  std::string text = set.name == kArrays ? "the arrays (" : in_quotes(set.name) + " (" + set.source + ": ";
  text += std::to_string(set.train.rows()) + " training rows";
  const Shape& shape = set.train.samples.shape;
  if (!shape.empty()) text += " of " + to_string(TensorType{set.train.samples.dtype, {shape.begin() + 1, shape.end()}});
  if (set.validation.rows() > 0) text += ", " + std::to_string(set.validation.rows()) + " validation rows";
  return text + ", " + std::to_string(set.test.rows()) + " " + name_of(set.evaluated) + " rows)";
}

}  // namespace gpunn::data
