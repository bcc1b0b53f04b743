// Trainings in f16: the loss is scaled, and a step whose gradients overflow is skipped.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "catch.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using training::Session;

namespace {

const Override kF16{"training.precision", "f16"};

storage::Checkpoint state_of(Session& session) {
  storage::Checkpoint state;
  session.save_state(state);
  return state;
}

float& number(storage::Checkpoint& state, const std::string& name) {
  const auto found = std::ranges::find(state.state, name, &storage::StoredTensor::name);
  REQUIRE(found != state.state.end());
  REQUIRE(found->values.size() == sizeof(float));
  return *reinterpret_cast<float*>(found->values.data());
}

void set_number(Session& session, const std::string& name, float value) {
  storage::Checkpoint state = state_of(session);
  number(state, name) = value;
  session.restore_state(state);
}

// What a step without an update leaves as it is.
std::vector<std::vector<std::byte>> learnt(const storage::Checkpoint& state) {
  std::vector<std::vector<std::byte>> result;
  for (const auto& tensor : state.parameters) result.push_back(tensor.values);
  for (const auto& [name, tensors] : state.optimizer) {
    for (const auto& tensor : tensors) result.push_back(tensor.values);
  }
  return result;
}

}  // namespace

TEST_CASE("LeNet learns the digits in f16 as in fp32") {
  const TemporaryFolder folder;
  const std::vector<Override> longer{{"training.epochs", "8"},
                                     {"data.batch_size", "16"},
                                     {"data.synthetic_test", "500"},
                                     {"optimizer", "{type: adam, learning_rate: 0.002}"}};
  const auto accuracy = [](const RunResult& run) { return run.final_evaluation.scores.value("accuracy"); };
  const double full = accuracy(train(small_lenet(folder.path(), longer)));
  const double half = accuracy(train(small_lenet(folder.path(), with(longer, {kF16}))));
  CHECK(full > 0.92);
  CHECK(half > full - 0.02);
}

TEST_CASE("an overflow halves the scale and leaves what was learnt as it was, whatever the optimizer") {
  const TemporaryFolder folder;
  std::vector<std::string> kinds = element_wise_optimizers();
  kinds.emplace_back("muon");
  const std::string kind = GENERATE_COPY(from_range(kinds));
  const std::string groups = GENERATE("[]", "[{match: ['fc*.bias'], learning_rate_factor: 0.5}]");
  Session session = Session::open(
      small_lenet(folder.path(), {kF16,
                                  {"training.ema", "0.9"},
                                  {"training.freeze", "['conv1.*']"},
                                  {"optimizer", "{type: " + kind + ", learning_rate: 0.01, groups: " + groups + "}"}}));
  session.train_steps(3);
  REQUIRE(session.loss_scale()->skipped_steps == 0);
  set_number(session, "loss_scale", 0x1p40F);
  const auto before = learnt(state_of(session));
  session.train_step();
  storage::Checkpoint after = state_of(session);
  CHECK(learnt(after) == before);
  CHECK(number(after, "loss_scale") == 0x1p39F);
  CHECK(number(after, "loss_scale.good_steps") == 0);
  CHECK(number(after, "loss_scale.skipped_steps") == 1);
  CHECK(session.step() == 4);
  CHECK(std::isfinite(session.losses(3, 4).front()));

  set_number(session, "loss_scale", 1024);
  session.train_step();
  after = state_of(session);
  const auto moved = learnt(after);
  REQUIRE(moved.size() == before.size());
  CHECK(moved != before);
  CHECK(number(after, "loss_scale.good_steps") == 1);
  CHECK(number(after, "loss_scale.skipped_steps") == 1);
}

TEST_CASE("an optimizer does not count the steps that were skipped") {
  const TemporaryFolder folder;
  const std::string kind = GENERATE("adam", "radam");
  // Without shuffling and with one batch an epoch, every step sees the same samples.
  const Experiment experiment =
      small_lenet(folder.path(), {kF16,
                                  {"data.synthetic_train", "64"},
                                  {"data.shuffle", "false"},
                                  {"training.epochs", "20"},
                                  {"schedule", "{type: constant, warmup_epochs: 0}"},
                                  {"optimizer", "{type: " + kind + ", learning_rate: 0.001}"}});
  Session straight = Session::open(experiment), skipping = Session::open(experiment);
  set_number(straight, "loss_scale", 1024);
  straight.train_steps(7);
  set_number(skipping, "loss_scale", 0x1p40F);
  skipping.train_step();
  set_number(skipping, "loss_scale", 1024);
  skipping.train_steps(7);
  REQUIRE(skipping.learning_rate_of_step(0) == skipping.learning_rate_of_step(7));
  REQUIRE(skipping.loss_scale()->skipped_steps == 1);
  const bool same = learnt(state_of(skipping)) == learnt(state_of(straight));
  CHECK(same);
}

