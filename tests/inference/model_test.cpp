// A trained model as a program calls it.
#include <gpunn/error.hpp>
#include <gpunn/model.hpp>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "catch.hpp"
#include "evaluation/open_trained.hpp"
#include "execution/allocation_count.hpp"
#include "feed/evaluation_part.hpp"
#include "inference/models.hpp"
#include "runs/trained_model.hpp"
#include "session/session.hpp"
#include "training/predictions.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

// A convolution with batch norm and dropout: what differs between training and use.
Experiment small_cnn(const std::filesystem::path& runs, const Overrides& more = {}) {
  return parse_experiment(
      "name: small_cnn\n"
      "model: {layers: [conv2d: {filters: 4, kernel: 3, bias: false}, batch_norm, relu, max_pool: {window: 2}, "
      "flatten, dropout: {p: 0.3}, linear: {units: 10}]}\n"
      "data: {dataset: digits, synthetic_train: 256, synthetic_test: 96, batch_size: 32}\n"
      "optimizer: {type: sgd, learning_rate: 0.05}\ntraining: {epochs: 1}\nbackend: cpu\nruns: " +
          runs.string() + "\n",
      "small_cnn.yaml", more);
}

Samples test_samples(const Model& model, const Dataset& data, int64_t rows) {
  Samples samples(model, rows);
  std::memcpy(samples.bytes.data(), data.test.values.data(), samples.bytes.size());
  return samples;
}

}  // namespace

TEST_CASE("a model gives what its training's session gives, without the data") {
  const TemporaryFolder folder;
  const Overrides more = GENERATE(Overrides{}, Overrides{{"training.ema", "0.9"}});
  const RunResult run = train(small_cnn(folder.path(), more));
  const Model model = Model::load(run.run);
  CHECK(model.info().task == "classification");
  CHECK(model.info().fields.target().names.size() == 10);
  CHECK(model.info().data.name == "digits");
  CHECK(model.info().data.train.rows == 256);
  CHECK(model.experiment().name == "small_cnn");
  CHECK(model.backend() == "cpu");
  REQUIRE(model.inputs().size() == 1);
  CHECK(model.inputs()[0].name == "image");
  CHECK(model.inputs()[0].row == TensorType{DType::u8, {1, 28, 28}});
  REQUIRE(model.outputs().size() == 2);
  CHECK(model.outputs()[0].name == "logits");
  CHECK(model.outputs()[1].row == TensorType{DType::f32, {10}});

  const auto session = training::open_trained({.path = run.run, .overrides = {}}, nullptr);
  const Dataset data = training::load_for(small_cnn(folder.path()).data, EvaluationPart::test);
  const std::vector<float> expected = predictions_of(*session);

  const Samples samples = test_samples(model, data, 64);
  Answers probabilities(model, 1, 64), logits(model, 0, 64);
  const std::array<ArrayView, 1> inputs = {samples.view()};
  const std::array<MutableArrayView, 2> outputs = {probabilities.view(), logits.view()};
  model.run(inputs, outputs);
  for (std::size_t i = 0; i < probabilities.values.size(); ++i) {
    CHECK(probabilities.values[i] == Approx(expected.at(i)).epsilon(1e-5));
  }
  for (std::size_t row = 0; row < 64; ++row) {
    double sum = 0;
    for (std::size_t c = 0; c < 10; ++c) sum += std::exp(static_cast<double>(logits.values[row * 10 + c]));
    CHECK(std::exp(static_cast<double>(logits.values[row * 10 + 3])) / sum ==
          Approx(probabilities.values[row * 10 + 3]).epsilon(1e-4));
  }

  const std::vector<Decoded> decoded = model.predict(samples.view(), 3);
  REQUIRE(decoded.size() == 64);
  REQUIRE(decoded[5].classes.size() == 3);
  const std::vector<float>& found = probabilities.values;
  const auto largest = std::max_element(found.begin() + 50, found.begin() + 60);
  CHECK(decoded[5].classes[0].index == largest - found.begin() - 50);
  CHECK(decoded[5].classes[0].probability == static_cast<double>(*largest));
  CHECK(decoded[5].classes[0].name == std::to_string(decoded[5].classes[0].index));
  CHECK(decoded[5].classes[0].probability >= decoded[5].classes[1].probability);
}

