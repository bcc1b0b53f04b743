// bench_ops(): several backends and kernels in one table.
#include <gpunn/bench.hpp>
#include <gpunn/error.hpp>

#include <algorithm>
#include <set>

#include "bench/op_request.hpp"
#include "catch.hpp"
#include "chart/roofline.hpp"
#include "common/files.hpp"
#include "temporary_folder.hpp"

using gpunn::OpBenchOptions;
using gpunn::OpBenchReport;
using gpunn::OpBenchRow;
using gpunn::Precision;

namespace {

OpBenchOptions quick(std::vector<gpunn::OpShape> what, std::vector<std::string> backends = {"cpu"}) {
  OpBenchOptions options;
  options.what = std::move(what);
  options.backends = std::move(backends);
  options.plugins = {GPUNN_BINARY_DIR "/lib", GPUNN_SAMPLE_DIR};
  options.repeats = 3;
  options.warmup = 0;
  options.threads = 1;
  options.ceilings = false;
  return options;
}

std::set<std::string> kernels(const OpBenchReport& report, const std::string& backend) {
  std::set<std::string> names;
  for (const OpBenchRow& row : report.rows) {
    if (row.backend == backend) names.insert(row.kernel);
  }
  return names;
}

}  // namespace

TEST_CASE("each op, precision and backend has a row with its times", "[bench]") {
  OpBenchOptions options = quick({{"matmul", "32..64"}, {"huber_loss", "64,10"}}, {"honest", "cpu"});
  options.precisions = {Precision::fp32, Precision::bf16};
  int told = 0;
  options.on_row = [&](const OpBenchRow&) { ++told; };
  const OpBenchReport report = gpunn::bench_ops(options);
  REQUIRE(report.rows.size() == 3 * 2 * 2);
  CHECK(told == 12);
  CHECK(report.ok());
  for (const OpBenchRow& row : report.rows) {
    INFO(row.op << " " << row.shape << " " << row.backend);
    if (row.op == "HUBER_LOSS" && row.backend == "honest") {
      CHECK_THAT(row.failure, Contains("honest"));
      CHECK(row.median_seconds == 0);
      continue;
    }
    CHECK(row.failure.empty());
    CHECK(row.min_seconds > 0);
    CHECK(row.min_seconds <= row.median_seconds);
    CHECK(row.median_seconds <= row.max_seconds);
    CHECK(row.repeats == 3);
    CHECK(row.runs >= 1);
    CHECK(row.error >= 0);
    CHECK(row.error < 1e-5);
    CHECK(row.error_allowed <= 1);
    CHECK(row.checked > 0);
    CHECK(row.ceiling_share == 0);
    if (row.op == "MATMUL") CHECK(row.teraflops == Approx(row.flops / row.median_seconds * 1e-12));
    if (row.op == "MATMUL" && row.backend == "honest") CHECK(row.speed_up == Approx(1));
    if (row.op == "MATMUL" && row.backend == "cpu") CHECK(row.speed_up > 0);
    if (row.op == "HUBER_LOSS") CHECK(row.speed_up == 0);  // the first backend has no such op
  }
}

TEST_CASE("a kernel that is wrong is not praised for its speed", "[bench]") {
  OpBenchOptions options = quick({{"matmul", "64x64x64"}}, {"ladder"});
  options.kernels = {"all"};
  const OpBenchReport report = gpunn::bench_ops(options);
  CHECK(kernels(report, "ladder") == std::set<std::string>{"", "gemm:1", "gemm:2", "gemm:3"});
  CHECK_FALSE(report.ok());
  for (const OpBenchRow& row : report.rows) {
    CHECK(row.wrong.empty() == (row.kernel != "gemm:3"));
    CHECK(row.served_by == "ladder");
  }
}

TEST_CASE("the kernels of a base are shown once", "[bench]") {
  OpBenchOptions options = quick({{"matmul", "64x64x64"}}, {"ladder", "over_ladder"});
  options.kernels = {"all"};
  CHECK(kernels(gpunn::bench_ops(options), "over_ladder") == std::set<std::string>{""});
  options.backends = {"over_ladder"};
  const OpBenchReport alone = gpunn::bench_ops(options);
  CHECK(kernels(alone, "over_ladder") == std::set<std::string>{"", "gemm:1", "gemm:2", "gemm:3"});
  for (const OpBenchRow& row : alone.rows) CHECK(row.served_by == (row.kernel.empty() ? "over_ladder" : "ladder"));
}

