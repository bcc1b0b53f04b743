// Changes to the gradients before the update, the recorded norm of the gradients, and the average of the parameters.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "catch.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using training::Session;

namespace {

constexpr double kRate = 0.5;

Experiment experiment_with(const std::string& optimizer, const std::string& training = "",
                           const std::filesystem::path& runs = "runs", const std::string& data = "") {
  return parse_experiment(
      "model: {layers: [flatten, linear: {name: hidden, units: 12, activation: tanh}, linear: {name: output, units: "
      "10}]}\n"
      "data: {dataset: digits, synthetic_train: 128, synthetic_test: 64, batch_size: 32" +
          data + "}\nbackend: cpu\nruns: " + runs.string() + "\noptimizer: {learning_rate: 0.5" + optimizer +
          "}\ntraining: {epochs: 2" + training + "}\n",
      "bounds.yaml");
}

struct Named {
  std::string name;
  std::vector<float> values;
};

std::vector<Named> floats(const std::vector<storage::StoredTensor>& tensors) {
  std::vector<Named> result;
  for (const storage::StoredTensor& tensor : tensors) {
    Named named{tensor.name, std::vector<float>(tensor.values.size() / sizeof(float))};
    std::memcpy(named.values.data(), tensor.values.data(), tensor.values.size());
    result.push_back(std::move(named));
  }
  return result;
}

std::vector<Named> named_parameters(Session& session) {
  storage::Checkpoint state;
  session.save_state(state);
  return floats(state.parameters);
}

std::vector<Named> average_of(Session& session) {
  storage::Checkpoint state;
  session.save_state(state);
  return floats(state.optimizer.at("ema"));
}

// What plain SGD's first step says of the gradients: how far each parameter went, by the learning rate.
struct FirstStep {
  explicit FirstStep(const Experiment& experiment) {
    Session session = Session::open(experiment);
    before = named_parameters(session);
    session.train_step();
    norm = session.gradient_norms(0, 1);
    gradients = named_parameters(session);
    for (std::size_t i = 0; i < before.size(); ++i) {
      for (std::size_t j = 0; j < before[i].values.size(); ++j) {
        gradients[i].values[j] = static_cast<float>(
            (static_cast<double>(before[i].values[j]) - static_cast<double>(gradients[i].values[j])) / kRate);
      }
    }
  }
  double length() const {
    double sum = 0;
    for (const Named& g : gradients) {
      for (const float x : g.values) sum += static_cast<double>(x) * static_cast<double>(x);
    }
    return std::sqrt(sum);
  }
  double largest() const {
    double result = 0;
    for (const Named& g : gradients) {
      for (const float x : g.values) result = std::max(result, std::abs(static_cast<double>(x)));
    }
    return result;
  }

  std::vector<Named> before, gradients;
  std::vector<float> norm;
};

}  // namespace

TEST_CASE("clip_norm shrinks all gradients together, and only where they are longer") {
  const FirstStep plain(experiment_with(""));
  CHECK(plain.norm.empty());
  const double length = plain.length();
  REQUIRE(length > 0.1);

  const FirstStep clipped(experiment_with(", clip_norm: 0.01"));
  REQUIRE(clipped.norm.size() == 1);
  CHECK(clipped.norm[0] == Approx(length).epsilon(1e-4));  // as it was before
  CHECK(clipped.length() == Approx(0.01).epsilon(1e-3));
  const double factor = 0.01 / (length + 1e-6);  // PyTorch's clip_grad_norm_
  for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
    INFO(plain.gradients[i].name);
    for (std::size_t j = 0; j < plain.gradients[i].values.size(); ++j) {
      const double expected = factor * static_cast<double>(plain.gradients[i].values[j]);
      if (std::abs(static_cast<double>(clipped.gradients[i].values[j]) - expected) > 1e-6) {
        FAIL("element " << j << " is " << clipped.gradients[i].values[j] << ", expected " << expected);
      }
    }
  }
  const FirstStep loose(experiment_with(", clip_norm: 1000"));
  for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
    CHECK(loose.gradients[i].values == plain.gradients[i].values);
  }
}

TEST_CASE("clip_value bounds each element") {
  const FirstStep plain(experiment_with(""));
  const double bound = plain.largest() / 4;
  const FirstStep clipped(experiment_with(", clip_value: " + std::to_string(bound)));
  CHECK(clipped.largest() == Approx(bound).epsilon(1e-3));
  for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
    for (std::size_t j = 0; j < plain.gradients[i].values.size(); ++j) {
      const double expected = std::clamp(static_cast<double>(plain.gradients[i].values[j]), -bound, bound);
      if (std::abs(static_cast<double>(clipped.gradients[i].values[j]) - expected) > 2e-6) {
        FAIL(plain.gradients[i].name << " " << j << ": " << clipped.gradients[i].values[j] << ", expected "
                                     << expected);
      }
    }
  }
}

TEST_CASE("l1 pulls weights towards 0 by their signs, biases not") {
  const FirstStep plain(experiment_with(""));
  const FirstStep pulled(experiment_with(", l1: 0.125"));
  REQUIRE(pulled.gradients.size() == 4);
  for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
    const bool weight = plain.before[i].name.ends_with(".weight");
    INFO(plain.before[i].name);
    for (std::size_t j = 0; j < plain.gradients[i].values.size(); ++j) {
      const float w = plain.before[i].values[j];
      const double sign = !weight || w == 0 ? 0.0 : w > 0 ? 1.0 : -1.0;
      const double difference = static_cast<double>(pulled.gradients[i].values[j]) - plain.gradients[i].values[j];
      if (std::abs(difference - 0.125 * sign) > 2e-6) FAIL("element " << j << " is off by " << difference);
    }
  }
}

