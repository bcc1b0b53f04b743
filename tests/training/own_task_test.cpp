// A task with metrics of its own, from a file outside of runtime/: nothing there knows of it.
#include <gpunn/evaluation.hpp>
#include <gpunn/ops.h>

#include <array>
#include <cmath>
#include <fstream>
#include <memory>

#include "catch.hpp"
#include "graph/expressions.hpp"
#include "session/session.hpp"
#include "tasks/losses.hpp"
#include "tasks/metrics/number_errors.hpp"
#include "tasks/output_report.hpp"
#include "tasks/target_task.hpp"
#include "training/fixtures.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using tasks::Accumulated;

namespace {

constexpr double kNear = 0.25;  // in the scaled units of the targets

// On the device: the rows of each output whose prediction is near the target.
std::vector<tasks::Accumulator> near_rows(const tasks::TaskContext& context) {
  return {{"near_rows",
           {DType::f32, {context.outputs}},
           [](graph::Graph& g, const tasks::TaskContext&, const tasks::BatchResults& results, graph::ValueId sum) {
             graph::Expressions e(g, "near");
             const graph::ValueId error = e.sub(results.outputs.last, results.batch.fields.at(kTargetField));
             const graph::ValueId distance = e.maximum(error, e.scaled(error, -1));
             const graph::ValueId near = e.sum(e.less_equal(distance, e.constant(kNear)), 1U, false);
             const gpunn_axpby_attrs add{.struct_size = 0, .alpha = 1, .beta = 1};
             g.add_into(GPUNN_OP_AXPBY, "near", graph::Attributes::of(add), {sum, near}, {sum});
           }}};
}

class NearShare : public tasks::MetricTally {
 public:
  double value(const Accumulated& sums) const override {
    DefinedMean mean;
    for (const double one : by_output(sums)) mean.add(one);
    return mean.value();
  }
  std::vector<double> by_output(const Accumulated& sums) const override {
    std::vector<double> shares;
    const double rows = sums.total(tasks::Total::rows);
    for (const double near : sums.of("near_rows")) shares.push_back(rows > 0 ? near / rows : kUndefined);
    return shares;
  }
};

// On the host: the largest error of a row.
class LargestError : public tasks::MetricTally {
 public:
  void add(const tasks::EvaluatedRows& rows) override {
    const tasks::OutputNumbers numbers = tasks::centred_numbers(rows);
    for (std::size_t i = 0; i < numbers.targets.size(); ++i) {
      const double error = std::abs(numbers.targets[i] - numbers.predictions[i]);
      if (!(largest_ >= error)) largest_ = error;
    }
  }
  double value(const Accumulated& /*sums*/) const override { return largest_; }

 private:
  double largest_ = kUndefined;
};

class NearTask : public tasks::TargetTask {
 public:
  explicit NearTask(bool with_rows) : with_rows_(with_rows) {}
  std::string_view name() const override { return with_rows_ ? "near_with_rows" : "near"; }
  std::string_view help() const override { return "each sample has numbers that are to be met nearly"; }
  std::string_view target_kind() const override { return "numbers"; }
  std::string_view output() const override { return "target column"; }
  std::string_view target() const override { return "target columns"; }
  std::span<const tasks::TaskMetric> metrics() const override {
    static const std::array metrics = {tasks::TaskMetric{.metric = {"near_share", "near share", true, true},
                                                         .tally = tasks::make_tally<NearShare>,
                                                         .accumulators = near_rows,
                                                         .while_training = true},
                                       tasks::TaskMetric{.metric = {"largest_error", "largest error", false, false},
                                                         .tally = tasks::make_tally<LargestError>,
                                                         .on_host = true}};
    return std::span(metrics).first(with_rows_ ? 2 : 1);
  }
  std::span<const LossKind> losses() const override {
    static constexpr std::array kinds = {LossKind::mean_squared_error};
    return kinds;
  }
  std::unique_ptr<tasks::Report> make_report(const tasks::ReportInputs& inputs) const override {
    return tasks::make_output_report(
        inputs, {.metrics = metrics(), .numbers = tasks::numbers_in_units, .text = tasks::numbers_text});
  }

