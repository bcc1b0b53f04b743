// Super-resolution, from photographs of many sizes to the evaluation.
#include <gpunn/evaluation.hpp>

#include <cmath>
#include <cstring>

#include "catch.hpp"
#include "data/images/bicubic.hpp"
#include "session/session.hpp"
#include "tasks/super_resolution/quality.hpp"
#include "training/fixtures.hpp"
#include "training/stop_after.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

std::string patch_data_text(const std::string& more) {
  return "data: {dataset: drawn_photographs, scale: 2, patch_size: 24, patches: 160, batch_size: 16, synthetic_train: "
         "6, synthetic_test: 3" +
         more + "}\n";
}

Experiment espcn(const std::filesystem::path& runs, const Overrides& more = {}, const std::string& data = "") {
  const std::string models = (std::filesystem::path(GPUNN_SOURCE_DIR) / "models").string();
  return parse_experiment("name: espcn\ntask: super_resolution\nmodel: {file: " + models +
                              "/espcn.yaml, parameters: {scale: 2}}\n" + patch_data_text(data) +
                              "optimizer: {type: adam, learning_rate: 0.002}\ntraining: {epochs: 3}\nbackend: "
                              "cpu\nruns: " +
                              runs.string() + "\n",
                          "espcn.yaml", more);
}

// A convolution that is the identity, of images that bicubic has enlarged.
Experiment identity(const std::string& colours) {
  const std::string channels = colours == "rgb" ? "3" : "1";
  return parse_experiment("task: super_resolution\nmodel: {layers: [conv2d: {name: same, filters: " + channels +
                              ", kernel: 1, bias: false}]}\n" +
                              patch_data_text(", input: enlarged, colours: " + colours) +
                              "optimizer: {type: sgd}\nbackend: cpu\n",
                          "identity.yaml");
}

void set_identity(training::Session& session, std::size_t channels) {
  std::vector<float> weights(channels * channels, 0);
  for (std::size_t c = 0; c < channels; ++c) weights[c * channels + c] = 1;
  storage::Checkpoint checkpoint;
  session.save_state(checkpoint);
  std::memcpy(checkpoint.parameters.front().values.data(), weights.data(), weights.size() * sizeof(float));
  session.restore_parameters(checkpoint);
}

}  // namespace

TEST_CASE("a training on random patches gets better at whole images of many sizes") {
  const TemporaryFolder folder;
  const RunResult run = train(espcn(folder.path(), {{"training.epochs", "6"}}));
  REQUIRE(run.epochs.size() == 6);
  const auto psnr = [&](std::size_t epoch) { return run.epochs[epoch].evaluation.scores.value("psnr"); };
  CHECK(psnr(5) > psnr(0) + 1);
  CHECK(run.epochs.back().train_loss < run.epochs.front().train_loss);
  CHECK(run.monitor.name == "psnr");
  CHECK(run.final_evaluation.rows == 3);
  CHECK(run.final_evaluation.scores.value("ssim") > 0.5);

  const ClassEvalReport report = evaluate_classes({.path = run.run, .overrides = {}}, 2);
  CHECK(report.total.scores.value("psnr") == run.best_metric);
  CHECK(std::isfinite(report.total.scores.value("bicubic_psnr")));
  CHECK(report.outputs.size() == 3);
  CHECK(report.outputs[1].name == "drawn 1");
  REQUIRE(report.images.size() == 2);
  CHECK(report.images[0].original.size() == static_cast<std::size_t>(report.images[0].height * report.images[0].width));
}

TEST_CASE("a training on patches that is stopped and resumed gives the straight run's bits") {
  const TemporaryFolder folder;
  const Experiment experiment = espcn(folder.path(), {{"training.log_every_steps", "1"}, {"loss.type", "charbonnier"}});
  const auto [straight, part] =
      straight_and_resumed(experiment, folder.path(), 13);  // in the second epoch of ten steps
  CHECK(same_state(straight.run / "last.h5", part.run / "last.h5"));
  CHECK(same_state(straight.run / "best.h5", part.run / "best.h5"));
  CHECK(part.final_evaluation.loss == straight.final_evaluation.loss);
}

