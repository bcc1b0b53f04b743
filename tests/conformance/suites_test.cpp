// Each suite finds the mistakes that it exists for, on a backend that works behind the caller's back.
#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

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

// No plugin needs a kernel for them.
const std::set<std::string> kOfHost{"ALL_REDUCE", "REDUCE_SCATTER", "ALL_GATHER"};

std::ptrdiff_t skipped(const gpunn::CheckReport& report) {
  return std::ranges::count_if(report.cases, [](const gpunn::CheckCase& test) {
    return test.verdict == gpunn::Verdict::unsupported && !kOfHost.contains(test.op);
  });
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
  // Where other programs keep all cores, the stray thread may by chance come after the stream that it should be on, or
  // so late that it disturbs the next case.
  const std::set<std::string> expected{"RELU"};
  gpunn::CheckReport report;
  for (int attempt = 0; attempt < 5 && names(failures(report, "stream")) != expected; ++attempt) {
    report = run_suite("astray", "stream");
  }
  REQUIRE(names(failures(report, "stream")) == expected);
  CHECK_THAT(failures(report, "stream").at("RELU"), Contains("another stream than the one it is given"));
}

TEST_CASE("kernels that run at the same time must share nothing") {
  const gpunn::CheckReport fine = run_suite("concurrent", "stream");
  CHECK(summary(fine).empty());
  CHECK(skipped(fine) == 0);
  CHECK(find(fine, "RELU", "beside another").verdict == gpunn::Verdict::passed);

  const gpunn::CheckReport report = run_suite("entangled", "stream");
  CHECK(names(failures(report, "stream")) == std::set<std::string>{"RELU"});
  CHECK(find(report, "RELU", "behind work").verdict == gpunn::Verdict::passed);
  CHECK_THAT(find(report, "RELU", "beside another").detail, Contains("two of them share scratch memory"));

  // Who does not say so is not asked.
  CHECK_THAT(find(run_suite("asynchronous", "stream"), "RELU", "beside another").detail,
             Contains("does not say that its kernels may run at the same time"));
}

TEST_CASE("a wrapper that is a stream of its own is found out") {
  // Where other programs keep all cores, the wrapper's stream may by chance come after the one that it should be.
  gpunn::CheckReport report;
  for (int attempt = 0; attempt < 5 && failures(report, "stream").count("RELU") == 0; ++attempt) {
    report = run_suite("aloof_overlay", "stream");
  }
  const auto failed = failures(report, "stream");
  CHECK(failed.count("stream_wrap") == 1);
  CHECK(failed.count("event_wait") == 1);
  CHECK(failed.count("RELU") == 1);
  CHECK(failed.count("MATMUL") == 0);  // the base's
}

TEST_CASE("captured graphs that are right pass, op by op and in whole trainings") {
  const gpunn::CheckReport report = run_suite("asynchronous", "graph");
  CHECK(summary(report).empty());
  CHECK(skipped(report) == 0);
  for (const char* name : {"perceptron", "convolution", "squares", "treated"}) {
    CHECK_THAT(find(report, "training", name).detail, Contains("steps, up to") && !Contains("up to 1 a launch"));
  }
}

TEST_CASE("a graph that replays yesterday's learning rate is found out") {
  const gpunn::CheckReport report = run_suite("frozen", "graph");
  CHECK(names(failures(report, "graph")) == std::set<std::string>{"TABLE_LOAD", "training"});
  CHECK_THAT(failures(report, "graph").at("TABLE_LOAD"), Contains("what the inputs at the time of the capture gave"));
  CHECK_THAT(find(report, "training", "perceptron").detail,
             Contains("after step 3") && Contains("op by op") && Contains("by replay"));
}

TEST_CASE("where nothing is captured the suite graph says so, and is content") {
  gpunn::CheckOptions options = options_for("cpu");
  options.suites = {"graph"};
  options.profile = "all";
  const gpunn::CheckReport report = gpunn::check(options);
  CHECK(report.ok());
  CHECK(report.passed == 0);
  for (const gpunn::CheckCase& test : report.cases) {
    CHECK(test.optional);
    if (!kOfHost.contains(test.op)) CHECK_THAT(test.detail, Contains("'cpu' captures no graphs"));
  }
}

