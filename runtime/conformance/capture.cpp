#include "conformance/capture.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstdio>

#include "conformance/bound_op.hpp"
#include "conformance/case_runner.hpp"
#include "ops/op.hpp"

namespace gpunn::conformance {

using ops::Case;
using ops::decode;
using ops::index_text;
using ops::Random;
using ops::ReferenceTensor;

namespace {

constexpr int kContents = 4;  // different inputs; the first is there when the op is captured

// Empty: the same. Otherwise where a replay departs from an eager run on the same inputs.
std::string departure(const graph::OpSignature& signature, const OutputBytes& eager, const OutputBytes& replayed) {
  for (std::size_t i = 0; i < eager.size(); ++i) {
    const auto [a, b] = std::ranges::mismatch(eager[i], replayed[i]);
    if (a == eager[i].end()) continue;
    const TensorType& type = signature.outputs[i];
    const auto element = static_cast<std::size_t>(a - eager[i].begin()) / size_of(type.dtype);
    char text[96];
    std::snprintf(text, sizeof(text), ": enqueued %.9g, replayed %.9g", decode(type, eager[i]).values[element],
                  decode(type, replayed[i]).values[element]);
    return "output " + std::to_string(i) + index_text(type.shape, element) + text;
  }
  return "";
}

}  // namespace

void run_captured(const Case& test, Workbench& bench, CheckCase& result) {
  execution::Backend& backend = bench.backend();
  const graph::OpSignature& signature = test.signature;
  if (!is_served(backend, signature, result)) return;
  BoundOp bound(backend, signature);
  if (!is_capturable(backend, bound.placement(), result)) return;
  const bool deterministic = (bound.placement().flags & GPUNN_OP_DETERMINISTIC) != 0;

  std::vector<std::vector<ReferenceTensor>> contents;
  std::vector<OutputBytes> eager;
  for (int i = 0; i < kContents; ++i) {
    Random random(bench.options().seed, "graph" + std::to_string(i) + test.name);
    contents.push_back(test.inputs(random));
    bound.write(contents.back());
    bound.enqueue();
    eager.push_back(bound.read());
  }

  bound.write(contents[0]);
  const auto graph = execution::capture(backend, [&] { bound.enqueue(); });
  if (!bound.untouched()) throw Error("the kernel ran while it was captured, before any launch");
  // There and back, so that each content follows another one.
  for (const std::size_t i : {1, 2, 3, 0, 2}) {
    bound.write(contents[i]);
    graph->launch();
    const OutputBytes replayed = bound.read();
    const std::string problem =
        deterministic
            ? departure(signature, eager[i], replayed)
            // Where equal bits can't be asked for.
            : expect_reference(signature, contents[i], bench.options().precision).fault(replayed, result.error);
    if (problem.empty()) continue;
    result.verdict = Verdict::failed;
    result.detail = "a replay on inputs that changed since the capture gave " + problem;
    if (replayed == eager[0]) result.detail += "; it is what the inputs at the time of the capture gave";
    return;
  }
}

}  // namespace gpunn::conformance
