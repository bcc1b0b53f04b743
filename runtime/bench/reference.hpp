#pragma once

#include <gpunn/precision.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "ops/reference.hpp"
#include "ops/tolerance.hpp"

namespace gpunn::bench {

// The indices of a dimension that are looked at, by dimension; no list: all of them.
using Slice = std::vector<std::optional<std::vector<int64_t>>>;

// An op in float64: the whole op if it is small, otherwise a part in which each output element has all its terms, such
// as some rows and columns of a matrix product.
class Reference {
 public:
  using Bytes = std::vector<std::byte>;
  // nullopt if the op is large and cannot be computed in part.
  static std::optional<Reference> of(const graph::OpSignature& signature, const std::vector<Bytes>& inputs);

  struct Deviation {
    double error = 0;    // the largest over the largest value of its output
    double allowed = 0;  // the largest in units of the tolerance
    int64_t checked = 0;
    std::string detail;  // of what is beyond it; empty: all is well
  };
  // `outputs` of the whole op.
  Deviation judge(const std::vector<Bytes>& outputs, Precision precision);

 private:
  graph::OpSignature whole_, part_;
  std::vector<Slice> output_slices_;
  std::vector<ops::ReferenceTensor> inputs_, expected_;
  std::map<Precision, std::vector<ops::Tolerance>> tolerances_;
};

}  // namespace gpunn::bench
