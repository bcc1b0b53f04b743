// check() itself: it passes right plugins and finds every planted mistake, no more and no less.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <set>

#include "check_support.hpp"
#include "ops/op.hpp"

using namespace gpunn::testing;

TEST_CASE("the cpu backend passes every suite, with nothing left out", "[cpu]") {
  gpunn::CheckOptions options = options_for("cpu");
  options.profile = "all";
  int seen = 0;
  options.on_case = [&seen](const gpunn::CheckCase&) { ++seen; };
  const gpunn::CheckReport report = gpunn::check(options);
  CHECK(summary(report).empty());
  CHECK(report.ok());
  CHECK(report.backend == "cpu");
  CHECK(static_cast<std::size_t>(seen) == report.cases.size());
  CHECK(report.passed + report.skipped == seen);

  // Every op of the catalogue was run; only fused ones may be left to their decomposition.
  std::set<std::string> run;
  for (const gpunn::CheckCase& test : report.cases) {
    if (test.suite == "ops" && test.verdict == gpunn::Verdict::passed) run.insert(test.op);
  }
  for (const gpunn::ops::OpInfo* info : gpunn::ops::all_ops()) {
    INFO(info->name);
    CHECK((info->composite || run.count(std::string(info->name)) == 1));
  }
}

TEST_CASE("every wrong kernel is found, and no right one is blamed", "[long]") {
  const std::set<std::string> wrong{"MATMUL",     "RELU",     "ADD",           "MEAN_ROWS",
                                    "SCALE",      "BIAS_ADD", "RELU_BACKWARD", "NLL_LOSS_BACKWARD",
                                    "TABLE_LOAD", "MSE_LOSS", "ADVANCE"};
  gpunn::CheckOptions options = options_for("faulty");
  options.without = {" f16[", " bf16[", "CONV2D",
                     "ATTENTION"};  // which are the base's alone, and take most of the time
  const gpunn::CheckReport report = gpunn::check(options);
  CHECK_FALSE(report.ok());
  const auto failed = failures(report, "ops");
  CHECK(names(failed) == wrong);
  CHECK(names(failures(report, "abi")).empty());

  CHECK_THAT(failed.at("MATMUL"), Contains("expected"));
  CHECK_THAT(failed.at("RELU"), Contains("wrote behind its end, at byte 0"));
  CHECK_THAT(failed.at("ADD"), Contains("1 of 1 elements are off"));
  CHECK_THAT(failed.at("MEAN_ROWS"), Contains("says that it is deterministic"));
  CHECK_THAT(failed.at("SCALE"), Contains("input 0: the kernel changed it"));
  CHECK_THAT(failed.at("BIAS_ADD"), Contains("output 0 in the memory of input 0"));
  CHECK_THAT(failed.at("RELU_BACKWARD"), Contains("expected 0, found"));
  CHECK_THAT(failed.at("NLL_LOSS_BACKWARD"), Contains("the workspace of 8 bytes"));
  CHECK_THAT(failed.at("TABLE_LOAD"), Contains("found NaN"));
  CHECK_THAT(failed.at("MSE_LOSS"), Contains("found NaN"));
  CHECK_THAT(failed.at("ADVANCE"), Contains("no mood to count today"));

  // Differences of the forward op find wrong gradients by themselves.
  const auto gradients = failures(report, "grad");
  CHECK(gradients.count("RELU_BACKWARD") == 1);
  CHECK(gradients.count("MATMUL") == 1);
  CHECK(gradients.count("SOFTMAX_BACKWARD") == 0);
}

TEST_CASE("a single dropped term shows at every depth of the sum") {
  gpunn::CheckOptions options = options_for("faulty");
  options.suites = {"ops"};
  options.ops = {"MATMUL"};
  for (const gpunn::CheckCase& test : gpunn::check(options).cases) {
    // Without terms or elements there is nothing to drop.
    const bool empty = test.name.find("[0, ") != std::string::npos || test.name.find(", 0]") != std::string::npos;
    // Nor does one show among zeros, numbers that may be flushed to it, and what is not finite.
    const bool special = test.name.find(" in a") != std::string::npos || test.name.find(" in b") != std::string::npos;
    if (test.name.find("[65543, ") != std::string::npos) continue;  // of so many, one may be less than their roundings
    INFO(test.name);
    if (!special && test.plugin == "faulty") CHECK((test.verdict == gpunn::Verdict::failed) == !empty);
  }
}

