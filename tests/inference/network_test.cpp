// Networks in memory: their weights, trainings on arrays and on batches of the program, and their predictions.
#include <gpunn/error.hpp>
#include <gpunn/network.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "catch.hpp"
#include "fields/values.hpp"
#include "inference/models.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

constexpr const char* kSmall =
    "name: small\n"
    "model: {layers: [conv2d: {filters: 4, kernel: 3}, batch_norm, relu, max_pool: {window: 2}, flatten, dropout: {p: "
    "0.3}, linear: {units: 10, name: output}]}\n"
    "optimizer: {type: adam, learning_rate: 0.003}\ntraining: {epochs: 2}\nbackend: cpu\n";
constexpr const char* kDigits = "data: {dataset: digits, synthetic_train: 200, synthetic_test: 60, batch_size: 32}\n";
constexpr const char* kOfArrays = "data: {dataset: arrays, batch_size: 32}\n";

Experiment experiment_of(const std::string& text, const Overrides& more = {}) {
  return parse_experiment(text, "small.yaml", more);
}

// The digits as a program has them.
Dataset digits(const Overrides& more = {}) {
  Dataset set = load_dataset(experiment_of(std::string(kSmall) + kDigits, more).data);
  set.name = kArrays;
  return set;
}

Network network_for(const Dataset& data, const Experiment& experiment) {
  ModelInfo info;
  info.fields.input().type = {data.train.samples.dtype,
                              {data.train.samples.shape.begin() + 1, data.train.samples.shape.end()}};
  info.fields.input().mean = data.fields.input().mean;
  info.fields.input().stddev = data.fields.input().stddev;
  info.fields.target().names = data.fields.target().names;
  return Network(experiment, info);
}

Network small_network(const Overrides& more = {}) {
  return network_for(digits(), experiment_of(std::string(kSmall) + kOfArrays, more));
}

std::vector<std::vector<float>> weights_of(const Network& network) {
  std::vector<std::vector<float>> all;
  for (const NetworkTensor& tensor : network.tensors()) {
    const std::span<const float> values = network.read(tensor.name);
    all.emplace_back(values.begin(), values.end());
  }
  return all;
}

// The rows of a split in their order, and a counter of what was asked for.
class InOrder : public BatchSource {
 public:
  InOrder(const Split& split, std::vector<int64_t> sizes) : split_(split), sizes_(std::move(sizes)) {}
  int64_t read(int64_t step, const BatchRoom& room) override {
    if (asked_ == 0) first_ = step;
    CHECK(step == first_ + asked_);
    ++asked_;
    const auto batch = static_cast<std::size_t>(step) % sizes_.size();
    int64_t first = 0;
    for (std::size_t i = 0; i < batch; ++i) first += sizes_[i];
    const int64_t rows = sizes_[batch];
    const std::size_t bytes = split_.samples.bytes() / static_cast<std::size_t>(split_.rows());
    std::memcpy(room.samples.data(), split_.values.data() + static_cast<std::size_t>(first) * bytes,
                static_cast<std::size_t>(rows) * bytes);
    const std::vector<int32_t> labels = labels_of(split_);
    std::memcpy(room.fields.front().data(), labels.data() + first, static_cast<std::size_t>(rows) * sizeof(int32_t));
    if (step - first_ == fails_at) throw std::runtime_error("the generator broke");
    return rows;
  }
  int64_t asked() const { return asked_; }
  int64_t fails_at = -1;

 private:
  const Split& split_;
  std::vector<int64_t> sizes_;
  int64_t asked_ = 0, first_ = 0;
};

Dataset with_batches(const Dataset& data, std::shared_ptr<BatchSource> batches, int64_t steps) {
  Dataset set = data;
  set.train = {};
  set.train.samples = data.train.samples;
  set.train.samples.shape.front() = steps * 32;
  set.batches = std::move(batches);
  return set;
}

template <class Change>
void change_labels(Dataset& set, const Change& change) {
  std::vector<int32_t> labels = labels_of(set.train);
  change(labels);
  set.train.fields[kLabelField] = fields::class_values(labels);
}

}  // namespace

