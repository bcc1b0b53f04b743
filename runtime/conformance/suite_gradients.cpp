#include <algorithm>
#include <cmath>
#include <utility>

#include "conformance/case_runner.hpp"
#include "conformance/gradients/gradient_case.hpp"
#include "conformance/suites.hpp"
#include "ops/op.hpp"

namespace gpunn::conformance {

using ops::Evaluation;
using ops::Random;
using ops::Tolerance;
using ops::tolerance_of;

namespace {

// The difference quotients are off by about 1e-11 of what they differentiate, and saved outputs were rounded once more:
// three times the table's tolerance and 1e-8 of the largest gradient leave room for both, and for nothing else.
Expectation expect_differences(const GradientProblem& problem, Precision precision) {
  Expectation expectation{problem.expected, {}};
  const Evaluation evaluation{problem.signature, problem.inputs, problem.expected, {}, precision};
  for (std::size_t i = 0; i < problem.expected.size(); ++i) {
    Tolerance tolerance = tolerance_of(evaluation, i);
    double largest = 1e-3;
    for (const double value : problem.expected[i].values) largest = std::max(largest, std::abs(value));
    for (double& bound : tolerance.bound) bound = 3 * bound + 1e-8 * largest;
    expectation.tolerances.push_back(std::move(tolerance));
  }
  return expectation;
}

}  // namespace

Checks gradient_suite(const CheckOptions&) {
  Checks checks;
  for (GradientCase& test : all_gradients()) {
    checks.push_back(make_check("grad", signature_of(test), test.name));
    checks.back().run = [test = std::move(test)](Workbench& bench, CheckCase& result, const Note&) {
      Random random(bench.options().seed, std::string(ops::op_info(test.op).name) + test.name);
      const GradientProblem problem = make_problem(test, random);
      run_case(bench.backend(), problem.signature, problem.inputs,
               expect_differences(problem, bench.options().precision), result);
    };
  }
  return checks;
}

}  // namespace gpunn::conformance
