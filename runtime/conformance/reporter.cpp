#include "conformance/reporter.hpp"

#include <utility>

#include "conformance/profiles.hpp"

namespace gpunn::conformance {

bool Reporter::must_run(const CheckCase& result) const {
  return !options_.profile.empty() && !result.optional &&
         demands(find_profile(options_.profile), result.op, result.dtype);
}

void Reporter::add(const CheckCase& labels, CheckCase result) {
  result.suite = labels.suite;
  result.op = labels.op;
  result.name = labels.name;
  result.kernel = labels.kernel;
  result.dtype = labels.dtype;
  result.extra = labels.extra;
  result.optional = result.optional || labels.optional;
  add(std::move(result));
}

void Reporter::add(CheckCase result) {
  if (result.extra && result.verdict == Verdict::unsupported) return;
  result.backend = report_.backend;
  const bool skipped = result.verdict == Verdict::unsupported || result.verdict == Verdict::no_device;
  if (skipped && must_run(result)) {
    result.detail =
        std::string(name_of(result.verdict)) + ", but required by profile '" + options_.profile + "': " + result.detail;
    result.verdict = Verdict::failed;
  }
  switch (result.verdict) {
    case Verdict::passed:
      ++report_.passed;
      break;
    case Verdict::failed:
      ++report_.failed;
      break;
    case Verdict::unsupported:
    case Verdict::no_device:
      ++report_.skipped;
      break;
  }
  if (options_.on_case) options_.on_case(result);
  report_.cases.push_back(std::move(result));
}

}  // namespace gpunn::conformance
