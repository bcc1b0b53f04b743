#include "conformance/stream/behind_delay.hpp"

#include "conformance/stream/delay.hpp"
#include "conformance/stream/op_run.hpp"

namespace gpunn::conformance {

namespace {

constexpr double kOpDelay = 3;  // milliseconds

}  // namespace

void run_behind_delay(const Case& test, Workbench& bench, CheckCase& result) {
  OpRun run(test, bench, "stream");
  if (!run.kernel().served()) {
    result.verdict = Verdict::unsupported;
    result.detail = run.kernel().reason();
    return;
  }
  const RawStream stream(bench.chain().bottom());
  const RawStream wrapper(run.kernel().device(), stream);
  bench.delay().enqueue(stream, kOpDelay);
  run.enqueue(stream, wrapper);
  stream.synchronize();
  const std::string fault = run.fault(result.error);
  if (fault.empty()) return;
  result.verdict = Verdict::failed;
  result.detail = "on a stream that was busy, between copies of its inputs and its outputs, '" +
                  run.kernel().device().plugin().name() + "' gave " + fault +
                  ". Where the suite ops passes, the kernel runs on another stream than the one it is given, or the "
                  "host reads its inputs";
}

}  // namespace gpunn::conformance
