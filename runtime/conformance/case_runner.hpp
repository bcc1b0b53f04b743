#pragma once

#include <gpunn/check.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "execution/backend.hpp"
#include "ops/case.hpp"
#include "ops/comparison.hpp"
#include "ops/tolerance.hpp"

namespace gpunn::conformance {

using ops::ReferenceTensor;
using ops::Tolerance;

// The outputs that are expected, and how far off they may be.
struct Expectation {
  std::vector<ReferenceTensor> outputs;
  std::vector<Tolerance> tolerances;

  // The mistake in output i, which has these bytes; empty: none. Raises `error` to the largest error as a share of the
  // tolerance.
  std::string fault(std::size_t i, std::span<const std::byte> found, double& error) const;
  // The first that is wrong with all of them.
  std::string fault(const std::vector<std::vector<std::byte>>& found, double& error) const;
};

// The float64 reference's outputs with the table's tolerances, where products may be rounded to a precision.
Expectation expect_reference(const graph::OpSignature& signature, const std::vector<ReferenceTensor>& inputs,
                             Precision precision);

// Runs an op on a backend: first with separate memory for each tensor, then with every output in the memory of each
// input that it may alias. Each runs twice, over different poison in outputs and workspace, with guard bands around
// every tensor and the workspace. Checks the results, the bands and the inputs; if the kernel says that it is
// deterministic, both runs must agree. `same_memory` as in Case. The verdict is in `result`, whose suite, op and name
// are the caller's.
void run_case(execution::Backend& backend, const graph::OpSignature& signature,
              const std::vector<ReferenceTensor>& inputs, const Expectation& expectation, CheckCase& result,
              const std::vector<int>& same_memory = {});

// Whether a plugin of the backend's chain serves the op; if not, the verdict is `unsupported`.
bool is_served(const execution::Backend& backend, const graph::OpSignature& signature, CheckCase& result);

}  // namespace gpunn::conformance