TEST_CASE("2000 good steps in a row double the scale, up to the largest") {
  const TemporaryFolder folder;
  Session session = Session::open(small_lenet(folder.path(), {kF16}));
  session.train_step();
  set_number(session, "loss_scale.good_steps", 1998);
  session.train_step();
  storage::Checkpoint state = state_of(session);
  CHECK(number(state, "loss_scale") == 65536);
  CHECK(number(state, "loss_scale.good_steps") == 1999);
  session.train_step();
  state = state_of(session);
  CHECK(number(state, "loss_scale") == 131072);
  CHECK(number(state, "loss_scale.good_steps") == 0);
}

TEST_CASE("the scale does not change a step, as long as nothing over- or underflows") {
  const TemporaryFolder folder;
  const std::string accumulate = GENERATE("1", "2");
  const Experiment experiment =
      small_lenet(folder.path(), {kF16, {"training.accumulate", accumulate}, {"optimizer.clip_norm", "0.5"}});
  Session one = Session::open(experiment), other = Session::open(experiment);
  set_number(other, "loss_scale", 32768);
  one.train_steps(5);
  other.train_steps(5);
  const auto norms = one.gradient_norms(0, 5), others = other.gradient_norms(0, 5);
  for (std::size_t i = 0; i < norms.size(); ++i) CHECK(std::abs(others[i] - norms[i]) < 1e-3F * norms[i]);
  CHECK(norms.size() == 5);
}

TEST_CASE("a training in f16 that was interrupted goes on to the straight run's bits") {
  const TemporaryFolder folder;
  // The gradient of this loss is too large for the first scale: steps are skipped from the beginning.
  const Experiment experiment = small_lenet(folder.path(), {kF16,
                                                            {"data.synthetic_train", "80"},
                                                            {"data.batch_size", "2"},
                                                            {"loss", "{type: hinge, power: 2, margin: 30}"},
                                                            {"optimizer.learning_rate", "1e-4"},
                                                            {"training.log_every_steps", "1"},
                                                            {"training.check_gradients", "true"},
                                                            {"training.epochs", "2"}});
  const RunResult straight =
      train(experiment, {.listener = nullptr, .stop = nullptr, .run_folder = folder.path() / "a"});
  StopAfter stop(50);
  RunResult part = train(experiment, {.listener = &stop, .stop = &stop.stop, .run_folder = folder.path() / "b"});
  REQUIRE(part.interrupted);
  part = resume(part.run, {});
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
  storage::Checkpoint end = storage::load_checkpoint(part.run / "last.h5");
  CHECK(number(end, "loss_scale.skipped_steps") > 0);
  CHECK(number(end, "loss_scale") < 65536);
  REQUIRE_FALSE(straight.epochs.empty());
  CHECK(straight.epochs.back().loss_scale->scale == number(end, "loss_scale"));

  std::stringstream records;
  records << std::ifstream(straight.run / "metrics.jsonl").rdbuf();
  CHECK_THAT(records.str(), Contains("\"loss_scale\":32768") && Contains("\"skipped_steps\":1"));
}

TEST_CASE("a run goes on in f16 that began in fp32") {
  const TemporaryFolder folder;
  const RunResult first = train(small_lenet(folder.path(), {{"training.epochs", "1"}}));
  const RunResult more = resume(first.run, {kF16, {"training.epochs", "2"}});
  REQUIRE(more.epochs.size() == 1);
  CHECK(more.epochs[0].loss_scale->scale == 65536);
}

TEST_CASE("a training in f16 ends where no scale makes its gradients finite") {
  const TemporaryFolder folder;
  const RunResult first = train(small_lenet(folder.path(), {kF16, {"training.epochs", "1"}}));
  storage::Checkpoint end = storage::load_checkpoint(first.run / "last.h5");
  number(end, "loss_scale") = 0x1p-16F;
  storage::save_checkpoint(first.run / "last.h5", end);
  CHECK_THROWS_WITH(resume(first.run, {{"training.epochs", "2"}}), Contains("not finite in f16 at any scale"));
}
