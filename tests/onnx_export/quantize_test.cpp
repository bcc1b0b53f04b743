// Models in eight bits: from calibration to the ONNX file, and back.
#include <gpunn/engine.hpp>
#include <gpunn/error.hpp>
#include <gpunn/model.hpp>
#include <gpunn/quantization.hpp>
#include <gpunn/training.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>

#include "catch.hpp"
#include "export/measured_loss.hpp"
#include "inference/eight_bits/calibration.hpp"
#include "temporary_folder.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

// A training of a network with batch norms, a residual block with and one without a
// convolution in its shortcut, and a pooling between convolutions.
std::filesystem::path trained_in(const TemporaryFolder& folder) {
  const Experiment experiment = parse_experiment(
      "name: residual\nmodel: {layers: ["
      "conv2d: {filters: 8, kernel: 3, padding: 1, bias: false}, batch_norm, relu: {name: first}, "
      "max_pool: {name: pool, window: 2}, "
      "conv2d: {filters: 8, kernel: 3, padding: 1, bias: false}, batch_norm, relu, "
      "conv2d: {filters: 8, kernel: 3, padding: 1, bias: false}, batch_norm: {name: branch}, "
      "add: {from: [branch, pool]}, relu: {name: block1}, "
      "conv2d: {filters: 16, kernel: 3, padding: 1, stride: 2, bias: false}, batch_norm: {name: wide}, "
      "conv2d: {filters: 16, kernel: 1, stride: 2, bias: false, from: block1}, batch_norm: {name: shortcut}, "
      "add: {from: [wide, shortcut]}, relu, flatten, linear: {units: 10}]}\n"
      "data: {dataset: digits, synthetic_train: 2000, synthetic_test: 1000, batch_size: 50}\n"
      "optimizer: {type: adam, learning_rate: 0.003}\ntraining: {epochs: 3}\nbackend: cpu\nruns: " +
          folder.path().string() + "\n",
      "residual.yaml");
  return train(experiment).run;
}

std::vector<float> logits_of(const Model& model, int64_t rows) {
  const Shape shape = batch_shape(model.inputs().front().row.shape, rows);
  const ModelTensor& output = model.outputs().front();
  const Shape answer = batch_shape(output.row.shape, rows);
  std::vector<uint8_t> images(static_cast<std::size_t>(element_count(shape)));
  std::mt19937 random(3);
  for (std::size_t i = 0; i < images.size(); ++i) {
    images[i] = i / 7 % 3 == 0 ? static_cast<uint8_t>(random() & 0xFFU) : uint8_t{0};
  }
  std::vector<float> logits(static_cast<std::size_t>(element_count(answer)));
  model.run(ArrayView{.name = {}, .dtype = DType::u8, .shape = shape, .data = images.data()},
            MutableArrayView{.name = output.name, .dtype = DType::f32, .shape = answer, .data = logits.data()});
  return logits;
}

double apart(const std::vector<float>& found, const std::vector<float>& expected) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double d = static_cast<double>(found[i]) - static_cast<double>(expected[i]);
    error += d * d;
    size += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return std::sqrt(error / size);
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error)";
}

}  // namespace

TEST_CASE("a model in eight bits answers as the model does, from its ONNX file") {
  const TemporaryFolder folder;
  const std::filesystem::path run = trained_in(folder);
  const ModelOptions options{.backend = "cpu", .max_batch = 16, .image_size = {}};
  const Model exact = Model::load(run, options);
  for (const auto& [method, name] : {std::pair{CalibrationMethod::maximum, "maximum"},
                                     {CalibrationMethod::entropy, "entropy"},
                                     {CalibrationMethod::percentile, "percentile"}}) {
    CAPTURE(name);
    const auto file = folder / (std::string(name) + ".onnx");
    const QuantizeReport report = quantize({run, {}}, file, {.method = method, .images = 128, .most_lost = 1});
    CHECK(report.convolutions.size() == 5);
    CHECK(report.dense.size() == 1);
    CHECK(report.images == 128);
    REQUIRE(report.accuracy_before);
    CHECK(*report.accuracy_before > 0.9);
    CHECK(*report.accuracy_after > *report.accuracy_before - 0.01);
    for (const QuantizedLayer& layer : report.layers) {
      CAPTURE(layer.name);
      CHECK(layer.scale > 0);
      CHECK(layer.decibels > 15);
    }
    const Model stored = Model::load(file, options);
    CHECK(apart(logits_of(stored, 16), logits_of(exact, 16)) < 0.1);
    // The same numbers, computed in f32 between the roundings: an answer may be on the other side of a tie.
    ModelOptions in_f32 = options;
    in_f32.without_passes = {"eight_bits"};
    CHECK(apart(logits_of(stored, 16), logits_of(Model::load(file, in_f32), 16)) < 0.02);
  }
  const PlanReport plan = plan_inference(folder / "maximum.onnx", 4, options);
  CHECK(std::ranges::count(plan.ops, "QUANTIZED_CONV2D", &PlannedOp::op) == 5);
  CHECK(std::ranges::count(plan.ops, "CONV2D", &PlannedOp::op) == 0);
  CHECK(std::ranges::count(plan.ops, "QUANTIZED_MAX_POOL2D", &PlannedOp::op) == 1);
  CHECK(std::ranges::count(plan.ops, "QUANTIZED_LINEAR", &PlannedOp::op) == 1);
  CHECK(std::ranges::count(plan.ops, "QUANTIZE_FILTER", &PlannedOp::op) == 0);  // constants
  ModelOptions in_bf16 = options;
  in_bf16.precision = Precision::bf16;  // of what is not in eight bits
  const PlanReport half = plan_inference(folder / "maximum.onnx", 4, in_bf16);
  CHECK(std::ranges::count(half.ops, "QUANTIZED_CONV2D", &PlannedOp::op) == 5);
  CHECK(apart(logits_of(Model::load(folder / "maximum.onnx", in_bf16), 16), logits_of(exact, 16)) < 0.15);
  CHECK(message_of([&] { quantize({folder / "maximum.onnx", {}}, folder / "twice.onnx"); }) != "(no error)");
}

