#include "conformance/reporter.hpp"

#include <utility>

#include "graph/op_info.hpp"

namespace gpunn::conformance {

namespace {

// A fused op is optional even where all is required: its decomposition runs in its place.
bool may_be_lacking(const CheckCase& result) {
  if (result.optional) return true;
  const graph::OpInfo* info = result.verdict == Verdict::unsupported ? graph::find_op(result.op) : nullptr;
  return info != nullptr && info->composite();
}

}  // namespace

void Reporter::add(const CheckCase& labels, CheckCase result) {
  result.suite = labels.suite;
  result.op = labels.op;
  result.name = labels.name;
  result.optional = labels.optional;
  add(std::move(result));
}

void Reporter::add(CheckCase result) {
  result.backend = report_.backend;
  const bool skipped = result.verdict == Verdict::unsupported || result.verdict == Verdict::no_device;
  if (skipped && options_.required && !may_be_lacking(result)) {
    result.detail = std::string(name_of(result.verdict)) + ", but required: " + result.detail;
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
