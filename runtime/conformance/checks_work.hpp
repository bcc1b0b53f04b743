#pragma once

#include <memory>

#include "conformance/process/work.hpp"
#include "conformance/suites.hpp"
#include "conformance/workbench.hpp"

namespace gpunn::conformance {

// Work on checks that opens the backend under test. A derived class defines what happens with each check.
class ChecksWork : public Work {
 public:
  ChecksWork(const CheckOptions& options, const Checks& checks) : options_(options), checks_(checks) {}

  Opened open() override;
  std::size_t size() const override { return checks_.size(); }
  void close() override;

 protected:
  const CheckOptions& options() const { return options_; }
  const Check& check(std::size_t index) const { return checks_[index]; }
  Workbench& bench() { return *bench_; }

 private:
  const CheckOptions& options_;
  const Checks& checks_;
  std::unique_ptr<Workbench> bench_;
};

}  // namespace gpunn::conformance