TEST_CASE("what a plugin lacks is skipped, and fails where it is required") {
  gpunn::CheckOptions options = options_for(GPUNN_SAMPLE_DIR "/libgpunn_backend_honest.so");
  gpunn::CheckReport report = gpunn::check(options);
  CHECK(summary(report).empty());
  CHECK(report.backend == "honest");
  CHECK(report.passed > 80);
  CHECK(report.skipped > 800);
  for (const gpunn::CheckCase& test : report.cases) {
    if (test.suite != "ops" && test.suite != "grad") continue;
    CHECK((test.verdict == gpunn::Verdict::passed) == (test.op == "MATMUL"));
    if (test.op == "SOFTMAX") CHECK_THAT(test.detail, Contains("honest: this backend has no such op"));
  }

  options.profile = "all";
  options.suites = {"ops"};
  options.ops = {"MATMUL", "softmax", "SOFTMAX_CROSS_ENTROPY"};
  report = gpunn::check(options);
  CHECK(names(failures(report, "ops")) == std::set<std::string>{"SOFTMAX"});
  CHECK_THAT(failures(report, "ops").at("SOFTMAX"), Contains("unsupported, but required"));
  // The fused op stays a skip: what it is made of runs in its place.
  CHECK(report.skipped > 0);
}

TEST_CASE("a case says which plugin served it, and a base does not make its overlay look well") {
  gpunn::CheckOptions options = options_for("faulty");  // over cpu
  options.suites = {"ops"};
  options.ops = {"MATMUL", "SOFTMAX"};
  const gpunn::CheckReport report = gpunn::check(options);
  int own = 0, others = 0;
  for (const gpunn::CheckCase& test : report.cases) {
    if (test.suite != "ops") continue;
    INFO(test.op << " " << test.name);
    const bool faulty = test.op == "MATMUL" && test.dtype == "f32";  // it takes no tensors of half precision
    CHECK(test.plugin == (faulty ? "faulty" : "cpu"));
    CHECK(test.refusal.empty() == faulty);
    own += faulty ? 1 : 0;
    others += test.op == "SOFTMAX" ? 1 : 0;
  }
  CHECK(own > 100);
  CHECK(others > 30);
  CHECK_THAT(
      failures(report, "abi").at("op_query"),
      Contains("'faulty' served none of the " + std::to_string(others)) && Contains("was run by 'cpu' under it"));

  options.strict = true;
  for (const gpunn::CheckCase& test : gpunn::check(options).cases) {
    if (test.suite != "ops" || test.dtype != "f32") continue;
    CHECK((test.verdict == gpunn::Verdict::unsupported) == (test.op == "SOFTMAX"));
  }
}

TEST_CASE("no device is a skip, and a failure where it is required") {
  for (const std::string backend : {"deviceless", GPUNN_SAMPLE_DIR "/libgpunn_backend_deviceless.so"}) {
    gpunn::CheckOptions options = options_for(backend);
    options.suites = {"nodevice", "abi"};  // without a device no case of any suite runs
    gpunn::CheckReport report = gpunn::check(options);
    CHECK(report.ok());
    CHECK(report.skipped == 1);
    // That a plugin behaves without a device shows all the same.
    CHECK(report.passed == static_cast<int>(report.cases.size()) - 1);
    CHECK(report.passed > 0);
    CHECK(report.cases.back().verdict == gpunn::Verdict::no_device);
    CHECK_THAT(report.cases.back().detail, Contains("the drawer of devices is empty"));
    options.profile = "inference";
    report = gpunn::check(options);
    CHECK_FALSE(report.ok());
    CHECK(report.cases.back().verdict == gpunn::Verdict::failed);
  }
}

