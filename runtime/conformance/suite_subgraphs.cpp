#include "conformance/suites.hpp"
#include "conformance/training/subgraphs.hpp"

namespace gpunn::conformance {

Checks subgraphs_suite(const CheckOptions&) {
  Checks checks;
  for (FusedTraining& training : fused_trainings()) {
    checks.push_back(make_check("subgraphs", "training", training.sample.what + ", fused against op by op"));
    checks.back().run = [training = std::move(training)](Workbench& bench, CheckCase& result, const Note&) {
      run_fused(training, bench, result);
    };
  }
  return checks;
}

}  // namespace gpunn::conformance