TEST_CASE("the norm of the gradients is that of what the update takes, frozen parameters left out") {
  const FirstStep all(experiment_with("", ", check_gradients: true"));
  CHECK(all.norm.at(0) == Approx(all.length()).epsilon(1e-4));
  const FirstStep part(experiment_with("", ", check_gradients: true, freeze: 'hidden.*'"));
  CHECK(part.norm.at(0) == Approx(part.length()).epsilon(1e-4));
  CHECK(part.norm.at(0) < all.norm.at(0));
}

TEST_CASE("gradients that are too long for a number end the run at their step") {
  const TemporaryFolder folder;
  // Inputs of up to 3e30, and a loss of 1e8 times its size, about 1e38: the gradients are some ten times as long.
  const Experiment experiment = parse_experiment(
      "model: {layers: [flatten, linear: {name: output, units: 10}]}\n"
      "data: {dataset: digits, synthetic_train: 128, synthetic_test: 64, batch_size: 32, mean: 0, stddev: 3.3e-31}\n"
      "loss: {class_weights: [1e8, 1e8, 1e8, 1e8, 1e8, 1e8, 1e8, 1e8, 1e8, 1e8]}\n"
      "backend: cpu\nruns: " +
          folder.path().string() + "\ntraining: {epochs: 2, check_gradients: true}\n",
      "long.yaml");
  try {
    train(experiment);
    FAIL("the run went on");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::diverged);
    CHECK_THAT(std::string(error.what()), Contains("the norm of the gradients became inf at step 1 (epoch 1)"));
    CHECK_THAT(std::string(error.what()), Contains("NORM 'gradient_norm'"));
  }
}

TEST_CASE("the norm is recorded with the steps") {
  const TemporaryFolder folder;
  class Listener : public TrainingListener {
   public:
    void on_step(const StepReport& report) override { seen = seen || report.gradient_norm.has_value(); }
    bool seen = false;
  } listener;
  const RunResult run = train(experiment_with(", clip_norm: 0.5", ", log_every_steps: 1", folder.path()),
                              {.listener = &listener, .stop = nullptr, .run_folder = {}});
  std::ifstream file(run.run / "metrics.jsonl");
  std::size_t with = 0;
  for (std::string line; std::getline(file, line);) with += line.find("\"gradient_norm\":") == line.npos ? 0 : 1;
  CHECK(with >= 3);
}

TEST_CASE("ema is the running mean of the parameters, and what is evaluated") {
  const TemporaryFolder folder;
  Session session = Session::open(experiment_with("", ", ema: 0.75, freeze: hidden.bias", folder.path()));
  std::vector<Named> expected = named_parameters(session);
  for (int step = 0; step < 3; ++step) {
    session.train_step();
    const std::vector<Named> now = named_parameters(session);
    for (std::size_t i = 0; i < now.size(); ++i) {
      for (std::size_t j = 0; j < now[i].values.size(); ++j) {
        expected[i].values[j] = 0.75F * expected[i].values[j] + 0.25F * now[i].values[j];
      }
    }
  }
  const std::vector<Named> average = average_of(session);
  const std::vector<Named> now = named_parameters(session);
  for (std::size_t i = 0; i < average.size(); ++i) {
    INFO(average[i].name);
    float off = 0;
    for (std::size_t j = 0; j < average[i].values.size(); ++j) {
      off = std::max(off, std::abs(average[i].values[j] - expected[i].values[j]));
    }
    CHECK(off < 1e-6F);
    CHECK((average[i].values == now[i].values) == (average[i].name == "hidden.bias"));
  }

  // A session whose parameters are the average gives the same evaluation.
  storage::Checkpoint state;
  session.save_state(state);
  storage::Checkpoint averaged;
  averaged.parameters = state.optimizer.at("ema");
  Session other = Session::open(experiment_with("", "", folder.path()));
  other.restore_parameters(averaged);
  CHECK(session.evaluate().loss == other.evaluate().loss);
  averaged.parameters = state.parameters;
  other.restore_parameters(averaged);
  CHECK(session.evaluate().loss != other.evaluate().loss);
  // One that wants an average does not take a checkpoint without.
  CHECK_THROWS_WITH(session.restore_parameters(averaged), Contains("training.ema"));
}

TEST_CASE("a training with an average and bounds resumes to the straight run's bits") {
  const TemporaryFolder folder;
  const std::string optimizer = ", momentum: 0.9, clip_norm: 0.5, clip_value: 0.1, l1: 1e-4";
  const auto with = [&](const std::string& epochs) {
    Experiment experiment = experiment_with(optimizer, ", ema: 0.9", folder.path());
    experiment.epochs = std::stoll(epochs);
    return experiment;
  };
  const RunResult straight = train(with("2"));
  const RunResult first = train(with("1"));
  const RunResult part = resume(first.run, {{"training.epochs", "2"}});
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
  CHECK(part.final_evaluation.loss == straight.final_evaluation.loss);
  // `gpunn eval` goes by the average too.
  CHECK(evaluate({.path = part.run / "last.h5", .overrides = {}}).loss == straight.final_evaluation.loss);
}
