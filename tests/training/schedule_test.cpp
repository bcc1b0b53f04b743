// The learning rates of a training: against PyTorch's, at their edges, and where they depend on the training.
#include "session/schedule.hpp"

#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "gpunn/plan.hpp"
#include "tasks/task.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using training::Schedule;

namespace {

Experiment scheduled(const std::string& schedule, double learning_rate, int64_t epochs) {
  Experiment e = parse_experiment(
      "model: {layers: [linear: {units: 2}]}\ndata: points\ntraining: {epochs: " + std::to_string(epochs) +
          "}\noptimizer: {learning_rate: " + std::to_string(learning_rate) + "}\nschedule: " + schedule + "\n",
      "e.yaml");
  return e;
}

// The rates of a training of ten epochs of ten steps, from 1.
std::vector<float> rates_of(const std::string& schedule) {
  return Schedule(scheduled(schedule, 1, 10), {10, 100}).rates();
}

std::vector<std::string> warnings_of(const std::string& schedule) {
  return Schedule(scheduled(schedule, 1, 10), {10, 100}).warnings();
}

EpochReport epoch_of(const Experiment& experiment, int64_t epoch, int64_t steps_per_epoch, double value) {
  EpochReport report;
  report.epoch = epoch;
  report.global_step = epoch * steps_per_epoch;
  const std::string& monitor = std::get<ReduceOnPlateau>(experiment.schedule.kind).monitor;
  if (monitor == "loss") {
    report.evaluation.loss = value;
  } else {
    report.evaluation.scores = Scores({{tasks::monitored(monitor), value}});
  }
  return report;
}

// The last of a run's learning rates by epoch.
std::vector<double> rates_by_epoch(const RunResult& result) {
  std::vector<double> rates;
  for (const EpochReport& epoch : result.epochs) rates.push_back(epoch.learning_rate);
  return rates;
}

// Nothing is an improvement on the first epoch, so each later one halves the rate.
const Override kHalving{
    "schedule", "{type: reduce_on_plateau, factor: 0.5, patience: 0, threshold: 900, threshold_mode: absolute}"};

}  // namespace

TEST_CASE("each schedule's rates are PyTorch's") {
  std::ifstream file(std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/schedules.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  REQUIRE(cases.size() > 20);
  for (const auto& one : cases) {
    CAPTURE(one["name"]);
    const auto epochs = one["epochs"].get<int64_t>(), per_epoch = one["steps_per_epoch"].get<int64_t>();
    const auto expected = one["rates"].get<std::vector<double>>();
    REQUIRE(expected.size() >= 100);
    const Experiment experiment = scheduled(one["schedule"], one["learning_rate"], epochs);
    Schedule schedule(experiment, {per_epoch, epochs * per_epoch});
    if (one.contains("metric")) {
      for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
        schedule.epoch_ended(
            epoch_of(experiment, epoch, per_epoch, one["metric"][static_cast<std::size_t>(epoch - 1)]));
      }
    }
    const std::size_t steps = static_cast<std::size_t>(epochs * per_epoch);
    REQUIRE(schedule.rates().size() == steps);
    const std::size_t a_tick = steps / expected.size();
    double worst = 0;
    for (std::size_t i = 0; i < steps; ++i) {
      const double rate = expected[i / a_tick];
      worst = std::max(worst, std::abs(schedule.rates()[i] - rate) / rate);
    }
    CHECK(worst < 1e-6);
  }
}