 private:
  bool with_rows_;
};

const NearTask near_task(false), near_task_with_rows(true);

// Before main(), since experiments are read by a table of the tasks' names.
const bool known = [] {
  tasks::add(near_task);
  tasks::add(near_task_with_rows);
  return true;
}();

Experiment experiment_of(const std::string& task, const std::filesystem::path& folder, int64_t accumulate = 1) {
  REQUIRE(known);
  std::ofstream file(folder / "table.csv");
  file << "x,y,small,large\n";
  for (int i = 0; i < 120; ++i) {
    const double x = (i % 11) / 5.0 - 1, y = (i % 7) / 3.0 - 1, target = 2 * x - y + 0.1 * ((i * 37) % 13);
    file << x << "," << y << "," << target << "," << 100000 - 3000 * target * target << "\n";
  }
  file.close();
  return parse_experiment(
      "task: " + task +
          "\nmodel: {layers: [linear: {units: 16, activation: relu}, linear: {name: output, units: 2}]}\n"
          "data: {dataset: csv, path: " +
          (folder / "table.csv").string() +
          ", target_columns: [small, large], test_fraction: 0.25, batch_size: 10}\n"
          "optimizer: {type: adam, learning_rate: 0.02}\n"
          "training: {epochs: 6, accumulate: " +
          std::to_string(accumulate) + ", log_every_steps: 1}\nbackend: cpu\nruns: " + folder.string() + "\n",
      "near.yaml");
}

}  // namespace

TEST_CASE("a task has a name of its own") {
  CHECK_THROWS_WITH(tasks::add(near_task), Contains("there is a task 'near' already"));
}

TEST_CASE("a task from elsewhere trains, and its metric is what the rows give") {
  const TemporaryFolder folder;
  const Experiment experiment = experiment_of("near", folder.path(), GENERATE(1, 3));
  training::Session session = training::Session::open(experiment);
  session.train_steps(session.total_steps());
  CHECK(session.sums().of("near_rows").size() == 2);
  CHECK(session.sums().total(tasks::Total::rows) == 90 * 6);
  const double in_training = session.training_scores(session.sums()).value("near_share");
  CHECK(in_training > 0);
  CHECK(in_training < 1);

  std::array<double, 2> near = {};
  const EvalReport by_rows = session.evaluate_rows([&](const tasks::EvaluatedRows& rows) {
    const std::vector<double> targets = rows.numbers_of(rows.target().name);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const Field& field = rows.target();
      const double target = (targets[i] - field.mean[i % 2]) / field.stddev[i % 2];
      near[i % 2] += std::abs(static_cast<double>(rows.predictions[i]) - target) <= kNear ? 1 : 0;
    }
  });
  const double expected = (near[0] + near[1]) / 60;
  CHECK(expected > 0.3);
  CHECK(by_rows.scores.value("near_share") == Approx(expected));
  CHECK(session.evaluate().scores.value("near_share") == by_rows.scores.value("near_share"));
  CHECK(session.evaluated_sums().of("near_rows")[1] == near[1]);
}

TEST_CASE("the accumulators of a metric are kept in checkpoints: a resumed run is the straight one") {
  const TemporaryFolder folder;
  const auto [straight, part] = straight_and_resumed(experiment_of("near_with_rows", folder.path()), folder.path(), 13);
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
  for (const EpochReport& epoch : straight.epochs) {
    CHECK(is_defined(epoch.train_scores.value("near_share")));
    CHECK(epoch.train_scores.find("largest_error") == nullptr);
    CHECK(epoch.evaluation.scores.value("largest_error") > 0);
  }
  CHECK(straight.monitor.name == "near_share");
  storage::Checkpoint checkpoint = storage::load_checkpoint(straight.run / "last.h5");
  const auto stored = std::ranges::find(checkpoint.state, "near_rows", &storage::StoredTensor::name);
  REQUIRE(stored != checkpoint.state.end());
  CHECK(stored->type == TensorType{DType::f32, {2}});
  checkpoint.state.erase(stored);
  training::Session session = training::Session::open(experiment_of("near_with_rows", folder.path()));
  CHECK_THROWS_WITH(session.restore_state(checkpoint), Contains("the state 'near_rows' f32[2] is missing"));
}
