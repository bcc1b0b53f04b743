// A last batch of one row joins the batch before it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "catch.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using training::Sampling;
using training::Session;

namespace {

Experiment joined_run(const std::filesystem::path& runs, int64_t rows, int64_t batch, const Overrides& more = {}) {
  return parse_experiment(
      "name: normed\n"
      "model: {layers: [flatten, linear: {name: hidden, units: 8, bias: false}, batch_norm: {name: bn}, relu, linear: "
      "{name: output, units: 10}]}\n"
      "data: {dataset: digits, drop_last: false, synthetic_test: 33, synthetic_train: " +
          std::to_string(rows) + ", batch_size: " + std::to_string(batch) +
          "}\noptimizer: {type: sgd, learning_rate: 0.1, momentum: 0.9}\ntraining: {epochs: 3, log_every_steps: "
          "1}\nbackend: cpu\nruns: " +
          runs.string() + "\n",
      "normed.yaml", more);
}

std::vector<std::vector<std::byte>> end_state(const RunResult& run) {
  return state_bytes(storage::load_checkpoint(run.run / "last.h5"));
}

}  // namespace

TEST_CASE("a single last row is picked with the batch before it, once in each epoch") {
  struct Case {
    int64_t rows, batch, steps, last;
    bool drop_last = false, join = true;
  };
  for (const Case& one : {Case{17, 16, 1, 17},
                          {33, 16, 2, 17},
                          {5, 2, 2, 3},
                          {34, 16, 3, 2},
                          {32, 16, 2, 16},
                          {5, 1, 5, 1},
                          {1, 1, 1, 1},
                          {33, 16, 2, 16, true},
                          {33, 16, 3, 1, false, false}}) {
    for (const int64_t shift : {0, 3}) {
      CAPTURE(one.rows, one.batch, one.drop_last, shift);
      const Sampling sampling{.rows = one.rows,
                              .batch = one.batch,
                              .shuffle = true,
                              .drop_last = one.drop_last,
                              .seed = 3,
                              .join_single = one.join,
                              .shift = shift};
      REQUIRE(sampling.steps_per_epoch() == one.steps);
      const int64_t first = 2 * one.steps - shift % one.steps;  // the beginning of an epoch
      std::vector<int> seen(static_cast<std::size_t>(one.rows));
      for (int64_t step = first; step < first + one.steps; ++step) {
        CHECK(sampling.epoch_of(step) == (first + shift) / one.steps);
        std::vector<int32_t> index(static_cast<std::size_t>(sampling.width()), 7);
        const int32_t count = sampling.rows_of_step(step, index);
        CHECK(count == (step + 1 == first + one.steps ? one.last : one.batch));
        for (std::size_t i = 0; i < index.size(); ++i) {
          CHECK((index[i] >= 0) == (static_cast<int32_t>(i) < count));
          if (index[i] >= 0) ++seen[static_cast<std::size_t>(index[i])];
        }
      }
      CHECK(std::ranges::count(seen, 1) == (one.drop_last ? one.rows / one.batch * one.batch : one.rows));
    }
  }
}

TEST_CASE("no row is picked for a step before the epochs that are counted") {
  std::vector<int32_t> index(3, 7);
  const Sampling sampling{.rows = 5, .batch = 2, .shuffle = true, .join_single = true, .shift = -3};
  CHECK(sampling.rows_of_step(2, index) == 0);
  CHECK(index == std::vector<int32_t>{-1, -1, -1});
  CHECK(sampling.rows_of_step(4, index) == 3);
}

TEST_CASE("a batch norm of one row at a time is warned of") {
  struct Case {
    int64_t batch;
    Overrides more;
    bool warned;
  };
  for (const Case& one :
       {Case{1, {}, true},
        {2, {}, false},
        {2, {{"training.micro_batches", "2"}}, true},
        {1, {{"model.layers", "[conv2d: {filters: 2, kernel: 3}, batch_norm, flatten, linear: {units: 10}]"}}, false},
        {1, {{"model.layers", "[flatten, layer_norm, linear: {units: 10}]"}}, false}}) {
    const TemporaryFolder folder;
    Overrides more = one.more;
    more.push_back({"training.max_steps", "1"});
    struct Heard final : TrainingListener {
      void on_message(const std::string& text) override { all += text + "\n"; }
      std::string all;
    } heard;
    train(joined_run(folder.path(), 5, one.batch, more), {.listener = &heard});
    CAPTURE(one.batch, heard.all);
    CHECK((heard.all.find("WARNING: the batch norm bn gets one row at a time") != std::string::npos) == one.warned);
  }
}

TEST_CASE("a batch that a single row joined is a batch of that many rows") {
  const TemporaryFolder folder;
  // One step an epoch, of 17 rows in the same order.
  const RunResult joined = train(joined_run(folder.path(), 17, 16)), whole = train(joined_run(folder.path(), 17, 17));
  CHECK(joined.epochs[0].global_step == 1);
  CHECK(end_state(joined) == end_state(whole));
  CHECK(joined.epochs[0].train_loss == whole.epochs[0].train_loss);
}

TEST_CASE("a batch norm trains on rows that leave one over") {
  const TemporaryFolder folder;
  const Overrides more =
      GENERATE(Overrides{}, Overrides{{"data.residency", "stream"}}, Overrides{{"data.residency", "device"}},
               Overrides{{"training.micro_batches", "3"}}, Overrides{{"data.shuffle", "false"}},
               Overrides{{"training.precision", "bf16"}}, Overrides{{"augmentation", "{mixup: 0.2}"}});
  CAPTURE(more.empty() ? "" : more[0].key);
  const Experiment experiment = joined_run(folder.path(), 49, 16, more);
  const auto [straight, part] = straight_and_resumed(experiment, folder.path(), 2);
  REQUIRE(straight.epochs.size() == 3);
  for (const EpochReport& epoch : straight.epochs) {
    CHECK(epoch.global_step == 3 * epoch.epoch);
    CHECK(std::isfinite(epoch.evaluation.loss));
  }
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
  CHECK(storage::load_checkpoint(straight.run / "last.h5").counters.at("rows") == 3 * 49);
}

TEST_CASE("the steps of an epoch are the same in the plan, the schedule and the training") {
  const TemporaryFolder folder;
  Session session = Session::open(joined_run(folder.path(), 49, 16));
  CHECK(session.steps_per_epoch() == 3);
  CHECK(session.total_steps() == 9);
  CHECK(session.schedule().rates().size() == 9);
  session.train_steps(3);
  CHECK(session.sums().total(tasks::Total::rows) == 49);
}
