#pragma once

#include <gpunn/error.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"
#include "ops/values.hpp"

namespace gpunn::ops {

using Values = std::vector<double>;

// One evaluation of an op's reference: its inputs and outputs.
class ReferenceCall {
 public:
  // Outputs begin as NaN, so that an element that a loop forgets shows.
  ReferenceCall(const graph::OpSignature& signature, const std::vector<ReferenceTensor>& inputs)
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

  // Throws Error if the tensors do not have the shapes that op_list.inc states.
  void require(bool holds, const std::string& what) const {
    if (!holds) throw Error("reference of op " + std::to_string(signature_.op) + ": expected " + what);
  }

  std::vector<ReferenceTensor> take_outputs() { return std::move(outputs_); }

 private:
  const graph::OpSignature& signature_;
  const std::vector<ReferenceTensor>& inputs_;
  std::vector<ReferenceTensor> outputs_;
};

// The op on the host, in float64. In-place outputs come back as new tensors. Throws Error for an op that has no
// reference.
std::vector<ReferenceTensor> run_reference(const graph::OpSignature& signature,
                                           const std::vector<ReferenceTensor>& inputs);

// --- Pieces that several ops share ---

inline std::size_t at(int64_t index) { return static_cast<std::size_t>(index); }

// y = f(x) by element.
template <class F>
void map_elements(ReferenceCall& call, F f) {
  call.require(call.in(0).size() == call.out().size(), "y as large as x");
  for (std::size_t i = 0; i < call.out().size(); ++i) call.out()[i] = f(call.in(0)[i]);
}

// dx = f(dy, v) by element, v being x or y.
template <class F>
void map_backward(ReferenceCall& call, F f) {
  call.require(call.in(0).size() == call.in(1).size() && call.in(0).size() == call.out().size(), "three equal sizes");
  for (std::size_t i = 0; i < call.out().size(); ++i) call.out()[i] = f(call.in(0)[i], call.in(1)[i]);
}

// max(x, 0) that keeps NaN, or x itself.
double activate(int32_t activation, double x);

// The value that a C conversion to this type gives.
double convert(double value, DType to);

// The class of row n; kNoLabel if its label is no class.
constexpr int64_t kNoLabel = -1;
int64_t label_of(const Values& labels, int64_t n, int64_t classes);

// y[row] = x[row] - max - log(sum of exp(x[row] - max)); one sum of max and log would lose the smaller.
void log_softmax_row(const Values& x, Values& y, int64_t row, int64_t classes);

// Elements of one row of x[N,...].
int64_t row_size(const Shape& shape);

}  // namespace gpunn::ops