TEST_CASE("the rates of a schedule at its edges") {
  CHECK(rates_of("constant") == std::vector<float>(100, 1.0F));

  const std::vector<float> risen = rates_of("{type: constant, warmup_epochs: 0.4}");
  for (int i = 0; i < 4; ++i) CHECK(risen[static_cast<std::size_t>(i)] == Approx((i + 1) / 5.0));
  CHECK(risen[4] == 1);
  CHECK(rates_of("{type: constant, warmup_steps: 4}") == risen);

  const std::vector<float> exponential = rates_of("{type: exponential, k: 0.25}");
  CHECK(exponential[99] == Approx(std::exp(-0.25 * 9.9)));

  // Products such as 0.07 * 100 that miss the whole number by a rounding error move no drop.
  for (const double size : {0.1, 0.3, 0.6, 0.7, 1.1, 2.3}) {
    CAPTURE(size);
    const std::vector<float> drops = rates_of("{type: step, gamma: 0.5, step_size: " + std::to_string(size) + "}");
    const auto steps = static_cast<std::size_t>(std::lround(size * 10));
    for (std::size_t i = 0; i < drops.size(); ++i) CHECK(drops[i] == std::ldexp(1.0F, -static_cast<int>(i / steps)));
  }

  const std::vector<float> cycle = rates_of("one_cycle");
  CHECK(cycle[0] == Approx(1.0 / 25));
  CHECK(*std::max_element(cycle.begin(), cycle.end()) == 1);
  CHECK(cycle[29] == 1);
  CHECK(cycle[99] == Approx(1.0 / 25e4));
  CHECK(rates_of("{type: one_cycle, min_learning_rate: 0.01}")[99] == Approx(0.01));
  CHECK(rates_of("{type: one_cycle, pct_start: 0}")[0] < 1);
  CHECK(rates_of("{type: one_cycle, pct_start: 1}")[99] == 1);
  // A warm-up in front leads to where the cycle begins.
  CHECK(rates_of("{type: one_cycle, warmup_epochs: 1}")[10] == Approx(1.0 / 25));

  const Experiment single = scheduled("one_cycle", 1, 1);
  CHECK(std::isfinite(Schedule(single, {1, 1}).rates().at(0)));
}

TEST_CASE("by epoch, the rate is one throughout each epoch") {
  const std::vector<float> rates = rates_of("{type: cosine, per: epoch, warmup_epochs: 2}");
  for (std::size_t i = 0; i < rates.size(); ++i) CHECK(rates[i] == rates[i / 10 * 10]);
  CHECK(rates[0] == Approx(1.0 / 3));
  CHECK(rates[10] == Approx(2.0 / 3));
  CHECK(rates[20] == 1);
  CHECK(rates[90] == Approx(0.5 * (1 + std::cos(M_PI * 7 / 8))));
}

TEST_CASE("a schedule longer than the training is told") {
  CHECK(warnings_of("{type: cosine, warmup_epochs: 9}").empty());
  CHECK(warnings_of("{type: multi_step, milestones: [5, 9.5]}").empty());
  const auto told = [](const std::string& schedule, const std::string& text) {
    const std::vector<std::string> warnings = warnings_of(schedule);
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0] == text);
  };
  told("{type: multi_step, milestones: [5, 10]}",
       "schedule.milestones: 10 is behind the end of the training, 10 epochs: no drop there");
  told("{type: multi_step, per: step, milestones: [5, 400]}",
       "schedule.milestones: 400 is behind the end of the training, 100 steps: no drop there");
  told("{type: multi_step, milestones: [5, 11, 12, 13]}",
       "schedule.milestones: 11 and those after it are behind the end of the training, 10 epochs: no drop there");
  told("{type: multi_step, milestones: [1, 5], warmup_epochs: 2}",
       "schedule.milestones: 1 is within the warm-up, which rises to the rate behind that drop");
  told("{type: step, step_size: 30}",
       "schedule.step_size (30) is not less than the 10 epochs of the training: the learning rate never drops");
  told("{type: step, step_size: 8, warmup_epochs: 2}",
       "schedule.step_size (8) is not less than the 8 epochs after the warm-up: the learning rate never drops");
  told("{type: cosine, t_0: 11}",
       "schedule.t_0 (11) is more than the 10 epochs of the training: the learning rate "
       "never comes to the end of its first curve");
  told("{type: cosine, warmup_epochs: 10}",
       "schedule.warmup_epochs takes the whole training, 100 steps: optimizer.learning_rate is never reached");
  told("{type: reduce_on_plateau, patience: 8}",
       "schedule.patience (8) is too long for the training, 10 epochs: the learning rate never drops");
  CHECK(warnings_of("{type: reduce_on_plateau, patience: 7}").empty());
  CHECK_THROWS_WITH(rates_of("{type: cosine, warmup_steps: 101}"),
                    Contains("e.yaml: schedule.warmup_steps (101) is longer than the training, 10 epochs of 10 steps"));
}

