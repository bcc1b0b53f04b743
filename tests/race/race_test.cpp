#include <gpunn/race.hpp>

#include <algorithm>
#include <atomic>

#include "catch.hpp"
#include "common/files.hpp"
#include "race/race_chart.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

Experiment small(const std::filesystem::path& runs, const std::vector<Override>& more = {}) {
  Experiment experiment = small_mlp(runs, more);
  experiment.plugins = {GPUNN_TRAINING_SAMPLE_DIR};
  return experiment;
}

// Asks for a stop at the end of the first epoch of the second training.
class StopInSecond : public TrainingListener {
 public:
  void on_start(const RunStart&) override { ++trainings; }
  void on_epoch(const EpochReport&) override { stop = trainings == 2; }
  int trainings = 0;
  std::atomic<bool> stop{false};
};

}  // namespace

TEST_CASE("each backend trains the experiment, and the report compares them") {
  const TemporaryFolder folder;
  RaceOptions options;
  options.backends = {"cpu", "reordered"};
  const RaceReport report = race(small(folder.path()), options);
  CHECK(report.ok());
  REQUIRE(report.entries.size() == 2);
  for (const RaceEntry& entry : report.entries) {
    CHECK(entry.finished());
    CHECK(entry.steps == 30);
    CHECK(entry.losses.size() == 30);
    CHECK(entry.step_seconds > 0);
    CHECK(entry.samples_per_second == Approx(64 / entry.step_seconds));
    CHECK(entry.result.epochs.size() == 3);
    CHECK(entry.peak_bytes() > 0);
    CHECK(entry.result.run.parent_path() == report.folder);
    CHECK(std::filesystem::exists(entry.result.run / "last.h5"));
  }
  CHECK(report.entries[0].speed_up == 1);
  CHECK(report.entries[1].speed_up == Approx(report.entries[0].step_seconds / report.entries[1].step_seconds));
  CHECK(report.entries[1].losses.back() == Approx(report.entries[0].losses.back()).epsilon(1e-3));
  CHECK(report.chart == report.folder / "race.svg");
  const std::string chart = read_text(report.chart);
  CHECK_THAT(chart, Contains(">cpu</text>") && Contains(">reordered</text>") && Contains("training loss"));
}

TEST_CASE("a backend that fails is an entry with the reason, and the others run") {
  const TemporaryFolder folder;
  RaceOptions options;
  options.backends = {"absent", "cpu"};
  options.chart = folder / "chart.svg";
  std::vector<std::string> told;
  options.on_end = [&](const RaceEntry& entry) { told.push_back(entry.backend); };
  const RaceReport report = race(small(folder.path(), {{"training.epochs", "1"}}), options);
  CHECK_FALSE(report.ok());
  CHECK_FALSE(report.interrupted);
  REQUIRE(report.entries.size() == 2);
  CHECK_THAT(report.entries[0].failure, Contains("'absent' was not found"));
  CHECK(report.entries[0].speed_up == 0);
  CHECK(report.entries[1].finished());
  CHECK(report.entries[1].speed_up == 1);  // the first that finished
  CHECK(told == std::vector<std::string>{"absent", "cpu"});
  CHECK_THAT(read_text(folder / "chart.svg"), Contains("absent (failed)"));
}

TEST_CASE("a training that diverges keeps what it had") {
  const TemporaryFolder folder;
  RaceOptions options;
  options.backends = {"cpu"};
  const RaceReport report =
      race(small(folder.path(), {{"optimizer.learning_rate", "1000"}, {"loss", "mean_squared_error"}}), options);
  CHECK_FALSE(report.ok());
  CHECK_THAT(report.entries[0].failure, Contains("non-finite"));
  CHECK(std::filesystem::exists(report.chart));
}

TEST_CASE("an interrupt ends the training that runs and the race, with what there is") {
  const TemporaryFolder folder;
  StopInSecond listener;
  RaceOptions options;
  options.backends = {"cpu", "reordered", "wrong_optimizer"};
  options.listener = &listener;
  options.stop = &listener.stop;
  const RaceReport report = race(small(folder.path()), options);
  CHECK(report.interrupted);
  CHECK_FALSE(report.ok());
  REQUIRE(report.entries.size() == 2);
  CHECK(report.entries[0].finished());
  CHECK(report.entries[1].result.interrupted);
  CHECK(std::filesystem::exists(report.entries[1].result.run / "last.h5"));
  CHECK(std::filesystem::exists(report.chart));
}

TEST_CASE("without names all that work here race, the smallest priority first, and the rest is told of") {
  const TemporaryFolder folder;
  Experiment experiment = small(folder.path(), {{"training.max_steps", "2"}});
  folder.write("libgpunn_backend_none.so", "no library");
  experiment.plugins = {GPUNN_TRAINING_SAMPLE_DIR "/libgpunn_backend_reordered.so", folder.path()};
  const RaceReport report = race(experiment);
  CHECK(report.ok());
  std::vector<std::string> names;
  for (const RaceEntry& entry : report.entries) names.push_back(entry.backend);
  CHECK(std::ranges::find(names, "cpu") != names.end());
  CHECK(std::ranges::find(names, "reordered") != names.end());
  const auto none = std::ranges::find_if(
      report.left_out, [](const PluginReport& one) { return one.path.filename() == "libgpunn_backend_none.so"; });
  REQUIRE(none != report.left_out.end());
  CHECK(none->status == PluginStatus::not_a_plugin);
}

TEST_CASE("what can't be a race is refused") {
  const TemporaryFolder folder;
  const Experiment experiment = small(folder.path());
  RaceOptions options;
  options.backends = {"cpu", "cpu"};
  CHECK_THROWS_WITH(race(experiment, options), Contains("named twice"));
  options.backends = {"check:cpu,cpu"};
  CHECK_THROWS_WITH(race(experiment, options), Contains("takes one backend"));
  options.backends = {"cpu"};
  options.chart = folder / "no" / "folder.svg";
  CHECK_THROWS_WITH(race(experiment, options), Contains("there is no folder"));
}

TEST_CASE("thousands of losses become a curve of means on a logarithmic axis") {
  RaceReport report;
  report.experiment = "long";
  RaceEntry entry;
  entry.backend = "cpu";
  for (int i = 0; i < 4680; ++i) entry.losses.push_back(i < 2340 ? 2.0F : 0.01F);
  report.entries.push_back(entry);
  const chart::Chart chart = races::learning_curves(report);
  REQUIRE(chart.panels.size() == 2);
  CHECK(chart.panels[0].y_scale == chart::Scale::logarithmic);
  const std::vector<chart::Point>& points = chart.panels[0].series[0].points;
  CHECK(points.size() <= 160);
  CHECK(points.front().y == Approx(2));
  CHECK(points.back().y == Approx(0.01));
  CHECK(points.back().x == 4680);
  CHECK_THAT(chart.subtitle, Contains("means of 30 steps"));
}
