// `gpunn summary`: its counts, compared with counts by hand and with published numbers.
#include <gpunn/error.hpp>
#include <gpunn/plan.hpp>
#include <gpunn/summary.hpp>

#include "catch.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

const std::string kSummarySource = GPUNN_SOURCE_DIR;

const SummaryLayer& layer_named(const SummaryReport& report, const std::string& name) {
  for (const SummaryLayer& candidate : report.layers) {
    if (candidate.name == name) return candidate;
  }
  throw std::runtime_error("no layer " + name);
}

}  // namespace

TEST_CASE("the summary of an experiment has its layers, and the plan's totals") {
  const std::vector<Override> settings{{"backend", "cpu"}, {"data.batch_size", "50"}, {"optimizer", "adam"}};
  const std::filesystem::path file = experiment_file("lenet_digits");
  const SummaryReport report = summarize({.file = file, .overrides = settings, .input = {}});
  CHECK(report.sample == Shape{1, 28, 28});
  CHECK(report.batch_size == 50);
  const SummaryLayer conv = layer_named(report, "conv2");
  CHECK(conv.type == "conv2d");
  CHECK(conv.output == Shape{50, 16, 10, 10});
  CHECK(conv.parameters == 16 * 6 * 25 + 16);
  CHECK(conv.trainable == conv.parameters);
  CHECK(conv.forward_flops == 50.0 * 16 * 100 * (2 * 6 * 25 + 1));  // products, sums, and the bias
  CHECK(conv.step_flops > 2.9 * conv.forward_flops);                // with the gradients of data and weights
  CHECK(conv.step_flops < 3.1 * conv.forward_flops);
  CHECK(layer_named(report, "conv1").step_flops <
        2.1 * layer_named(report, "conv1").forward_flops);  // data has no gradient
  CHECK(layer_named(report, "fc1").output == Shape{50, 120});
  CHECK(report.parameters == 61706);

  double forward = 0, step = 0;
  for (const SummaryLayer& one : report.layers) {
    forward += one.forward_flops;
    step += one.step_flops;
  }
  CHECK(forward == Approx(report.forward_flops));
  CHECK(step < report.step_flops);  // the loss and the update belong to no layer
  CHECK(step > 0.9 * report.step_flops);

  CHECK(report.parameter_bytes == 4 * 61706);
  CHECK(report.gradient_bytes == 4 * 61706);
  CHECK(report.optimizer_bytes == 2 * 4 * 61706);  // adam's two states
  CHECK(report.activation_bytes > 50 * 4 * 6 * 28 * 28);
  CHECK(report.total_bytes ==
        report.parameter_bytes + report.gradient_bytes + report.optimizer_bytes + report.activation_bytes);
  const PlanReport planned = plan(load_experiment(file, settings));
  CHECK(planned.parameters == report.parameters);
  CHECK(planned.trainable == report.trainable);
}

TEST_CASE("a model by itself is summed up for a given input") {
  const auto of = [](const std::string& model, const Shape& input, const std::vector<Override>& more = {}) {
    std::vector<Override> settings{{"data.batch_size", "2"}};
    settings.insert(settings.end(), more.begin(), more.end());
    return summarize({.file = kSummarySource + "/models/" + model + ".yaml", .overrides = settings, .input = input});
  };
  const SummaryReport resnet = of("resnet18", {3, 224, 224});
  CHECK(resnet.parameters == 11689512);  // torchvision's
  CHECK(resnet.buffers == 2 * 4800);
  CHECK(layer_named(resnet, "stage2.0.shortcut.conv").output == Shape{2, 128, 28, 28});
  CHECK(layer_named(resnet, "bn1").buffers == 128);
  CHECK(resnet.forward_flops / 2 == Approx(2 * 1.814e9).epsilon(0.02));  // 1.814 G multiply-adds a sample
  CHECK(of("alexnet", {3, 224, 224}).parameters == 61100840);
  CHECK(of("mobilenet_v2", {3, 224, 224}).parameters == 3504872);
  CHECK(of("squeezenet1_1", {3, 224, 224}).parameters == 1235496);
  const SummaryReport vit = of("vit", {3, 224, 224});
  CHECK(vit.parameters == 86567656);
  CHECK(layer_named(vit, "layers.11.attention").parameters == 4 * 768 * 768 + 4 * 768);
  CHECK(vit.forward_flops / 2 == Approx(2 * 17.58e9).epsilon(0.02));  // 17.58 G multiply-adds a sample
  CHECK(of("lenet5", {1, 28, 28}, {{"model.parameters.classes", "3"}}).layers.back().output == Shape{2, 3});
  CHECK_THROWS_WITH(of("lenet5", {}), Contains("--input 3,224,224"));
  CHECK_THROWS_WITH(of("lenet5", {28, 28}), Contains("lenet5.yaml") && Contains("conv1"));
}

TEST_CASE("frozen parameters, parts of a batch and an average are counted") {
  const TemporaryFolder folder;
  const std::filesystem::path file =
      folder.write("e.yaml",
                   "model: {layers: [linear: {name: hidden, units: 8}, batch_norm: {name: bn}, linear: {name: out, "
                   "units: 2}]}\ndata: {dataset: points, batch_size: 20}\noptimizer: {type: sgd, momentum: 0.9}\n");
  const SummaryReport all = summarize({.file = file, .overrides = {}, .input = {}});
  CHECK(all.trainable == 24 + 16 + 18);
  CHECK(all.optimizer_bytes == 4 * 58);
  const SummaryReport some = summarize({.file = file,
                                        .overrides = {{"training.freeze", "['hidden.*', 'bn.*']"},
                                                      {"training.accumulate", "2"},
                                                      {"training.ema", "0.9"},
                                                      {"optimizer", "adam"}},
                                        .input = {}});
  CHECK(some.parameters == 58);
  CHECK(some.trainable == 18);
  CHECK(layer_named(some, "hidden").trainable == 0);
  CHECK(layer_named(some, "bn").buffers == 16);
  CHECK(some.samples_per_step == 40);
  CHECK(some.forward_flops == all.forward_flops);
  CHECK(layer_named(some, "hidden").step_flops ==
        2 * layer_named(some, "hidden").forward_flops);   // twice, and no gradient
  CHECK(some.optimizer_bytes == 4 * (2 * 18 + 58 + 16));  // adam, and the averages of parameters and statistics
  CHECK_THAT(some.notice, Contains("optimizer.type=adam (was sgd) drops momentum") && Contains("freeze_statistics"));
  CHECK_THROWS_WITH(summarize({.file = file, .overrides = {{"training.freeze", "hiden.*"}}, .input = {}}),
                    Contains("matches no parameter"));
  CHECK_THROWS_WITH(summarize({.file = folder / "f.yaml", .overrides = {}, .input = {}}), Contains("e.yaml"));
}