TEST_CASE("a network trained on arrays has the bits of the run of the same experiment") {
  const TemporaryFolder folder;
  const Overrides more = GENERATE(Overrides{}, Overrides{{"training.ema", "0.9"}},
                                  Overrides{{"data.drop_last", "false"}, {"training.seed", "5"}});
  Experiment of_files = experiment_of(std::string(kSmall) + kDigits, more);
  of_files.runs = folder.path();
  of_files.init_from = {};
  const RunResult run = train(of_files);

  Network network = small_network(more);
  CHECK(network.steps() == 0);
  const std::vector<std::vector<float>> first = weights_of(network);
  const RunResult result = network.train(digits());
  CHECK(result.run.empty());
  REQUIRE(result.epochs.size() == 2);
  CHECK(result.epochs.back().evaluation.loss == run.epochs.back().evaluation.loss);
  CHECK(network.epochs() == 2);
  const std::vector<std::vector<float>> trained = weights_of(network);
  CHECK(trained != first);
  CHECK(trained == weights_of(Network::load(run.run / "last.h5")));
  CHECK(network.evaluate(digits()).loss == run.epochs.back().evaluation.loss);

  SECTION("and can be begun again with the same bits") {
    const Network again = small_network(more);
    CHECK(weights_of(again) == first);
  }
  SECTION("and can be saved and loaded") {
    network.save(folder.path() / "n.h5");
    const Network loaded = Network::load(folder.path() / "n.h5");
    CHECK(weights_of(loaded) == trained);
    CHECK(loaded.epochs() == 2);
    network.save(folder.path() / "n.safetensors");
    Network fresh = small_network(more);
    fresh.read_file(folder.path() / "n.safetensors");
    CHECK(weights_of(fresh) == trained);
    CHECK(Model::load(folder.path() / "n.h5").info().fields.target().names.size() == 10);
  }
}

TEST_CASE("two trainings of an epoch give the bits of one of two epochs") {
  Network once = small_network();
  once.train(digits());
  Network twice = small_network({{"training.epochs", "1"}});
  twice.train(digits());
  const RunResult second = twice.train(digits());
  CHECK(second.epochs.front().epoch == 2);
  CHECK(weights_of(once) == weights_of(twice));
  SECTION("other data begin with an epoch of their own") {
    Dataset fewer = digits({{"data.train_limit", "70"}});
    const RunResult third = twice.train(std::move(fewer));
    CHECK(third.epochs.size() == 1);
    CHECK(twice.steps() == 14);  // 12 steps of 6 an epoch, rounded up to epochs of 2
  }
  SECTION("unless the training is forgotten") {
    twice.forget_training();
    CHECK(twice.steps() == 0);
    CHECK(weights_of(once) == weights_of(twice));
    CHECK(twice.train(digits()).epochs.front().epoch == 1);
  }
  SECTION("another optimizer begins anew, with the weights") {
    twice.set(experiment_of(std::string(kSmall) + kOfArrays, {{"optimizer", "{type: sgd, learning_rate: 0.1}"}}),
              twice.info());
    CHECK(twice.steps() == 0);
    CHECK(weights_of(once) == weights_of(twice));
  }
}

TEST_CASE("batches that the program brings train as the same rows of an array do") {
  const Dataset data = digits();
  Network expected = small_network({{"data.shuffle", "false"}, {"data.drop_last", "false"}});
  const RunResult from_arrays = expected.train(digits());
  Network network = small_network();
  const auto source = std::make_shared<InOrder>(data.train, std::vector<int64_t>{32, 32, 32, 32, 32, 32, 8});
  const RunResult streamed = network.train(with_batches(data, source, 7));
  CHECK(source->asked() == 14);
  CHECK(weights_of(network) == weights_of(expected));
  CHECK(streamed.final_evaluation.loss == from_arrays.final_evaluation.loss);

  SECTION("each of its own size") {
    const auto varied = std::make_shared<InOrder>(data.train, std::vector<int64_t>{5, 32, 1, 20});
    CHECK(network.train(with_batches(data, varied, 4)).epochs.size() == 2);
    CHECK(varied->asked() == 8);
  }
  SECTION("what they throw ends the training, and the weights are those of the last epoch") {
    const std::vector<std::vector<float>> before = weights_of(network);
    const auto broken = std::make_shared<InOrder>(data.train, std::vector<int64_t>{32, 32});
    broken->fails_at = 1;
    CHECK_THROWS_WITH(network.train(with_batches(data, broken, 2)), Contains("the generator broke"));
    CHECK(weights_of(network) == before);
  }
  SECTION("a batch without rows is told") {
    const auto empty = std::make_shared<InOrder>(data.train, std::vector<int64_t>{32, 0});
    CHECK_THROWS_WITH(network.train(with_batches(data, empty, 2)), Contains("step 16 has 0 rows; expected 1 to 32"));
  }
}