TEST_CASE("what does nothing has the figures of bicubic, of luma and of colours") {
  for (const std::string colours : {"luma", "rgb"}) {
    CAPTURE(colours);
    const Experiment experiment = identity(colours);
    training::Session session = training::Session::open(experiment);
    set_identity(session, colours == "rgb" ? 3 : 1);
    std::vector<double> found;
    double sum = 0;
    const EvalReport report = session.evaluate_rows([&](const tasks::EvaluatedRows& rows) {
      const Split& single = session.dataset().test.singles[static_cast<std::size_t>(rows.first)];
      CHECK(rows.predictions.size() == static_cast<std::size_t>(single.samples.elements()));
      sum += static_cast<double>(rows.losses.front());
    });
    CHECK(report.loss == Approx(sum / 3));
    const Dataset set = load_dataset(experiment.data);
    double psnr = 0;
    for (const Split& single : set.test.singles) {
      const Shape& shape = single.samples.shape;
      const auto planes = [&](const std::vector<std::byte>& bytes) {
        data::Planes image{shape[1], shape[2], shape[3]};
        image.values.resize(bytes.size() / sizeof(float));
        std::memcpy(image.values.data(), bytes.data(), bytes.size());
        return tasks::measured_plane(image);
      };
      const auto image = planes(single.values), original = planes(single.fields.at(kTargetField).values);
      psnr += tasks::psnr({image, original, shape[2], shape[3], 2}) / 3;
    }
    CHECK(report.scores.value("psnr") == Approx(psnr));
  }
}

TEST_CASE("images that do not stay on the device are evaluated alike") {
  const TemporaryFolder folder;
  training::Session kept = training::Session::open(espcn(folder.path()));
  training::Session brief = training::Session::open(espcn(folder.path()));
  brief.keep_singles(0);
  for (int i = 0; i < 2; ++i) {
    const EvalReport a = kept.evaluate(), b = brief.evaluate();
    CHECK(a.loss == b.loss);
    CHECK(a.scores.value("psnr") == b.scores.value("psnr"));
    kept.train_steps(5);
    brief.train_steps(5);
  }
  CHECK(kept.data_bytes() > brief.data_bytes());
}

TEST_CASE("the losses of images are what their formulas say") {
  const TemporaryFolder folder;
  const auto loss = [&](const std::string& text) {
    training::Session session = training::Session::open(espcn(folder.path(), {{"loss", text}}));
    double expected = 0, found = 0;
    session.evaluate_rows([&](const tasks::EvaluatedRows& rows) {
      const Split& single = session.dataset().test.singles[static_cast<std::size_t>(rows.first)];
      std::vector<float> target(rows.predictions.size());
      std::memcpy(target.data(), single.fields.at(kTargetField).values.data(), target.size() * sizeof(float));
      double sum = 0;
      for (std::size_t i = 0; i < target.size(); ++i) {
        const double error = static_cast<double>(rows.predictions[i]) - static_cast<double>(target[i]);
        sum += text.find("charbonnier") != std::string::npos ? std::sqrt(error * error + 0.01) : std::abs(error);
      }
      expected += sum / static_cast<double>(target.size());
      found += static_cast<double>(rows.losses.front());
    });
    CHECK(found == Approx(expected).epsilon(1e-4));
    session.train_steps(20);
    return session.losses(0, 20);
  };
  for (const std::string text : {"{type: charbonnier, epsilon: 0.1}", "{type: mean_absolute_error}"}) {
    CAPTURE(text);
    const std::vector<float> losses = loss(text);
    CHECK(losses.back() < losses.front());
  }
}

TEST_CASE("a model whose output is no such image is refused with what to do") {
  const TemporaryFolder folder;
  const Experiment wrong = espcn(folder.path(), {}, ", input: enlarged");
  CHECK_THROWS_WITH(train(wrong),
                    Contains("the task super_resolution compares an image with its target of 576 values") &&
                        Contains("one that keeps the size data.input: enlarged"));
}