TEST_CASE("a plugin that breaks the contract outside its kernels is found out") {
  gpunn::CheckOptions options = options_for("crashing");
  options.suites = {"abi"};
  const auto failed = failures(gpunn::check(options), "abi");
  CHECK(names(failed) == std::set<std::string>{"op_query", "device_info", "device_open"});
  CHECK_THAT(failed.at("op_query"), Contains("op_query with no attributes crashed (Floating point exception)"));
  CHECK_THAT(failed.at("device_info"), Contains("compute unit"));
  CHECK_THAT(failed.at("device_open"), Contains("said OK; expected a failure"));
}

TEST_CASE("a plugin that crashes is a failed case each time, and the checks go on") {
  gpunn::CheckOptions options = options_for("crashing");
  options.suites = {"ops"};
  options.ops = {"SCALE", "FILL"};
  const gpunn::CheckReport report = gpunn::check(options);
  CHECK(report.passed + report.failed + report.skipped == static_cast<int>(report.cases.size()));
  int scales = 0, fills = 0;
  for (const gpunn::CheckCase& test : report.cases) {
    INFO(test.op << " " << test.name << " " << test.detail);
    if (test.op == "SCALE") {
      ++scales;
      CHECK(test.verdict == gpunn::Verdict::failed);
      CHECK_THAT(test.detail, Contains("crashed (Aborted), and last printed: SCALE is my downfall"));
    } else if (test.op == "FILL") {
      ++fills;
      CHECK(test.verdict == gpunn::Verdict::unsupported);
    } else {  // FILL was asked for by name
      CHECK_THAT(test.detail, Contains("'crashing' served none of the") && Contains("cases of FILL"));
    }
  }
  CHECK(scales > 2);
  CHECK(fills > 2);
}

TEST_CASE("a lost device costs the case that lost it, not those behind it") {
  gpunn::CheckOptions options = options_for("crashing");
  options.suites = {"ops"};
  options.ops = {"ADD", "RELU"};
  const gpunn::CheckReport report = gpunn::check(options);
  for (const gpunn::CheckCase& test : report.cases) {
    INFO(test.op << " " << test.name << " " << test.detail);
    CHECK((test.verdict == gpunn::Verdict::failed) == (test.op == "ADD"));
  }
  CHECK_THAT(failures(report, "ops").at("ADD"), Contains("DEVICE_LOST"));
}

TEST_CASE("several backends are checked in one go") {
  gpunn::CheckOptions options = options_for("");
  options.suites = {"grad"};
  options.ops = {"MATMUL"};
  std::vector<std::string> told;
  options.on_case = [&told](const gpunn::CheckCase& test) { told.push_back(test.backend); };
  const std::vector<gpunn::CheckReport> reports = gpunn::check(options, {"honest", "faulty", "nonesuch", "deviceless"});
  REQUIRE(reports.size() == 4);
  CHECK(reports[0].ok());
  CHECK(reports[0].device == "host");
  CHECK_FALSE(reports[1].ok());
  CHECK(reports[1].backend == "faulty");
  CHECK(reports[1].cases.size() == reports[0].cases.size());
  // One that can't be used is a failure of its own.
  REQUIRE(reports[2].cases.size() == 1);
  CHECK_THAT(reports[2].cases[0].detail, Contains("backend 'nonesuch' was not found"));
  CHECK_FALSE(reports[2].ok());
  CHECK(reports[3].ok());
  CHECK(reports[3].skipped == 1);
  CHECK(told.front() == "honest");
  CHECK(told.back() == "deviceless");
}

TEST_CASE("the same in this process") {
  gpunn::CheckOptions options = options_for("honest");
  options.ops = {"MATMUL"};
  const gpunn::CheckReport apart = gpunn::check(options);
  options.in_process = true;
  const gpunn::CheckReport here = gpunn::check(options);
  REQUIRE(here.cases.size() == apart.cases.size());
  for (std::size_t i = 0; i < here.cases.size(); ++i) {
    CHECK(here.cases[i].name == apart.cases[i].name);
    CHECK(here.cases[i].verdict == apart.cases[i].verdict);
    CHECK(here.cases[i].error == apart.cases[i].error);
  }
}

