#pragma once

#include <gpunn/check.hpp>

namespace gpunn::conformance {

// Gives verdicts to cases that did not run, counts all cases and passes them on.
class Reporter {
 public:
  Reporter(const CheckOptions& options, CheckReport& report) : options_(options), report_(report) {}

  void add(CheckCase result);
  // `result` without labels.
  void add(const CheckCase& labels, CheckCase result);

 private:
  bool must_run(const CheckCase& result) const;
  const CheckOptions& options_;
  CheckReport& report_;
};

}  // namespace gpunn::conformance
