#include "conformance/stream/side_by_side.hpp"

#include "conformance/stream/delay.hpp"
#include "conformance/stream/op_run.hpp"

namespace gpunn::conformance {

namespace {

constexpr double kSideDelay = 1;  // milliseconds, in which the host gets ahead of both streams
constexpr int kSideRounds = 8;

bool says_concurrent(const RawDevice& device) {
  bool says = false;
  plugins::guarded_void([&] {
    const auto extension = device.table().extension;
    says = extension != nullptr && extension(GPUNN_EXTENSION_CONCURRENT_STREAMS) != nullptr;
  });
  return says;
}

}  // namespace

void run_side_by_side(const Case& test, Workbench& bench, CheckCase& result) {
  OpRun first(test, bench, "first", kSideRounds), second(test, bench, "second", kSideRounds);
  const std::string who = "'" + (first.kernel().served() ? first.kernel().device().plugin().name() : "") + "'";
  if (!first.kernel().served()) {
    result.verdict = Verdict::unsupported;
    result.detail = first.kernel().reason();
    return;
  }
  if (!says_concurrent(first.kernel().device())) {
    result.verdict = Verdict::unsupported;
    result.detail = who + " does not say that its kernels may run at the same time, so none do";
    return;
  }
  const RawStream a(bench.chain().bottom()), b(bench.chain().bottom());
  const RawStream a_wrapper(first.kernel().device(), a), b_wrapper(second.kernel().device(), b);
  bench.delay().enqueue(a, kSideDelay);
  bench.delay().enqueue(b, kSideDelay);
  for (int round = 0; round < kSideRounds; ++round) {
    first.enqueue(a, a_wrapper, round);
    second.enqueue(b, b_wrapper, round);
  }
  a.synchronize();
  b.synchronize();
  for (int round = 0; round < kSideRounds; ++round) {
    for (const OpRun* run : {&first, &second}) {
      const std::string fault = run->fault(result.error, round);
      if (fault.empty()) continue;
      result.verdict = Verdict::failed;
      result.detail = "while another kernel of the op was on another stream, " + who + " gave " + fault + " in round " +
                      std::to_string(round + 1) + " of " + std::to_string(kSideRounds) +
                      ". It says that its kernels may run at the same time (GPUNN_EXTENSION_CONCURRENT_STREAMS); where "
                      "a kernel runs alone and is right, two of them share scratch memory";
      return;
    }
  }
}

}  // namespace gpunn::conformance