TEST_CASE("training further keeps weights in eight bits, by the scales that the file has") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "int8.onnx";
  quantize({trained_in(folder), {}}, file, {.method = CalibrationMethod::maximum, .images = 64, .most_lost = 2});
  const auto trained = [&](const std::string& parameters) {
    return train(parse_experiment(
                     "name: further\nmodel: {file: " + file.string() + parameters +
                         "}\ndata: {dataset: digits, synthetic_train: 400, synthetic_test: 100, batch_size: 50}\n"
                         "optimizer: {type: sgd, learning_rate: 0.01}\ntraining: {epochs: 1}\nbackend: cpu\nruns: " +
                         folder.path().string() + "\n",
                     "further.yaml"))
        .run;
  };
  const ModelOptions options{.backend = "cpu", .max_batch = 16, .image_size = {}};
  ModelOptions in_f32 = options;
  in_f32.without_passes = {"eight_bits"};
  const std::filesystem::path further = trained("");
  const PlanReport plan = plan_inference(further, 4, options);
  CHECK(std::ranges::count(plan.ops, "QUANTIZED_CONV2D", &PlannedOp::op) == 5);
  CHECK(std::ranges::count(plan.ops, "QUANTIZED_LINEAR", &PlannedOp::op) == 1);
  const std::vector<float> found = logits_of(Model::load(further, options), 16);
  CHECK(apart(found, logits_of(Model::load(further, in_f32), 16)) < 0.02);
  CHECK(apart(found, logits_of(Model::load(file, options), 16)) > 1e-3);
  // Other classes have weights that no file rounds.
  const PlanReport other = plan_inference(trained(", parameters: {classes: 10}"), 4, options);
  CHECK(std::ranges::count(other.ops, "QUANTIZED_CONV2D", &PlannedOp::op) == 5);
  CHECK(std::ranges::count(other.ops, "QUANTIZED_LINEAR", &PlannedOp::op) == 0);
}

TEST_CASE("depthwise convolutions are in eight bits, and a ReLU6 whose limit is not reached is within them") {
  const TemporaryFolder folder;
  const Experiment experiment = parse_experiment(
      "name: depthwise\nmodel: {layers: [conv2d: {filters: 24, kernel: 3, stride: 2, padding: 1}, relu6, "
      "conv2d: {filters: 24, kernel: 3, padding: 1, groups: 24, bias: false}, batch_norm, relu6, "
      "conv2d: {filters: 16, kernel: 1}, relu, flatten, linear: {units: 10}]}\n"
      "data: {dataset: digits, synthetic_train: 1000, synthetic_test: 500, batch_size: 50}\n"
      "optimizer: {type: adam, learning_rate: 0.003}\ntraining: {epochs: 2}\nbackend: cpu\nruns: " +
          folder.path().string() + "\n",
      "depthwise.yaml");
  const std::filesystem::path run = train(experiment).run, file = folder / "int8.onnx";
  const QuantizeReport report =
      quantize({run, {}}, file, {.method = CalibrationMethod::maximum, .images = 64, .most_lost = 2});
  CHECK(report.convolutions.size() == 3);
  const ModelOptions options{.backend = "cpu", .max_batch = 16, .image_size = {}};
  const PlanReport plan = plan_inference(file, 4, options);
  CHECK(std::ranges::count(plan.ops, "QUANTIZED_CONV2D", &PlannedOp::op) == 3);
  CHECK(std::ranges::count(plan.ops, "CLAMP", &PlannedOp::op) == 0);
  CHECK(apart(logits_of(Model::load(file, options), 16), logits_of(Model::load(run, options), 16)) < 0.1);
}

