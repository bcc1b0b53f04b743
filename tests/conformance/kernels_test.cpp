// Every kernel that a plugin gives a name to is checked, and not only the one that it would choose.
#include <gpunn/error.hpp>

#include <algorithm>
#include <map>
#include <set>

#include "check_support.hpp"

using namespace gpunn::testing;

namespace {

// The kernels of the cases of a suite that came out so. Those of half precision are the base's.
std::map<std::string, int> kernels(const gpunn::CheckReport& report, const std::string& suite, gpunn::Verdict verdict) {
  std::map<std::string, int> found;
  for (const gpunn::CheckCase& test : report.cases) {
    const bool of_base = !test.plugin.empty() && test.plugin != "ladder";
    if (test.suite == suite && test.verdict == verdict && !of_base) ++found[test.kernel];
  }
  return found;
}

gpunn::CheckOptions matmul_of_ladder() {
  gpunn::CheckOptions options = options_for("ladder");
  options.ops = {"MATMUL"};
  return options;
}

}  // namespace

TEST_CASE("a named kernel that is wrong is found, though the plugin never chooses it") {
  const gpunn::CheckReport report = gpunn::check(matmul_of_ladder());
  CHECK_FALSE(report.ok());
  const auto passed = kernels(report, "ops", gpunn::Verdict::passed);
  const auto failed = kernels(report, "ops", gpunn::Verdict::failed);
  CHECK(failed.contains("gemm:2"));
  CHECK(failed.contains("gemm:3"));
  CHECK(failed.size() == 2);
  CHECK(passed.contains("gemm:2"));                  // at even sizes
  CHECK(failed.at("gemm:3") > passed.at("gemm:3"));  // right where a sum has no terms
  // One case a kernel that serves, beside the plugin's own choice.
  CHECK(passed.at("gemm:1") == passed.at(""));
  CHECK(passed.at("gemm:2") + failed.at("gemm:2") == passed.at(""));
  CHECK(failed.at("gemm:3") < passed.at(""));

  const auto wrong = std::ranges::find_if(report.cases, [](const gpunn::CheckCase& test) {
    return test.kernel == "gemm:3" && test.verdict == gpunn::Verdict::failed;
  });
  REQUIRE(wrong != report.cases.end());
  CHECK_THAT(wrong->name, Contains(", kernel gemm:3"));
  CHECK_THAT(wrong->detail, Contains("expected"));
}

TEST_CASE("the streams' cases run with each named kernel too") {
  gpunn::CheckOptions options = matmul_of_ladder();
  options.suites = {"stream"};
  const gpunn::CheckReport report = gpunn::check(options);
  const auto passed = kernels(report, "stream", gpunn::Verdict::passed);
  CHECK(passed.contains(""));
  CHECK(passed.contains("gemm:1"));
}

TEST_CASE("only the kernel asked for is run") {
  for (const bool in_process : {false, true}) {
    gpunn::CheckOptions options = matmul_of_ladder();
    options.kernels = {"gemm:1"};
    options.in_process = in_process;
    const gpunn::CheckReport report = gpunn::check(options);
    CHECK(summary(report).empty());
    CHECK(report.ok());
    CHECK(report.passed > 0);
    for (const gpunn::CheckCase& test : report.cases) CHECK(test.kernel == "gemm:1");
  }
}

TEST_CASE("a kernel that no case has is an error with the names known") {
  gpunn::CheckOptions options = matmul_of_ladder();
  options.kernels = {"gem:1"};
  CHECK_THROWS_WITH(gpunn::check(options), Contains("kernel 'gem:1'") && Contains("did you mean 'gemm:1'"));
  gpunn::CheckOptions unnamed = options_for("honest");
  unnamed.kernels = {"gemm:1"};
  CHECK_THROWS_WITH(gpunn::check(unnamed), Contains("its kernels have no names there"));
}

TEST_CASE("cases of a backend without names are as they were") {
  gpunn::CheckOptions options = options_for("honest");
  options.ops = {"MATMUL"};
  const gpunn::CheckReport report = gpunn::check(options);
  for (const gpunn::CheckCase& test : report.cases) CHECK(test.kernel.empty());
}
