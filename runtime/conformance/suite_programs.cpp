#include "conformance/suites.hpp"
#include "conformance/training/programs.hpp"

namespace gpunn::conformance {

Checks programs_suite(const CheckOptions&) {
  Checks checks;
  for (ClaimedTraining& training : claimed_trainings()) {
    checks.push_back(make_check("programs", "training", training.sample.what + ", claimed against op by op"));
    checks.back().run = [training = std::move(training)](Workbench& bench, CheckCase& result, const Note&) {
      run_claimed(training, bench, result);
    };
  }
  return checks;
}

}  // namespace gpunn::conformance
