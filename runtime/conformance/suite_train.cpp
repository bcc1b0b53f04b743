#include "conformance/suites.hpp"
#include "conformance/training/curves.hpp"

namespace gpunn::conformance {

Checks train_suite(const CheckOptions& options) {
  Checks checks;
  for (SampleTraining& sample : curve_trainings()) {
    checks.push_back(make_check("train", sample.name, sample.what + ", against " + options.reference));
    checks.back().run = [sample = std::move(sample)](Workbench& bench, CheckCase& result, const Note&) {
      run_curve(sample, bench, result);
    };
  }
  return checks;
}

}  // namespace gpunn::conformance