TEST_CASE("a batch of any size up to the largest gives what its rows give one by one") {
  const TemporaryFolder folder;
  const RunResult run = train(small_cnn(folder.path()));
  const Model model = Model::load(run.run / "last.h5", {.max_batch = 7});
  const Samples all = Samples(model, 7).draw(1);
  const std::vector<float> together = logits_of(model, all);
  for (const int64_t rows : {1, 3, 7, 2}) {
    CAPTURE(rows);
    Samples some(model, rows);
    std::memcpy(some.bytes.data(), all.bytes.data(), some.bytes.size());
    const std::vector<float> found = logits_of(model, some);
    REQUIRE(found.size() == static_cast<std::size_t>(rows) * 10);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(together[i]).margin(1e-5));
  }
  CHECK(message_of([&] { logits_of(model, Samples(model, 8)); }) ==
        "a call brings 1 to 7 rows, as max_batch says; found 8");
  Samples none(model, 1);
  none.shape[0] = 0;
  CHECK_THROWS_WITH(logits_of(model, none), Contains("found 0"));
}

TEST_CASE("a steady call allocates nothing") {
  const TemporaryFolder folder;
  const RunResult run = train(small_lenet(folder.path(), {{"training.epochs", "1"}}));
  const Model model = Model::load(run.run, {.threads = 1, .max_batch = 4});
  for (const int64_t rows : {1, 4}) {
    const Samples samples = Samples(model, rows).draw(3);
    Answers answers(model, 1, rows);
    model.run(samples.view(), answers.view());
    const int64_t before = allocation_count();
    for (int i = 0; i < 10; ++i) model.run(samples.view(), answers.view());
    CHECK(allocation_count() == before);
  }
}

TEST_CASE("many threads on one model get the very answers of one, while others are destroyed") {
  const TemporaryFolder folder;
  const RunResult run = train(small_cnn(folder.path()));
  const int64_t calls = GENERATE(1, 3, 8);
  auto shared = std::make_unique<Model>(Model::load(run.run, {.threads = 1, .max_batch = 4, .calls = calls}));
  constexpr int kThreads = 8, kRounds = 25;
  std::vector<std::vector<float>> expected;
  for (uint32_t i = 0; i < kThreads; ++i) {
    expected.push_back(logits_of(*shared, Samples(*shared, 1 + i % 4).draw(i)));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i, own = Model(*shared)] {
      const Samples samples = Samples(own, 1 + i % 4).draw(i);
      for (int round = 0; round < kRounds; ++round) {
        if (logits_of(own, samples) != expected[i]) ++wrong;
      }
    });
  }
  shared.reset();  // the threads have handles of their own
  for (int i = 0; i < 3; ++i) Model::load(run.run, {.threads = 1, .max_batch = 1});
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("arrays that are not the model's are refused, and say how") {
  const TemporaryFolder folder;
  const RunResult run = train(small_cnn(folder.path()));
  const Model model = Model::load(run.run);
  const Samples samples(model, 1);
  Answers answers(model, 0, 1);
  const auto refusal = [&](ArrayView input, MutableArrayView output) {
    return message_of([&] { model.run(input, output); });
  };
  ArrayView input = samples.view();
  const Shape colour = {1, 3, 28, 28}, flat = {1, 784}, two = {2, 10};
  input.shape = colour;
  CHECK(refusal(input, answers.view()) ==
        "the model's input 'image': expected u8[rows, 1, 28, 28], found u8[1, 3, 28, 28]");
  input.shape = flat;
  CHECK(refusal(input, answers.view()) == "the model's input 'image': expected u8[rows, 1, 28, 28], found u8[1, 784]");
  input = samples.view();
  input.dtype = DType::f32;
  CHECK_THAT(refusal(input, answers.view()), Contains("found f32[1, 1, 28, 28]"));
  input = samples.view();
  input.name = "picture";
  CHECK_THAT(refusal(input, answers.view()), Contains("no input 'picture'") && Contains("image"));
  input = samples.view();
  input.data = nullptr;
  CHECK_THAT(refusal(input, answers.view()), Contains("null"));
  MutableArrayView output = answers.view();
  output.shape = two;
  CHECK_THAT(refusal(samples.view(), output), Contains("room for 2 rows, the input has 1"));
  output = answers.view();
  output.name = "logit";
  CHECK_THAT(refusal(samples.view(), output), Contains("no output 'logit'") && Contains("'logits'"));
  CHECK(answers.values == std::vector<float>(10, -1.0F));
  CHECK(refusal(samples.view(), answers.view()) == "(no error)");

  CHECK_THROWS_WITH(Model::load(run.run, {.max_batch = 0}), Contains("ModelOptions.max_batch"));
  CHECK_THROWS_WITH(Model::load(folder / "nothing"), Contains("nothing"));
  CHECK_THROWS_WITH(Model::load(run.run, {.backend = "abacus"}), Contains("'abacus'"));
}

