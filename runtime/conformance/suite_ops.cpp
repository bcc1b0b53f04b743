#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

// The data of the last case that ran: the checks of one case with each named kernel follow one another.
struct CaseData {
  std::shared_ptr<const Case> of;
  std::vector<ReferenceTensor> inputs;
  Expectation expectation;
};

void run_op_case(const std::shared_ptr<const Case>& test, CaseData& data, Workbench& bench, CheckCase& result) {
  if (!is_served(bench.backend(), test->signature, result)) return;  // before the data is made
  if (data.of != test) {
    data = {};
    Random random(bench.options().seed, std::string(ops::op_info(test->signature.op).name) + test->name);
    data.inputs = test->inputs(random);
    data.expectation = expect_reference(test->signature, data.inputs, bench.options().precision);
    data.of = test;
  }
  run_case(bench.backend(), test->signature, data.inputs, data.expectation, result, test->same_memory);
}

}  // namespace

Checks ops_suite(const CheckOptions& options) {
  Checks checks;
  const ops::Ops ops = ops_of(options);
  std::vector<Case> cases = all_cases(ops);
  std::ranges::move(ops::derived_cases(ops), std::back_inserter(cases));
  std::ranges::move(ops::half_cases(ops), std::back_inserter(cases));
  std::ranges::move(ops::channels_last_cases(ops), std::back_inserter(cases));
  const auto data = std::make_shared<CaseData>();
  for (Case& one : cases) {
    const auto test = std::make_shared<const Case>(std::move(one));
    checks.push_back(make_check("ops", test->signature, test->name));
    checks.back().run = [test, data](Workbench& bench, CheckCase& result, const Note&) {
      run_op_case(test, *data, bench, result);
    };
  }
  for (Check& check : strided_copies(options)) checks.push_back(std::move(check));
  return checks;
}

}  // namespace gpunn::conformance
