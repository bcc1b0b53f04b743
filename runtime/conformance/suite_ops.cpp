#include <algorithm>
#include <iterator>

#include "conformance/case_runner.hpp"
#include "conformance/suites.hpp"
#include "ops/case.hpp"
#include "ops/derived_cases.hpp"
#include "ops/op.hpp"

namespace gpunn::conformance {

using ops::all_cases;
using ops::Case;
using ops::Random;
using ops::ReferenceTensor;

namespace {

void run_op_case(const Case& test, Workbench& bench, CheckCase& result) {
  if (!is_served(bench.backend(), test.signature, result)) return;  // before the data is made
  Random random(bench.options().seed, std::string(ops::op_info(test.signature.op).name) + test.name);
  const std::vector<ReferenceTensor> inputs = test.inputs(random);
  run_case(bench.backend(), test.signature, inputs, expect_reference(test.signature, inputs, bench.options().precision),
           result, test.same_memory);
}

}  // namespace

Checks ops_suite(const CheckOptions& options) {
  Checks checks;
  const ops::Ops ops = ops_of(options);
  std::vector<Case> cases = all_cases(ops);
  std::ranges::move(ops::derived_cases(ops), std::back_inserter(cases));
  std::ranges::move(ops::half_cases(ops), std::back_inserter(cases));
  std::ranges::move(ops::channels_last_cases(ops), std::back_inserter(cases));
  for (Case& test : cases) {
    checks.push_back(make_check("ops", test.signature, test.name));
    checks.back().run = [test = std::move(test)](Workbench& bench, CheckCase& result, const Note&) {
      run_op_case(test, bench, result);
    };
  }
  for (Check& check : strided_copies(options)) checks.push_back(std::move(check));
  return checks;
}

}  // namespace gpunn::conformance
