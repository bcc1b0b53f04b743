#include "conformance/capture.hpp"
#include "conformance/suites.hpp"
#include "conformance/training/replay.hpp"
#include "ops/case.hpp"

namespace gpunn::conformance {

using ops::Case;
using ops::one_case_each;

Checks graph_suite(const CheckOptions& options) {
  Checks checks;
  for (Case& test : one_case_each(ops_of(options))) {
    checks.push_back(make_check("graph", test.signature, "captured, then replayed on other inputs: " + test.name));
    checks.back().run = [test = std::move(test)](Workbench& bench, CheckCase& result, const Note&) {
      run_captured(test, bench, result);
    };
  }
  for (SampleTraining& sample : graph_trainings()) {
    checks.push_back(make_check("graph", "training", sample.name + ": " + sample.what));
    checks.back().run = [sample = std::move(sample)](Workbench& bench, CheckCase& result, const Note&) {
      run_replay(sample, bench, result);
    };
  }
  return checks;
}

}  // namespace gpunn::conformance