TEST_CASE("a rate that reacts drops at once where it may, and never during the warm-up") {
  const Experiment experiment = scheduled("{type: reduce_on_plateau, patience: 7}", 1, 10);
  Schedule schedule(experiment, {10, 100});
  for (int64_t epoch = 1; epoch <= 9; ++epoch) {
    CHECK(schedule.epoch_ended(epoch_of(experiment, epoch, 10, 1)) == (epoch == 9));
  }
  CHECK(schedule.rates()[89] == 1);
  CHECK(schedule.rates()[90] == Approx(0.1));

  const Experiment warm = scheduled("{type: reduce_on_plateau, patience: 0, warmup_epochs: 3}", 1, 10);
  Schedule rising(warm, {10, 100});
  for (int64_t epoch = 1; epoch <= 3; ++epoch) CHECK_FALSE(rising.epoch_ended(epoch_of(warm, epoch, 10, 1)));
  CHECK(rising.epoch_ended(epoch_of(warm, 4, 10, 1)));
}

TEST_CASE("a rate lowered while training is what the steps are done with") {
  const TemporaryFolder folder;
  const RunResult reacting = train(small_mlp(folder.path(), {{"training.epochs", "5"}, kHalving}));
  CHECK(rates_by_epoch(reacting) == std::vector<double>{0.05F, 0.05F, 0.025F, 0.0125F, 0.00625F});
  // The same rates, known from the start.
  const RunResult known =
      train(small_mlp(folder.path(), {{"training.epochs", "5"},
                                      {"schedule", "{type: multi_step, milestones: [2, 3, 4], gamma: 0.5}"}}));
  CHECK(rates_by_epoch(known) == rates_by_epoch(reacting));
  CHECK(state_bytes(storage::load_checkpoint(known.run / "last.h5")) ==
        state_bytes(storage::load_checkpoint(reacting.run / "last.h5")));
}

TEST_CASE("a run whose rate reacts, resumed, gives the straight run's bits") {
  const TemporaryFolder folder;
  const auto experiment = [&](const char* epochs) {
    return small_mlp(folder.path(), {{"training.epochs", epochs}, {"checkpoint.monitor", "train_loss"}, kHalving});
  };
  const RunResult straight = train(experiment("6"));
  RunResult part = train(experiment("2"));
  for (const char* epochs : {"3", "6"}) part = resume(part.run, {{"training.epochs", epochs}});
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
  CHECK(part.epochs.back().learning_rate == 0.05F / 16);

  // Another base rate on the way: the drops stay.
  const RunResult slower = resume(part.run, {{"training.epochs", "7"}, {"optimizer.learning_rate", "0.02"}});
  CHECK(slower.epochs.back().learning_rate == 0.02F / 32);
}

TEST_CASE("the plan of a schedule says where it turns") {
  const TemporaryFolder folder;
  const ScheduleReport report = plan_schedule(
      small_mlp(folder.path(), {{"schedule", "{type: step, step_size: 1, gamma: 0.1, warmup_steps: 5}"}}));
  CHECK(report.steps == 30);
  CHECK(report.steps_per_epoch == 10);
  CHECK(report.learning_rates.size() == 30);
  CHECK(report.logarithmic);
  std::vector<std::string> what;
  for (const SchedulePoint& point : report.points) what.push_back(std::to_string(point.step) + " " + point.what);
  CHECK(what == std::vector<std::string>{"1 first", "6 warm-up done, highest", "16 drop", "26 drop", "30 last"});
  CHECK(report.points[2].epoch == 1.5);
  CHECK(report.points[2].learning_rate == Approx(0.005));

  write_chart(report, folder / "curve.svg");
  std::ifstream svg(folder / "curve.svg");
  const std::string text((std::istreambuf_iterator<char>(svg)), {});
  CHECK_THAT(text, Contains("learning rate of small_mlp") && Contains("</svg>"));

  CHECK(plan_schedule(small_mlp(folder.path(), {kHalving})).reacts);
}
