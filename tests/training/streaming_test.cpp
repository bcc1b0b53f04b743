// A training on a streamed data set gives the bits of one on a resident set.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include "catch.hpp"
#include "feed/loader_report.hpp"
#include "feed/residency.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

// What differs between two trainings of one experiment, one resident and one streamed; all of it is compared.
struct Outcome {
  std::vector<std::vector<std::byte>> state;
  std::vector<double> figures;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(const RunResult& run) {
  Outcome outcome{.state = state_bytes(storage::load_checkpoint(run.run / "last.h5")), .figures = {}};
  for (const EpochReport& epoch : run.epochs) {
    for (const double figure :
         {epoch.train_loss, epoch.train_scores.value("accuracy"), epoch.evaluation.loss,
          epoch.evaluation.scores.value("accuracy"), epoch.evaluation.scores.value("top5_accuracy"),
          static_cast<double>(epoch.evaluation.rows)}) {
      outcome.figures.push_back(figure);
    }
  }
  return outcome;
}

}  // namespace

TEST_CASE("a streamed data set trains to the bits of a resident one") {
  const TemporaryFolder folder;
  const char* const shuffle = GENERATE("true", "false");
  const char* const drop_last = GENERATE("true", "false");
  // 650 rows: a last batch of 2, or none. 211 test rows in batches of 3: one of 1. Both rings are gone through more
  // than once.
  const Overrides common{{"data.synthetic_train", "650"}, {"data.synthetic_test", "211"}, {"data.batch_size", "8"},
                         {"data.eval_batch_size", "3"},   {"data.shuffle", shuffle},      {"data.drop_last", drop_last},
                         {"training.epochs", "3"}};
  CAPTURE(shuffle, drop_last);
  const auto train_on = [&](const char* residency) {
    return outcome_of(train(small_mlp(folder.path(), with(common, {{"data.residency", residency}}))));
  };
  const Outcome resident = train_on("device"), streamed = train_on("stream");
  CHECK(resident.figures == streamed.figures);
  CHECK(resident.state == streamed.state);
  CHECK(resident.figures.at(5) == 211);
}

TEST_CASE("a streamed run that is stopped within an epoch and resumed gives the straight run's bits") {
  const TemporaryFolder folder;
  const Experiment experiment = small_lenet(
      folder.path(), {{"training.log_every_steps", "1"}, {"data.residency", "stream"}, {"data.batch_size", "8"}});
  const RunResult straight = train(experiment);
  StopAfter stop(130);  // in the second epoch of 80 steps, and within a group of batches
  const RunResult part = train(experiment, {.listener = &stop, .stop = &stop.stop, .run_folder = folder.path() / "b"});
  REQUIRE(part.interrupted);
  resume(part.run, {});
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));

  // The residency is where the data is, not what the training is: it may change on the way.
  const RunResult other = train(experiment, {.listener = nullptr, .stop = nullptr, .run_folder = folder.path() / "c"});
  resume(other.run, {{"data.residency", "device"}, {"training.epochs", "4"}});
  resume(straight.run, {{"training.epochs", "4"}});
  CHECK(state_bytes(storage::load_checkpoint(straight.run / "last.h5")) ==
        state_bytes(storage::load_checkpoint(other.run / "last.h5")));
}

namespace {

// Ten classes of grey pictures of many sizes.
std::filesystem::path pictures(const std::filesystem::path& folder) {
  const std::filesystem::path root = folder / "pictures";
  for (int i = 0; i < 60; ++i) {
    const int width = 30 + i % 7, height = 29 + i % 5;
    std::string text = "P5 " + std::to_string(width) + " " + std::to_string(height) + " 255\n";
    for (int at = 0; at < width * height; ++at) text += static_cast<char>((at * (3 + i % 2) + 5 * i) % 256);
    const std::filesystem::path of_class = root / std::to_string(i % 10);
    std::filesystem::create_directories(of_class);
    std::ofstream(of_class / (std::to_string(i) + ".pgm")) << text;
  }
  return root;
}

}  // namespace

