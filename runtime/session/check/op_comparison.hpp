#pragma once

#include <gpunn/precision.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "ops/tolerance.hpp"

namespace gpunn::training {

using HostBytes = std::vector<std::byte>;

// One op that two backends ran on the same inputs, brought to the host.
struct ComparedOp {
  graph::OpSignature signature;
  std::vector<HostBytes> inputs;  // before the op ran; none of u8, which no bound depends on
  std::vector<HostBytes> first, second;
};

// What it takes to judge a difference.
struct Judging {
  Precision precision = Precision::fp32;
  // The op on other inputs, fast: on the first backend.
  ops::Evaluator evaluate;
  // An input that ComparedOp left out.
  std::function<HostBytes(std::size_t input)> fetch;
};

// The largest difference of one op's outputs.
struct OpDifference {
  double error = 0;  // as a share of what rounding allows between two backends; 0: equal bits
  bool departs = false;
  // Of a departure:
  std::size_t output = 0, element = 0;
  double first = 0, second = 0, allowed = 0;
  std::size_t wrong = 0;                           // elements
  std::string reason;                              // of what is allowed
  std::optional<double> reference;                 // what float64 gives, where it was asked
  bool first_wrong = false, second_wrong = false;  // according to it
};

// Compares by the tolerances of conformance/: two backends may differ by twice the tolerance of a single backend. The
// bounds of sums need the sums of absolute values. The op runs once more on the first backend for them, since the
// float64 reference would take seconds. Only a difference beyond the bound is put to the reference. The op departs if a
// backend is off by more than its tolerance, and the verdict says which backend. An op too large for the reference is
// judged by the bound alone.
OpDifference compare_op(const ComparedOp& op, const Judging& judging);

}  // namespace gpunn::training