TEST_CASE("a training without rows to evaluate tells its own loss") {
  Dataset data = digits();
  data.test = {};
  data.unwatched = true;
  Network network = small_network();
  const RunResult result = network.train(data);
  REQUIRE(result.epochs.size() == 2);
  CHECK(std::isnan(result.epochs.back().evaluation.loss));
  CHECK(result.epochs.back().evaluation.rows == 0);
  CHECK(result.epochs.back().train_loss < result.epochs.front().train_loss);
  Network watched = small_network({{"early_stopping", "{patience: 1}"}});
  CHECK_THROWS_WITH(watched.train(data), Contains("early_stopping.monitor accuracy") && Contains("train_accuracy"));
  Network reacting = small_network({{"schedule", "{type: reduce_on_plateau}"}});
  CHECK_THROWS_WITH(reacting.train(data), Contains("schedule.monitor loss") && Contains("train_loss"));
}

TEST_CASE("what a listener throws ends the training at the last checkpoint") {
  class Thrower : public TrainingListener {
   public:
    void on_epoch(const EpochReport& epoch) override {
      if (epoch.epoch == 2) throw std::runtime_error("no more");
    }
  } thrower;
  Network network = small_network({{"training.epochs", "5"}});
  CHECK_THROWS_WITH(network.train(digits(), {.listener = &thrower}), Contains("no more"));
  CHECK(network.epochs() == 2);
  Network two = small_network();
  two.train(digits());
  CHECK(weights_of(network) == weights_of(two));
}

TEST_CASE("a training ends with its best weights where it is to") {
  Network network = small_network({{"training.epochs", "6"},
                                   {"optimizer.learning_rate", "0.3"},
                                   {"early_stopping", "{patience: 2, restore_best: true}"}});
  const RunResult result = network.train(digits());
  const double best = std::ranges::max(result.epochs, {}, [](const EpochReport& epoch) {
                        return epoch.evaluation.scores.value("accuracy");
                      }).evaluation.scores.value("accuracy");
  CHECK(network.evaluate(digits()).scores.value("accuracy") == best);
}

TEST_CASE("samples in the program's memory are taken from there, and stay as they are") {
  const Dataset data = digits();
  const Dataset copy = data;
  Dataset lent = data;
  lent.train.values.clear();
  lent.train.lent = std::shared_ptr<const std::byte>(data.train.values.data(), [](const std::byte*) {});
  const Overrides more =
      GENERATE(Overrides{}, Overrides{{"data.residency", "stream"}}, Overrides{{"data.validation_fraction", "0.25"}});
  Network of_copy = small_network(more), of_lent = small_network(more);
  const RunResult expected = of_copy.train(data);
  const RunResult found = of_lent.train(lent);
  CHECK(weights_of(of_copy) == weights_of(of_lent));
  CHECK(found.final_evaluation.loss == expected.final_evaluation.loss);
  CHECK(data.train.values == copy.train.values);
}

TEST_CASE("a softmax at the end is that of cross_entropy, a sigmoid that of binary_cross_entropy") {
  const std::string plain = kSmall;
  const std::size_t at = plain.find("]}\n");
  const bool binary = GENERATE(false, true);
  const std::string precision = GENERATE("fp32", "bf16");
  const std::string layer = binary ? "sigmoid" : GENERATE("softmax", "log_softmax");
  const std::string ending = plain.substr(0, at) + ", " + layer + plain.substr(at);
  const std::string loss = binary ? "loss: binary_cross_entropy\n" : "";
  const Overrides more{{"training.precision", precision}};
  Network of_logits = network_for(digits(), experiment_of(plain + kOfArrays + loss, more));
  Network of_probabilities = network_for(digits(), experiment_of(ending + kOfArrays + loss, more));
  of_logits.train(digits());
  of_probabilities.train(digits());
  CHECK(weights_of(of_logits) == weights_of(of_probabilities));
  const EvalReport a = of_logits.evaluate(digits()), b = of_probabilities.evaluate(digits());
  CHECK(a.loss == b.loss);
  CHECK(a.scores.value("accuracy") == b.scores.value("accuracy"));

  const Model one = of_logits.model(), other = of_probabilities.model();
  const Samples samples = Samples(one, 4).draw(7);
  Answers expected(one, 1, 4), found(other, 1, 4), last(other, 0, 4);
  one.run(samples.view(), expected.view());
  other.run(samples.view(), found.view());
  other.run(samples.view(), last.view());
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    // A last layer in half precision is rounded.
    CHECK(found.values[i] == Approx(expected.values[i]).epsilon(precision == "bf16" ? 0.01 : 1e-5));
    if (layer != "log_softmax") CHECK(last.values[i] == found.values[i]);
  }
}