TEST_CASE("images that are decoded in each epoch train to the bits of those that are kept decoded") {
  const TemporaryFolder folder;
  const Overrides common{{"data.dataset", "image_folder"},
                         {"data.path", pictures(folder.path()).string()},
                         {"data.image_size", "28"},
                         {"data.test_fraction", "0.2"},
                         {"data.batch_size", "7"},
                         {"data.drop_last", "false"},
                         {"data.synthetic_train", "0"},
                         {"data.synthetic_test", "0"},
                         {"data.channels", "1"}};
  const auto train_on = [&](const char* decode) {
    return outcome_of(train(small_mlp(folder.path(), with(common, {{"data.decode", decode}}))));
  };
  const Outcome once = train_on("once"), each = train_on("each_epoch");
  CHECK(once.figures == each.figures);
  CHECK(once.state == each.state);
  // The very images, in another place: what is varied does not depend on where they come from.
  const auto varied_on = [&](const char* decode) {
    const Overrides more{{"data.decode", decode}, {"augmentation.rand_augment", "2"}};
    return outcome_of(train(small_mlp(folder.path(), with(common, more))));
  };
  const Outcome varied = varied_on("once");
  CHECK(varied.state == varied_on("each_epoch").state);
  CHECK(varied.state != once.state);
}

TEST_CASE("a run on varied samples that is stopped within an epoch goes on with the very samples") {
  const TemporaryFolder folder;
  const Experiment experiment = small_mlp(folder.path(), {{"data.dataset", "image_folder"},
                                                          {"data.path", pictures(folder.path()).string()},
                                                          {"data.image_size", "28"},
                                                          {"data.channels", "1"},
                                                          {"data.test_fraction", "0.2"},
                                                          {"data.batch_size", "4"},
                                                          {"data.synthetic_train", "0"},
                                                          {"data.synthetic_test", "0"},
                                                          {"training.log_every_steps", "1"},
                                                          {"augmentation.resized_crop", "[0.2, 1]"},
                                                          {"augmentation.trivial_augment", "true"}});
  const RunResult straight = train(experiment);
  StopAfter stop(17);  // in the second epoch of 12 steps
  const RunResult part = train(experiment, {.listener = &stop, .stop = &stop.stop, .run_folder = folder.path() / "b"});
  REQUIRE(part.interrupted);
  resume(part.run, {});
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
}

TEST_CASE("a streamed run says how fast batches are made, and who waits") {
  const TemporaryFolder folder;
  const auto epoch_of = [&](const char* residency) {
    return train(small_mlp(folder.path(), {{"data.residency", residency}, {"training.epochs", "1"}}));
  };
  CHECK_FALSE(epoch_of("device").epochs.at(0).loader);
  const RunResult run = epoch_of("stream");
  REQUIRE(run.epochs.at(0).loader);
  CHECK(run.epochs.at(0).loader->samples_per_second > 0);
  CHECK(run.epochs.at(0).loader->waited_seconds >= 0);
  std::ifstream records(run.run / "metrics.jsonl"), log(run.run / "log.txt");
  CHECK_THAT(std::string(std::istreambuf_iterator<char>(records), {}),
             Contains("\"loader_samples_per_second\":") && Contains("\"waited_seconds\":"));
  CHECK_THAT(std::string(std::istreambuf_iterator<char>(log), {}), Contains("epoch 1: the host makes "));
  CHECK(training::loader_text({.samples_per_second = 2500, .waited_seconds = 0.02}, 1000, 10) ==
        "the host makes 2500 samples/s, the training takes 1000; the device waited 0.2 % of the time: the device "
        "limits the training");
  CHECK_THAT(training::loader_text({.samples_per_second = 2500, .waited_seconds = 4}, 2400, 10),
             Contains("waited 40.0 % of the time: making batches limits the training") && Contains("gpunn data pack"));
}

