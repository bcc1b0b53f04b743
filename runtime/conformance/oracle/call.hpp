#pragma once

#include <gpunn/error.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "conformance/oracle.hpp"

namespace gpunn::conformance {

using Values = std::vector<double>;

// One evaluation: what an op's function of the oracle reads and writes.
class OracleCall {
 public:
  // Outputs begin as NaN, so that an element that a loop forgets shows.
  OracleCall(const graph::OpSignature& signature, const std::vector<OracleTensor>& inputs)
      : signature_(signature), inputs_(inputs) {
    for (const TensorType& type : signature.outputs) {
      const auto count = static_cast<std::size_t>(type.elements());
      outputs_.push_back({type, Values(count, std::numeric_limits<double>::quiet_NaN())});
    }
  }

  const Values& in(std::size_t i) const { return inputs_.at(i).values; }
  Values& out(std::size_t i = 0) { return outputs_.at(i).values; }
  const TensorType& in_type(std::size_t i) const { return inputs_.at(i).type; }
  const TensorType& out_type(std::size_t i = 0) const { return outputs_.at(i).type; }
  std::size_t inputs() const { return inputs_.size(); }

  // Dimension j of input or output i.
  int64_t in_dim(std::size_t i, std::size_t j) const { return inputs_.at(i).type.shape.at(j); }
  int64_t out_dim(std::size_t i, std::size_t j) const { return outputs_.at(i).type.shape.at(j); }

  template <class Attrs>
  Attrs attrs() const {
    return signature_.attrs.as<Attrs>();
  }

  // Throws Error where the tensors do not have the shapes that ops.h states.
  void require(bool holds, const std::string& what) const {
    if (!holds) throw Error("oracle, op " + std::to_string(signature_.op) + ": expected " + what);
  }

  std::vector<OracleTensor> take_outputs() { return std::move(outputs_); }

 private:
  const graph::OpSignature& signature_;
  const std::vector<OracleTensor>& inputs_;
  std::vector<OracleTensor> outputs_;
};

using OracleFunction = void (*)(OracleCall& call);

struct OracleEntry {
  int32_t op;
  OracleFunction run;
};

// The ops of each family.
std::vector<OracleEntry> arithmetic_oracle();
std::vector<OracleEntry> elementwise_oracle();
std::vector<OracleEntry> activation_oracle();
std::vector<OracleEntry> matmul_oracle();
std::vector<OracleEntry> bias_oracle();
std::vector<OracleEntry> convolution_oracle();
std::vector<OracleEntry> pooling_oracle();
std::vector<OracleEntry> upsampling_oracle();
std::vector<OracleEntry> shape_oracle();
std::vector<OracleEntry> softmax_oracle();
std::vector<OracleEntry> normalization_oracle();
std::vector<OracleEntry> layer_norm_oracle();
std::vector<OracleEntry> local_response_norm_oracle();
std::vector<OracleEntry> loss_oracle();
std::vector<OracleEntry> pointwise_loss_oracle();
std::vector<OracleEntry> hinge_loss_oracle();
std::vector<OracleEntry> reduction_oracle();
std::vector<OracleEntry> optimizer_oracle();
std::vector<OracleEntry> regularization_oracle();
std::vector<OracleEntry> random_oracle();
std::vector<OracleEntry> batch_oracle();
std::vector<OracleEntry> augmentation_oracle();
std::vector<OracleEntry> counter_oracle();
std::vector<OracleEntry> metrics_oracle();

// --- Pieces that several ops share ---

inline std::size_t at(int64_t index) { return static_cast<std::size_t>(index); }

// max(x, 0) that keeps NaN, or x itself.
double activate(int32_t activation, double x);

// The value that a C conversion to this type gives.
double convert(double value, DType to);

// The class of row n; throws Error where it is none.
int64_t label_of(const OracleCall& call, const Values& labels, int64_t n, int64_t classes);

// y[row] = x[row] - max - log(sum of exp(x[row] - max)); one sum of max and log would lose the smaller.
void log_softmax_row(const Values& x, Values& y, int64_t row, int64_t classes);

}  // namespace gpunn::conformance