TEST_CASE("a network runs before any training, whatever its last layer gives") {
  const std::string text =
      "model: {layers: [conv2d: {filters: 3, kernel: 3, padding: 1, name: conv}]}\ndata: {dataset: arrays}\n";
  ModelInfo info;
  info.fields.input().type = {DType::f32, {2, 5, 6}};
  Network network(experiment_of(text), info);
  CHECK(network.info().fields.target().names.empty());
  REQUIRE(network.tensors().size() == 2);
  CHECK(network.tensors()[0].name == "conv.weight");
  CHECK(network.tensors()[0].shape == Shape{3, 2, 3, 3});
  CHECK(network.tensors()[0].trainable);
  const std::vector<float> zeros(3 * 2 * 3 * 3);
  network.write("conv.weight", zeros);
  network.write("conv.bias", std::vector<float>{1, 2, 3});
  const Model model = network.model({.max_batch = 2});
  REQUIRE(model.outputs().size() == 1);
  CHECK(model.outputs()[0].row == TensorType{DType::f32, {3, 5, 6}});
  const Samples samples(model, 2);
  const std::vector<float> answers = logits_of(model, samples);
  CHECK(answers[0] == 1);
  CHECK(answers[30] == 2);
  CHECK(answers.back() == 3);
  CHECK_THROWS_WITH(model.predict(samples.view()), Contains("no names"));
  CHECK_THROWS_WITH(network.write("conv.bias", std::vector<float>{1}), Contains("f32[3]") && Contains("1 values"));
  CHECK_THROWS_WITH(network.read("conv.wieght"), Contains("did you mean 'conv.weight'"));
  // The model that was made before goes on as it was.
  network.write("conv.bias", std::vector<float>{9, 9, 9});
  CHECK(logits_of(model, samples)[0] == 1);
}

TEST_CASE("settings that are refused change nothing of a network") {
  Network network = small_network();
  network.train(digits());
  const auto before = weights_of(network);
  const auto refused = experiment_of(std::string(kSmall) + kOfArrays, {{"training.freeze", "['*']"}});
  CHECK_THROWS_WITH(network.set(refused, network.info()), Contains("freeze"));
  CHECK(weights_of(network) == before);
  network.train(digits());
  CHECK(network.epochs() == 4);

  Dataset untested = digits();
  untested.test = {};
  CHECK_THROWS_WITH(network.evaluate(std::move(untested)), Contains("no test rows"));
}

TEST_CASE("a run on arrays is resumed with them, and not without") {
  const TemporaryFolder folder;
  Experiment experiment = experiment_of(std::string(kSmall) + kOfArrays);
  experiment.runs = folder.path();
  const RunResult straight = train(experiment, digits(), {.run_folder = folder.path() / "a"});
  StopAfter stop(2);
  const RunResult part =
      train(experiment, digits(), {.listener = &stop, .stop = &stop.stop, .run_folder = folder.path() / "b"});
  CHECK_THROWS_WITH(resume(part.run, std::vector<Override>{}),
                    Contains("memory of the program that trained") && Contains("resume(run, {}, dataset)"));
  const RunResult rest = resume(part.run, {}, digits());
  CHECK(same_state(straight.run / "last.h5", rest.run / "last.h5"));
  CHECK_THROWS_WITH(resume(part.run, {}, digits({{"data.train_limit", "100"}})), Contains("had 200 rows"));
  CHECK_THROWS_WITH(evaluate({.path = part.run, .overrides = {}}), Contains("no file has it"));
}

TEST_CASE("arrays that can't be learnt are refused") {
  const auto refused = [](const std::function<void(Dataset&)>& spoil, const Overrides& more = {}) {
    Dataset data = digits();
    spoil(data);
    Network network = small_network(more);
    return message_of([&] { network.train(std::move(data)); });
  };
  const auto has = [](const std::string& text) { return Contains(text); };
  CHECK_THAT(refused([](Dataset& d) { change_labels(d, [](auto& all) { all[3] = 10; }); }),
             has("label of row 3") && has("labels are 0 to 9"));
  CHECK_THAT(refused([](Dataset& d) { change_labels(d, [](auto& all) { all[0] = -1; }); }), has("is -1"));
  CHECK_THAT(refused([](Dataset& d) { change_labels(d, [](auto& all) { all.pop_back(); }); }),
             has("200 samples and 199 labels"));
  CHECK_THAT(refused([](Dataset& d) { d.train.values.pop_back(); }), has("bytes"));
  CHECK_THAT(refused([](Dataset& d) { d.train.samples.shape = {200, 28, 28}; }), has("takes samples of u8[1, 28, 28]"));
  CHECK_THAT(refused([](Dataset& d) { d.train.samples.shape[0] = 0; }), has("empty"));
  CHECK_THAT(refused([](Dataset& d) { d.fields.target().names.pop_back(); }), has("10 outputs"));
  CHECK_THAT(refused([](Dataset& d) { d.test = {}; }), has("no test samples"));
  CHECK_THAT(refused([](Dataset&) {}, {{"data.batch_size", "300"}}), has("larger than the 200 training samples"));
}