TEST_CASE("without devices a plugin says so, and does not crash") {
  for (const char* backend : {"cpu", "deviceless", "asynchronous", "honest"}) {
    INFO(backend);
    const gpunn::CheckReport report = run_suite(backend, "nodevice");
    CHECK(summary(report).empty());
    CHECK(report.passed == 4);
  }
  const gpunn::CheckReport report = run_suite("groundless", "nodevice");
  const auto failed = failures(report, "nodevice");
  CHECK(names(failed) == std::set<std::string>{"probe", "device_open", "shutdown"});
  CHECK_THAT(failed.at("probe"), Contains("probe with all devices hidden crashed (Segmentation fault)"));
  CHECK(run_suite("groundless", "abi").failed == 0);  // where there are devices, nothing is wrong
  CHECK_FALSE(run_suite("crashing", "nodevice").ok());
}

TEST_CASE("loss curves that differ by rounding alone agree with the reference's", "[long]") {
  for (const char* backend : {"cpu", "obedient"}) {
    const gpunn::CheckReport report = run_suite(backend, "train");
    INFO(backend << " " << summary(report));
    CHECK(report.passed == 2);
    for (const gpunn::CheckCase& test : report.cases) CHECK((test.error > 0) == (report.backend == "obedient"));
  }
}

TEST_CASE("a gradient that lacks one image of each batch shows in the loss curve", "[long]") {
  const gpunn::CheckReport report = run_suite("slanted", "train");
  CHECK_THAT(find(report, "CNN", "").detail, Contains("against 'cpu' from the same seed the loss of step "));
  CHECK(find(report, "CNN", "").verdict == gpunn::Verdict::failed);
  CHECK(find(report, "MLP", "").verdict == gpunn::Verdict::passed);  // has no filters
}

TEST_CASE("a backend that can't train is skipped, one without a reference too", "[long]") {
  CHECK(run_suite("honest", "train").skipped == 2);
  gpunn::CheckOptions options = options_for("cpu");
  options.suites = {"train"};
  options.reference = "nonesuch";
  const gpunn::CheckReport report = gpunn::check(options);
  CHECK(report.skipped == 2);
  CHECK_THAT(report.cases.at(0).detail, Contains("nothing to compare with"));
}

TEST_CASE("rounded products pass where the precision allows them, and only there", "[long]") {
  gpunn::CheckOptions options = options_for("rounded");
  options.suites = {"ops", "grad"};
  options.ops = {"MATMUL", "CONV2D", "CONV2D_BACKWARD_DATA", "CONV2D_BACKWARD_FILTER"};
  options.precision = gpunn::Precision::tf32;
  CHECK(summary(gpunn::check(options)).empty());

  options.precision = gpunn::Precision::fp32;
  const gpunn::CheckReport strict = gpunn::check(options);
  CHECK(names(failures(strict, "ops")) ==
        std::set<std::string>{"MATMUL", "CONV2D", "CONV2D_BACKWARD_DATA", "CONV2D_BACKWARD_FILTER"});

  // A plugin that rounds where it is told to passes both.
  for (const gpunn::Precision precision : {gpunn::Precision::fp32, gpunn::Precision::tf32}) {
    gpunn::CheckOptions obedient = options;
    obedient.backend = "obedient";
    obedient.precision = precision;
    CHECK(summary(gpunn::check(obedient)).empty());
  }
  // A dropped term is found even so.
  gpunn::CheckOptions faulty = options;
  faulty.backend = "faulty";
  faulty.ops = {"MATMUL"};
  faulty.precision = gpunn::Precision::tf32;
  CHECK(gpunn::check(faulty).failed > 60);
}

TEST_CASE("a training in tf32 agrees with the reference in fp32", "[long]") {
  gpunn::CheckOptions options = options_for("obedient");
  options.suites = {"train"};
  options.precision = gpunn::Precision::tf32;
  const gpunn::CheckReport report = gpunn::check(options);
  CHECK(summary(report).empty());
  CHECK(report.passed == 2);
}

TEST_CASE("perf times every op where it is asked to, and nowhere else") {
  gpunn::CheckOptions options = options_for("cpu");
  options.suites = {"perf"};
  options.ops = {"MATMUL", "TABLE_LOAD"};
  const gpunn::CheckReport report = gpunn::check(options);
  REQUIRE(report.cases.size() == 2);
  for (const gpunn::CheckCase& test : report.cases) {
    CHECK(test.verdict == gpunn::Verdict::passed);
    CHECK(test.seconds > 0);
    CHECK(test.gigabytes > 0);
    CHECK_THAT(test.detail, Contains("GFLOP/s"));
  }
  CHECK(report.cases[0].gflops > 0.1);
  options.suites = {};
  for (const gpunn::CheckCase& test : gpunn::check(options).cases) CHECK(test.suite != "perf");
}
