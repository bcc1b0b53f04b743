// The suite "collectives": it passes a right plugin, and finds the mistakes of the wrong sample plugins.
#include <gpunn/check.hpp>

#include <algorithm>

#include "check_support.hpp"

using namespace gpunn;
using namespace gpunn::testing;

TEST_CASE("cpu's collectives between ranks are right, and those that wait for a lost rank end") {
  CheckOptions options;
  options.backend = "cpu";
  options.suites = {"collectives"};
  const CheckReport report = check(options);
  for (const CheckCase& one : report.cases) {
    INFO(one.op << " " << one.name << ": " << one.detail);
    CHECK(one.verdict == Verdict::passed);
  }
  CHECK(report.cases.size() == 15);
  CHECK(std::ranges::count(report.cases, "abort", &CheckCase::op) == 3);
}

TEST_CASE("collectives that never meet are found out, each with what it gave") {
  CheckOptions options = options_for("alone");
  options.suites = {"collectives"};
  const CheckReport report = check(options);
  for (const CheckCase& one : report.cases) {
    INFO(one.op << " " << one.name << ": " << one.detail);
    CHECK(one.verdict == Verdict::failed);
    CHECK_THAT(one.detail, Contains(one.op == "abort" ? "ended without an error after abort" : "expected"));
  }
}

TEST_CASE("a device that is unusable after abort is found out") {
  CheckOptions options = options_for("spent");
  options.suites = {"collectives"};
  const CheckReport report = check(options);
  for (const CheckCase& one : report.cases) {
    if (one.op != "abort") continue;
    INFO(one.name << ": " << one.detail);
    CHECK(one.verdict == Verdict::failed);
    CHECK_THAT(one.detail, Contains("can't be used after abort") && Contains("an illegal memory access"));
  }
  CHECK(std::ranges::count(report.cases, "abort", &CheckCase::op) == 3);
}
