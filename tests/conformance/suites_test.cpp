// Each suite finds what it is there to find, on a backend that works behind the caller's back.
#include "check_support.hpp"

using namespace gpunn::testing;

namespace {

gpunn::CheckReport run_suite(const std::string& backend, const std::string& suite) {
  gpunn::CheckOptions options = options_for(backend);
  options.suites = {suite};
  return gpunn::check(options);
}

const gpunn::CheckCase& find(const gpunn::CheckReport& report, const std::string& op, const std::string& name) {
  for (const gpunn::CheckCase& test : report.cases) {
    if (test.op == op && test.name.find(name) != std::string::npos) return test;
  }
  FAIL("there is no case " << op << " " << name);
  throw 0;
}

}  // namespace

TEST_CASE("streams that are right pass, however far the device lags behind") {
  for (const char* backend : {"asynchronous", "asynchronous_overlay", "honest"}) {
    const gpunn::CheckReport report = run_suite(backend, "stream");
    INFO(backend);
    CHECK(summary(report).empty());
    CHECK(report.passed > 10);
  }
  // The test has teeth: the producer was still at work when the consumer stood in line.
  const gpunn::CheckReport report = run_suite("asynchronous", "stream");
  CHECK_THAT(find(report, "event_wait", "slow one").detail, Contains("the device worked on for"));
  CHECK_THAT(find(run_suite("honest", "stream"), "event_wait", "slow one").detail, Contains("nothing could overtake"));
}

TEST_CASE("events that order nothing are found out") {
  const gpunn::CheckReport report = run_suite("disordered", "stream");
  CHECK(names(failures(report, "stream")) == std::set<std::string>{"event_wait", "event_record"});
  CHECK(find(report, "event_wait", "take turns").verdict == gpunn::Verdict::failed);
  CHECK_THAT(find(report, "event_wait", "slow one").detail,
             Contains("read what was there before that copy") && Contains("found 0xee"));
}

TEST_CASE("a kernel on a stream of its own is found out") {
  const gpunn::CheckReport report = run_suite("astray", "stream");
  CHECK(names(failures(report, "stream")) == std::set<std::string>{"RELU"});
  CHECK_THAT(failures(report, "stream").at("RELU"), Contains("another stream than the one it is given"));
}

TEST_CASE("a wrapper that is a stream of its own is found out") {
  const gpunn::CheckReport report = run_suite("aloof_overlay", "stream");
  const auto failed = failures(report, "stream");
  CHECK(failed.count("stream_wrap") == 1);
  CHECK(failed.count("event_wait") == 1);
  CHECK(failed.count("RELU") == 1);
  CHECK(failed.count("MATMUL") == 0);  // the base's
}
