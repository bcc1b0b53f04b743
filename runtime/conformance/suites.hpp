#pragma once

#include <gpunn/check.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/process/work.hpp"
#include "conformance/workbench.hpp"
#include "graph/graph.hpp"
#include "ops/case.hpp"

namespace gpunn::conformance {

// One case that waits to be run. Making a list of them asks nothing of the backend.
struct Check {
  CheckCase labels;  // suite, op, name, dtype, optional
  int32_t op = 0;    // of the catalogue, where the check is about one: CheckOptions.ops chooses by it
  // About the op that it runs by Workbench::backend() or an OpRun, so that it can be repeated with each named kernel.
  std::optional<graph::OpSignature> signature = {};
  std::string kernel = {};  // the one that must run it; empty: the plugin's own choice
  // Fills verdict, detail and figures. An exception is a failure.
  std::function<void(Workbench& bench, CheckCase& result, const Note& note)> run;
};
using Checks = std::vector<Check>;

Check make_check(std::string_view suite, std::string_view op, std::string_view name);
// About an op of the catalogue at one signature.
Check make_check(std::string_view suite, const graph::OpSignature& signature, std::string_view name);

// Those that the options name, or all. Throws Error for a name that the catalogue lacks.
ops::Ops ops_of(const CheckOptions& options);

// The plugin's table, memory, streams, events and queries.
Checks abi_suite(const CheckOptions& options);
// Every op against its float64 reference.
Checks ops_suite(const CheckOptions& options);
// COPY between tensors with gaps and turned dimensions; part of the suite "ops".
Checks strided_copies(const CheckOptions& options);
// Backward kernels against finite differences of the references of forward ops.
Checks gradient_suite(const CheckOptions& options);
// Every op called repeatedly, beside others, at other addresses: what it remembers, allocates and leaves behind.
Checks state_suite(const CheckOptions& options);
// Streams and events under load, and every op on a stream that is busy.
Checks stream_suite(const CheckOptions& options);
// Captured graphs: every op by itself, and whole trainings, replayed against op by op.
Checks graph_suite(const CheckOptions& options);
// Small trainings with the backend's fused subgraphs against the same op by op.
Checks subgraphs_suite(const CheckOptions& options);
// Collectives between ranks, by a plugin that has the extension: sums, copies, and the end of those that wait.
Checks collectives_suite(const CheckOptions& options);
// Loss curves against those of another backend.
Checks train_suite(const CheckOptions& options);
// The time of each op; fails only if the op fails.
Checks perf_suite(const CheckOptions& options);

}  // namespace gpunn::conformance
