// Networks that learn by what a frozen network sees: styles, and super-resolution by features.
#include <gpunn/error.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/stylize.hpp>
#include <gpunn/training.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "catch.hpp"
#include "data/images/image.hpp"
#include "session/session.hpp"
#include "temporary_folder.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

const std::string kNet =
    "model: {layers: [pad: {padding: 1, mode: reflect}, conv2d: {name: c1, filters: 8, kernel: 3, stride: 2}, "
    "conditional_instance_norm: {styles: STYLES}, relu, upsample: {factor: 2}, pad: {padding: 1, mode: reflect}, "
    "conv2d: {name: c2, filters: 3, kernel: 3}, sigmoid]}\n";

std::string painter(const std::string& loss, int styles = 1, const std::string& data = "") {
  std::string net = kNet;
  net.replace(net.find("STYLES"), 6, std::to_string(styles));
  return "task: style_transfer\n" + net +
         "data: {dataset: drawn_photographs, scale: 1, colours: rgb, patch_size: 32, patches: 64, batch_size: 4, "
         "synthetic_train: 4, synthetic_test: 2" +
         data + "}\nloss: {type: style, features: drawn" + loss +
         "}\noptimizer: {type: adam, learning_rate: 0.01}\nbackend: cpu\n";
}

std::string stripes(int64_t pace) {
  std::string ppm = "P6 40 40 255\n";
  for (int64_t i = 0; i < 40 * 40 * 3; ++i) ppm += static_cast<char>(i / pace % 2 == 0 ? 230 : 20);
  return ppm;
}

double mean_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("a network learns a style that the program draws") {
  training::Session session = training::Session::open(parse_experiment(painter(", variation_weight: 1"), "style.yaml"));
  session.train_steps(60);
  const std::vector<float> losses = session.losses(0, 60);
  CHECK(mean_of({losses.end() - 5, losses.end()}) < 0.6 * mean_of({losses.begin(), losses.begin() + 5}));
  const EvalReport report = session.evaluate();
  CHECK(report.rows == 2);
  CHECK(report.scores.value("total_loss") == Approx(report.loss));
}

TEST_CASE("a network of several styles paints each of them, from a run folder") {
  const TemporaryFolder folder;
  const std::string styles = ", styles: [" + folder.write("a.ppm", stripes(3 * 40)).string() + ", " +
                             folder.write("b.ppm", stripes(9)).string() + "], style_size: 32, content_weight: 0";
  const Experiment experiment = parse_experiment(
      painter(styles, 2) + "training: {epochs: 2}\nruns: " + (folder / "runs").string() + "\n", "two.yaml");
  const RunResult run = train(experiment);
  PaintRequest request;
  request.inputs = {folder.write("image.ppm", stripes(7))};
  request.to = folder / "painted.png";
  const std::vector<PaintedImage> all = paint({run.run, {}}, request);
  REQUIRE(all.size() == 2);
  CHECK(all[1].to == folder / "painted.style1.png");
  CHECK(all[1].width == 40);
  const data::Image first = data::read_image_file(all[0].to), second = data::read_image_file(all[1].to);
  CHECK(first.values != second.values);
  request.style = 1;
  const std::vector<PaintedImage> one = paint({run.run, {}}, request);
  REQUIRE(one.size() == 1);
  CHECK(one[0].to == request.to);
  CHECK(data::read_image_file(one[0].to).values == second.values);
  request.style = 2;
  CHECK_THROWS_WITH(paint({run.run, {}}, request), Contains("paints 2 styles, counted from 0; found 2"));
  // Sides that strides do not divide.
  request.style.reset();
  request.size = 37;
  CHECK(paint({run.run, {}}, request).front().width == 37);
}

TEST_CASE("a batch that is not a multiple of the styles is refused") {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.ppm", stripes(9)).string();
  const Experiment experiment =
      parse_experiment(painter(", styles: [" + file + ", " + file + ", " + file + "]"), "three.yaml");
  training::Session session = training::Session::open(experiment);
  CHECK_THROWS_WITH(session.train_steps(1), Contains("4 rows is not a multiple of the 3 styles"));
}

TEST_CASE("super-resolution learns by features, of colours and of luma") {
  const std::string colours = GENERATE("rgb", "luma");
  const std::string channels = colours == "rgb" ? "3" : "1";
  const Experiment experiment = parse_experiment(
      "task: super_resolution\nmodel: {layers: [conv2d: {name: c, filters: 12, kernel: 3, padding: 1, activation: "
      "relu}, "
      "conv2d: {name: d, filters: " +
          std::to_string(colours == "rgb" ? 12 : 4) +
          ", kernel: 3, padding: 1}, pixel_shuffle: {factor: 2}]}\n"
          "data: {dataset: drawn_photographs, scale: 2, colours: " +
          colours +
          ", patch_size: 32, patches: 64, batch_size: 4, synthetic_train: 4, synthetic_test: 1}\n"
          "loss: {type: perceptual, features: drawn, content_layers: [relu1, relu2]}\n"
          "optimizer: {type: adam, learning_rate: 0.005}\nbackend: cpu\n",
      "sr.yaml");
  training::Session session = training::Session::open(experiment);
  session.train_steps(60);
  const std::vector<float> losses = session.losses(0, 60);
  CHECK(mean_of({losses.end() - 5, losses.end()}) < 0.7 * mean_of({losses.begin(), losses.begin() + 5}));
  CHECK(std::isfinite(session.evaluate().scores.value("psnr")));
}

TEST_CASE("losses of features are for tasks of images, and images that are painted keep their size") {
  const auto mistakes = [](const std::string& text) -> std::string {
    try {
      parse_experiment(text, "e.yaml");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(mistakes("model: {layers: [flatten, linear: {units: 10}]}\ndata: digits\nloss: style\n"),
             Contains("the task classification has no loss style"));
  std::string text = painter("");
  text.replace(text.find("scale: 1"), 8, "scale: 2");
  CHECK_THAT(mistakes(text), Contains("keep their size; set it to 1"));
  text = painter("");
  text.replace(text.find("colours: rgb"), 12, "colours: luma");
  CHECK_THAT(mistakes(text), Contains("set it to rgb"));
  CHECK_THAT(mistakes(painter(", pixel_weight: 1")), Contains("loss style has no 'pixel_weight'"));
  const Experiment experiment = parse_experiment(painter(", styles: [x.png], style_layers: [relu1]"), "e.yaml");
  CHECK(resolved_yaml(parse_experiment(resolved_yaml(experiment), "again")) == resolved_yaml(experiment));
  CHECK(experiment.checkpoint.monitor == "total_loss");
  // A layer that is not there is told before a device is touched.
  CHECK_THROWS_WITH(training::Session::open(parse_experiment(painter(", content_layers: [relu7]"), "e.yaml")),
                    Contains("no layer 'relu7'"));
}