TEST_CASE("suites and ops are chosen by name") {
  gpunn::CheckOptions options = options_for("honest");
  options.suites = {"grad"};
  options.ops = {"matmul"};
  const gpunn::CheckReport report = gpunn::check(options);
  CHECK(report.cases.size() == 8);
  for (const gpunn::CheckCase& test : report.cases) CHECK((test.suite == "grad" && test.op == "MATMUL"));

  options.suites = {"gard"};
  CHECK_THROWS_WITH(gpunn::check(options), Contains("no suite 'gard'") && Contains("grad"));
  options.suites = {};
  options.ops = {"CONV3D"};
  CHECK_THROWS_WITH(gpunn::check(options), Contains("no op 'CONV3D'") && Contains("CONV2D"));
  options.ops = {};
  options.backend = "nonesuch";
  CHECK_THROWS_WITH(gpunn::check(options), Contains("nonesuch"));
}

TEST_CASE("cases are chosen by what their names hold, and give the figures that they have among all") {
  gpunn::CheckOptions options = options_for("honest");
  options.suites = {"ops"};
  options.ops = {"MATMUL"};
  const std::vector<gpunn::CheckCase> all = gpunn::check(options).cases;
  options.cases = {"[7, 13]", "[16, 16]"};
  options.without = {"transpose_b"};
  const std::vector<gpunn::CheckCase> chosen = gpunn::check(options).cases;
  CHECK(chosen.size() == 3);
  for (const gpunn::CheckCase& test : chosen) {
    CHECK_THAT(test.name, Contains("[7, 13]") || Contains("[16, 16]"));
    CHECK_THAT(test.name, !Contains("transpose_b"));
    const auto same = std::ranges::find(all, test.name, &gpunn::CheckCase::name);
    REQUIRE(same != all.end());
    CHECK(test.error == same->error);
  }
  options.ops = {};
  options.cases = {"MATMUL f32[7, 13]"};
  options.without = {};
  const std::vector<gpunn::CheckCase> of_op = gpunn::check(options).cases;
  CHECK(of_op.size() == 2);
  for (const gpunn::CheckCase& test : of_op) CHECK(test.op == "MATMUL");
  options.cases = {"no shape"};
  CHECK_THROWS_WITH(gpunn::check(options), Contains("no case is of the suites, ops and names asked for"));
}

TEST_CASE("a quick check runs all small cases and of the large ones the first") {
  gpunn::CheckOptions options = options_for("cpu");
  options.suites = {"ops"};
  options.ops = {"RELU"};
  const auto run = [&options](bool quick) {
    options.quick = quick;
    std::set<std::string> names;
    for (const gpunn::CheckCase& test : gpunn::check(options).cases) names.insert(test.name);
    return names;
  };
  const std::set<std::string> quick = run(true);
  int left_out = 0;
  for (const std::string& name : run(false)) {
    INFO(name);
    if (quick.contains(name)) continue;
    ++left_out;
    CHECK_THAT(name, Contains("f32[65543]"));
  }
  CHECK(left_out > 0);
  for (const std::string type : {"f32", "bf16", "f16"}) {
    CHECK(quick.contains(type + "[262147] -> " + type + "[262147]"));
  }
}

TEST_CASE("a case can be repeated: the same seed gives the same figures") {
  gpunn::CheckOptions options = options_for("honest");
  options.suites = {"grad"};
  options.ops = {"MATMUL"};
  const auto errors = [&options] {
    std::vector<double> result;
    for (const gpunn::CheckCase& test : gpunn::check(options).cases) result.push_back(test.error);
    return result;
  };
  const std::vector<double> first = errors();
  CHECK(errors() == first);
  options.seed = 2;
  CHECK_FALSE(errors() == first);
}
