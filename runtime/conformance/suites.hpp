#pragma once

#include <gpunn/check.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "execution/backend.hpp"
#include "plugins/plugin.hpp"

namespace gpunn::conformance {

// What a suite runs on and reports to.
struct SuiteContext {
  execution::Backend& backend;
  std::vector<std::shared_ptr<const plugins::Plugin>> chain;
  const CheckOptions& options;
  std::function<bool(int32_t op)> wanted;  // by options.ops
  std::function<void(CheckCase)> report;
};

// A case that has passed so far.
CheckCase make_check(std::string_view suite, std::string_view op, std::string_view name);

// Every op against the oracle.
void run_ops_suite(const SuiteContext& context);
// COPY between tensors with gaps and turned dimensions; part of the suite "ops".
void run_strided_copies(const SuiteContext& context);
// Backward kernels against finite differences of the oracle's forward ops.
void run_gradient_suite(const SuiteContext& context);
// The plugin's table, memory, streams, events and queries.
void run_abi_suite(const SuiteContext& context);

}  // namespace gpunn::conformance