TEST_CASE("ranges are kept in a cache, for the same model, data and options alone") {
  const TemporaryFolder folder;
  const std::filesystem::path run = trained_in(folder);
  QuantizeOptions options{.method = CalibrationMethod::percentile, .images = 64, .most_lost = 5};
  options.cache = folder / "ranges.json";
  const QuantizeReport first = quantize({run, {}}, folder / "first.onnx", options);
  const QuantizeReport second = quantize({run, {}}, folder / "second.onnx", options);
  CHECK_FALSE(first.from_cache);
  CHECK(second.from_cache);
  REQUIRE(first.layers.size() == second.layers.size());
  for (std::size_t i = 0; i < first.layers.size(); ++i) CHECK(first.layers[i].scale == second.layers[i].scale);
  options.percentile = 90;
  options.most_lost = 100;
  CHECK_FALSE(quantize({run, {}}, folder / "third.onnx", options).from_cache);
}

TEST_CASE("what loses more accuracy than it may is not written") {
  const TemporaryFolder folder;
  const std::filesystem::path run = trained_in(folder);
  const std::string message = message_of([&] {
    quantize({run, {}}, folder / "lossy.onnx", {.images = 32, .most_lost = -100});
  });
  CHECK(message.find("nothing is written") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "lossy.onnx"));
  CHECK_FALSE(std::filesystem::exists(folder / "lossy.quantizing.onnx"));
  CHECK(message_of([&] {
          quantize({run, {}}, folder / "few.onnx", {.images = 1});
        }).find("8 images at least") != std::string::npos);
  CHECK(message_of([&] {
          quantize({run, {}}, folder / "part.onnx", {.part = "rest"});
        }).find("train, validation") != std::string::npos);
}

TEST_CASE("a range is as wide as its method says") {
  std::mt19937 random(5);
  std::normal_distribution<float> draw;
  std::vector<float> values(200'000);
  for (float& value : values) value = draw(random);
  values.back() = 40;  // far from all others
  const auto range_of = [](const std::vector<float>& seen) {
    inference::TensorRange range;
    range.see_extremes(seen);
    range.see(seen);
    return range;
  };
  const inference::TensorRange range = range_of(values);
  const auto most = [](const inference::Quantizer& q) { return static_cast<double>(q.scale) * 127; };
  CHECK(most(range.quantizer(inference::RangeMethod::maximum, 99.99)) == Approx(40));
  CHECK(range.quantizer(inference::RangeMethod::maximum, 99.99).zero_point == 128);
  // 99 % of a standard normal distribution are within 2.576.
  CHECK(most(range.quantizer(inference::RangeMethod::percentile, 99)) == Approx(2.576).margin(0.05));
  const double entropy = most(range.quantizer(inference::RangeMethod::entropy, 99.99));
  CHECK(entropy > 2);
  CHECK(entropy < 8);

  // Chance alone does not cut the tail of a few numbers: without a correction it leaves four fifths of the range.
  std::exponential_distribution<float> tail;
  constexpr int kDraws = 8;
  double kept = 0;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<float> few(2400);
    for (float& value : few) value = tail(random);
    const inference::Quantizer q = range_of(few).quantizer(inference::RangeMethod::entropy, 99.99);
    kept += static_cast<double>(q.scale) * 255 / static_cast<double>(*std::ranges::max_element(few)) / kDraws;
  }
  CHECK(kept > 0.92);

  for (float& value : values) value = std::max(value, 0.0F);
  const inference::Quantizer positive = range_of(values).quantizer(inference::RangeMethod::maximum, 99.99);
  CHECK(positive.zero_point == 0);
  CHECK(static_cast<double>(positive.scale) * 255 == Approx(40));
  CHECK(range_of({0, 0}).quantizer(inference::RangeMethod::entropy, 99).scale == 1);
}

TEST_CASE("a loss is in the direction and the unit of its metric, and an undefined figure is the worst") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  const Metric accuracy{"accuracy", "accuracy", true, true}, psnr{"psnr", "PSNR", true, false},
      rmse{"rmse", "RMSE", false, false};
  CHECK(interchange::lost(accuracy, 0.9, 0.85) == Approx(5));
  CHECK(interchange::lost(accuracy, 0.9, 0.95) == Approx(-5));
  CHECK(interchange::lost(psnr, 40, 39) == Approx(2.5));
  CHECK(interchange::lost(rmse, 2, 3) == Approx(50));
  CHECK(interchange::lost(rmse, 2, 1) == Approx(-50));
  CHECK(interchange::lost({"r2", "R²", true, false}, -0.5, -1) == Approx(100));
  CHECK(interchange::lost(psnr, infinity, infinity) == 0);
  CHECK(interchange::lost(psnr, infinity, 90) == infinity);
  CHECK(interchange::lost(rmse, 0, 0) == 0);
  CHECK(interchange::lost(rmse, 0, 1e-9) == infinity);
  CHECK(interchange::lost(accuracy, 0.9, nan) == infinity);
}