TEST_CASE("wanted kernels take the place of a backend's own choice where it has them", "[bench]") {
  OpBenchOptions options = quick({{"matmul", "64x64x64"}, {"relu", "64"}}, {"cpu", "ladder"});
  options.kernels = {"gemm:1"};
  const OpBenchReport report = gpunn::bench_ops(options);
  CHECK(report.ok());
  CHECK(kernels(report, "cpu") == std::set<std::string>{""});
  for (const OpBenchRow& row : report.rows) {
    if (row.backend == "ladder") CHECK(row.kernel == (row.op == "MATMUL" ? "gemm:1" : ""));
    if (row.backend == "ladder" && row.op == "RELU") CHECK(row.served_by == "cpu");
  }
  options.kernels = {"gemm:7"};
  CHECK_THROWS_WITH(gpunn::bench_ops(options), Contains("no kernel 'gemm:7'") && Contains("gemm:1"));
}

TEST_CASE("on cold data each run has tensors of its own", "[bench]") {
  OpBenchOptions options = quick({{"relu", "1000000"}, {"sgd_update", "1000000"}});
  options.cold = true;
  const OpBenchReport report = gpunn::bench_ops(options);
  CHECK(report.ok());
  for (const OpBenchRow& row : report.rows) {
    CHECK(row.buffer_sets > 1);
    CHECK(row.runs >= row.buffer_sets);
  }
}

TEST_CASE("ceilings are those of the device, of all backends together", "[bench]") {
  const gpunn::testing::TemporaryFolder folder;
  OpBenchOptions options = quick({{"matmul", "256x256x256"}, {"copy", "1000000"}}, {"honest", "cpu"});
  options.ceilings = true;
  options.chart = folder.path() / "roof.svg";
  const OpBenchReport report = gpunn::bench_ops(options);
  REQUIRE(report.ceilings.size() == 1);
  CHECK(report.ceilings[0].memory_domain == "host");
  CHECK(report.ceilings[0].bytes_per_second > 1e8);
  CHECK(report.ceilings[0].flops_per_second > 1e8);
  for (const OpBenchRow& row : report.rows) {
    if (!row.failure.empty()) continue;
    CHECK(row.ceiling_share > 0);
    // A product is never above the best product; what lies in a cache may be faster than a copy of memory.
    if (row.op == "MATMUL") CHECK(row.ceiling_share <= 1.0001);
  }
  const std::string svg = gpunn::read_text(options.chart);
  CHECK_THAT(svg, Contains("<svg") && Contains("matmul 256x256x256") && Contains("honest"));
}

TEST_CASE("what can't be measured says so before anything is", "[bench]") {
  CHECK_THROWS_WITH(gpunn::bench_ops(quick({})), Contains("no op to measure"));
  CHECK_THROWS_WITH(gpunn::bench_ops(quick({{"relu", "8"}}, {"cpu", "cpu"})), Contains("named twice"));
  CHECK_THROWS_WITH(gpunn::bench_ops(quick({{"relu", "x"}})), Contains("bench op relu"));
  OpBenchOptions nowhere = quick({{"relu", "8"}});
  nowhere.chart = "/nowhere/at/all.svg";
  CHECK_THROWS(gpunn::bench_ops(nowhere));
  const OpBenchReport unserved = gpunn::bench_ops(quick({{"relu", "8"}}, {"honest"}));
  CHECK_FALSE(unserved.ok());
}

TEST_CASE("every shape of the presets is one", "[bench]") {
  for (const std::string& name : gpunn::bench_presets()) {
    const std::vector<gpunn::OpShape> shapes = gpunn::bench_preset(name);
    CHECK_FALSE(shapes.empty());
    for (const gpunn::OpShape& one : shapes) CHECK_NOTHROW(gpunn::bench::parse_request(one.op, one.shape));
  }
  CHECK_THROWS_WITH(gpunn::bench_preset("gem"), Contains("did you mean 'gemm'"));
}