TEST_CASE("a model whose device failed says so from then on, and others go on") {
  const TemporaryFolder folder;
  const RunResult run = train(small_lenet(folder.path(), {{"training.epochs", "1"}}));
  const std::filesystem::path plugin = std::filesystem::path(GPUNN_TRAINING_SAMPLE_DIR) / "libgpunn_backend_losing.so";
  const Model losing = Model::load(run.run, {.backend = "losing", .max_batch = 2, .plugins = {plugin}});
  const Model sound = Model::load(run.run, {.backend = "cpu", .max_batch = 2});
  const Samples samples = Samples(sound, 1).draw(1);
  const std::vector<float> expected = logits_of(sound, samples);
  CHECK(logits_of(losing, samples) == expected);
  setenv("GPUNN_TEST_LOSE", "predict:0", 1);
  CHECK_THROWS_AS(logits_of(losing, samples), DeviceLostError);
  unsetenv("GPUNN_TEST_LOSE");
  CHECK_THROWS_AS(logits_of(losing, samples), DeviceLostError);
  CHECK_THROWS_WITH(logits_of(losing, samples),
                    Contains("its device failed in an earlier call") && Contains("an address that is nowhere"));
  CHECK(logits_of(sound, samples) == expected);
}

TEST_CASE("a checkpoint of format version 1 is opened with the help of its data set") {
  const TemporaryFolder folder;
  const RunResult run = train(small_cnn(folder.path()));
  storage::Checkpoint old = storage::load_checkpoint(run.run / "last.h5");
  REQUIRE(old.model);
  old.model.reset();
  storage::save_checkpoint(folder / "old.h5", old);
  const Model model = Model::load(folder / "old.h5"), now = Model::load(run.run / "last.h5");
  const Samples samples = Samples(now, 2).draw(4);
  CHECK(logits_of(model, samples) == logits_of(now, samples));
  CHECK(model.info().fields.target().names == now.info().fields.target().names);
  CHECK(model.info().data.train == now.info().data.train);
}

TEST_CASE("a description that is of another model than the weights is refused") {
  const TemporaryFolder folder;
  const RunResult run = train(small_cnn(folder.path()));
  storage::Checkpoint other = storage::load_checkpoint(run.run / "last.h5");
  SECTION("other samples") {
    other.model->fields.input().type.shape = {1, 14, 14};
    storage::save_checkpoint(folder / "other.h5", other);
    CHECK_THROWS_WITH(Model::load(folder / "other.h5"), Contains("other.h5") && Contains("linear1.weight"));
  }
  SECTION("other classes") {
    other.model->fields.target().names.pop_back();
    storage::save_checkpoint(folder / "other.h5", other);
    CHECK_THROWS_WITH(Model::load(folder / "other.h5"), Contains("9 outputs"));
  }
}