TEST_CASE("a streamed session goes back and forth, and evaluates in between") {
  const TemporaryFolder folder;
  const auto losses = [&](const char* residency) {
    training::Session session = training::Session::open(small_mlp(
        folder.path(), {{"data.residency", residency}, {"data.drop_last", "false"}, {"data.batch_size", "9"}}));
    std::vector<double> seen;
    storage::Checkpoint early, late;
    for (int i = 0; i < 21; ++i) {
      if (i == 3) session.save_state(early);
      if (i == 14) session.save_state(late);
      if (i % 6 == 5) seen.push_back(session.evaluate().loss);
      session.train_steps(7);
    }
    for (const storage::Checkpoint* state : {&late, &early, &early}) {
      session.restore_state(*state);
      session.train_steps(100);
      seen.push_back(session.sums().total(tasks::Total::loss));
      seen.push_back(session.evaluate().loss);
    }
    return seen;
  };
  CHECK(losses("stream") == losses("device"));
}

TEST_CASE("a streamed set takes no more of the device than its ring, and a step allocates nothing") {
  const TemporaryFolder folder;
  const Overrides large{{"data.synthetic_train", "4000"}, {"data.batch_size", "16"}};
  training::Session resident = training::Session::open(small_lenet(folder.path(), large));
  training::Session streamed =
      training::Session::open(small_lenet(folder.path(), with(large, {{"data.residency", "stream"}})));
  CHECK(resident.data().residency() == Residency::device);
  CHECK(streamed.data().residency() == Residency::stream);
  streamed.train_step();
  streamed.evaluate();
  // 64 slots of 16 rows for the training, as many for the evaluation.
  const uint64_t row = 28 * 28;
  CHECK(streamed.data_bytes() > 2 * 64 * 16 * row);
  CHECK(streamed.data_bytes() < 2 * 64 * 16 * (row + 64));
  CHECK(resident.data_bytes() > 4000 * row);
  CHECK(streamed.backend().allocated_bytes() ==
        streamed.arena_bytes() + streamed.persistent_bytes() + streamed.data_bytes());

  const int64_t before = streamed.backend().allocations();
  streamed.train_steps(100);
  CHECK(streamed.backend().allocations() == before);
}

TEST_CASE("a sample is predicted alike, wherever the data is") {
  const TemporaryFolder folder;
  const RunResult run = train(small_mlp(folder.path(), {{"data.residency", "stream"}, {"training.epochs", "1"}}));
  const auto probabilities = [&](const char* residency) {
    std::vector<double> result;
    const TrainedModel model{.path = run.run, .overrides = {{"data.residency", residency}}};
    for (const Prediction& p : predict(model, {.inputs = {}, .rows = {0, 7}, .top_k = 10})) {
      for (const ClassProbability& c : p.top) result.push_back(c.probability);
    }
    result.push_back(evaluate(model).loss);
    return result;
  };
  CHECK(probabilities("stream") == probabilities("device"));
}

TEST_CASE("a data set is resident where it fits well, unless the experiment says otherwise") {
  using training::choose_residency;
  gpunn_device_info device{};
  CHECK(choose_residency(Residency::automatic, uint64_t{1} << 40, device) == Residency::device);  // it does not tell
  device.free_bytes = 1000;
  CHECK(choose_residency(Residency::automatic, 500, device) == Residency::device);
  CHECK(choose_residency(Residency::automatic, 501, device) == Residency::stream);
  CHECK(choose_residency(Residency::stream, 1, device) == Residency::stream);
  CHECK(choose_residency(Residency::device, 5000, device) == Residency::device);

  const TemporaryFolder folder;
  training::Session session = training::Session::open(small_mlp(folder.path()));
  CHECK(training::resident_bytes(session.dataset()) == uint64_t{640 + 200} * (28 * 28 + 4));
}
