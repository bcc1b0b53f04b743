#include "ops/reference.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "ops/op.hpp"

namespace gpunn::ops {

std::vector<ReferenceTensor> run_reference(const OpSignature& signature, const std::vector<ReferenceTensor>& inputs) {
  const OpInfo& info = op_info(signature.op);
  if (info.reference == nullptr) throw Error(std::string(info.name) + " has no reference");

  ReferenceCall call(signature, inputs);
  call.require(inputs.size() == signature.inputs.size(),
               std::to_string(signature.inputs.size()) + " input tensors, found " + std::to_string(inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    call.require(inputs[i].type == signature.inputs[i], "input " + std::to_string(i) + " of type " +
                                                            to_string(signature.inputs[i]) + ", found " +
                                                            to_string(inputs[i].type));
    call.require(static_cast<int64_t>(inputs[i].values.size()) == inputs[i].type.elements(),
                 "as many values in input " + std::to_string(i) + " as " + to_string(inputs[i].type) + " has");
  }
  info.reference(call);
  return call.take_outputs();
}

double activate(int32_t activation, double x) {
  if (activation != GPUNN_ACTIVATION_RELU) return x;
  return x < 0 ? 0 : x;  // a NaN compares false and stays
}

double convert(double value, DType to) {
  switch (to) {
    case DType::f32:
      return static_cast<float>(value);
    case DType::f64:
      return value;
    case DType::i64:
      return static_cast<double>(static_cast<int64_t>(value));
    case DType::i32:
      return static_cast<int32_t>(static_cast<int64_t>(value));
    case DType::u8:
      return static_cast<uint8_t>(static_cast<int64_t>(value));
    case DType::bf16:
    case DType::f16:
      return rounded(value, to);
  }
  throw Error("no reference converts to " + std::string(name_of(to)));
}

int64_t label_of(const Values& labels, int64_t n, int64_t classes) {
  const auto label = static_cast<int64_t>(labels.at(at(n)));
  return label >= 0 && label < classes ? label : kNoLabel;
}

void log_softmax_row(const Values& x, Values& y, int64_t row, int64_t classes) {
  double largest = x[at(row * classes)];
  for (int64_t c = 1; c < classes; ++c) largest = std::max(largest, x[at(row * classes + c)]);
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[at(row * classes + c)] - largest);
  for (int64_t c = 0; c < classes; ++c) y[at(row * classes + c)] = x[at(row * classes + c)] - largest - std::log(sum);
}

int64_t row_size(const Shape& shape) {
  int64_t size = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) size *= shape[i];
  return size;
}

}  // namespace gpunn::ops
