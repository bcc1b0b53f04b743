// ONNX files, made by the messages of ONNX or by `export_onnx`, as models.
#include <gpunn/engine.hpp>
#include <gpunn/error.hpp>
#include <gpunn/model.hpp>
#include <gpunn/network.hpp>
#include <gpunn/onnx_export.hpp>
#include <gpunn/summary.hpp>
#include <gpunn/training.hpp>

#include <cmath>
#include <cstring>
#include <fstream>

#include <interchange/onnx/onnx.pb.h>

#include "catch.hpp"
#include "onnx_files.hpp"
#include "runs/transfer.hpp"
#include "temporary_folder.hpp"

using namespace gpunn;
using namespace gpunn::testing;
using namespace onnx_test;

namespace {

void round_trip(const std::string& name, const Shape& sample, int64_t classes = 10) {
  CAPTURE(name);
  const TemporaryFolder folder;
  const Experiment experiment = parse_experiment("name: one\nmodel: " GPUNN_SOURCE_DIR "/models/" + name +
                                                     ".yaml\ndata: {dataset: arrays, batch_size: 4}\nbackend: cpu\n",
                                                 "one.yaml");
  ModelInfo info{.task = "classification", .fields = {}, .data = {}};
  for (int64_t i = 0; i < classes; ++i) info.fields.target().names.push_back("class " + std::to_string(i));
  info.fields.input().type = {DType::f32, sample};
  info.fields.input().mean.assign(static_cast<std::size_t>(sample[0]), 0.5);
  info.fields.input().stddev.assign(static_cast<std::size_t>(sample[0]), 2);
  Network(experiment, info).save(folder / "one.h5");
  export_onnx(folder / "one.h5", folder / "one.onnx");
  const ModelOptions options{.backend = "cpu", .threads = 1, .max_batch = 2};
  const Model before = Model::load(folder / "one.h5", options), after = Model::load(folder / "one.onnx", options);
  CHECK(after.info().fields.target().names == info.fields.target().names);
  Floats x(static_cast<std::size_t>(2 * element_count(sample)));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i) * 0.37F);
  check_close(first_output(after, x), first_output(before, x), 1e-4F);
  ModelOptions plain = options;
  for (const EnginePass& pass : engine_passes()) plain.without_passes.push_back(pass.name);
  check_close(first_output(after, x), first_output(Model::load(folder / "one.onnx", plain), x), 1e-5F);
}

}  // namespace

TEST_CASE("a model that gpunn exported comes back with its outputs, its classes and its normalisation") {
  round_trip("perceptron", {4}, 2);
  round_trip("mlp", {1, 28, 28});
  round_trip("lenet5", {1, 28, 28});
  round_trip("cnn_cifar", {3, 32, 32});
  round_trip("allconv", {3, 32, 32});
  round_trip("resnet18", {3, 32, 32}, 1000);
  round_trip("mobilenet_v2", {3, 32, 32}, 1000);
}

TEST_CASE("an imported product has its bias from Gemm, or from the sum behind MatMul") {
  for (const bool gemm : {true, false}) {
    CAPTURE(gemm);
    FileBuilder file({2});
    file.tensor("w", {2, 3}, {1, 2, 3, 4, 5, 6});
    file.tensor("b", {3}, {10, 20, 30});
    if (gemm) {
      file.node("Gemm", {"x", "w", "b"}, "y");
    } else {
      file.node("MatMul", {"x", "w"}, "product");
      file.node("Add", {"b", "product"}, "y");
    }
    check_close(outputs_of(file, {1, 1, -1, 2}), {15, 27, 39, 17, 28, 39});
  }
}

TEST_CASE("an imported product is over the last of several dimensions") {
  FileBuilder file({2, 1, 2});
  file.tensor("w", {2, 1}, {1, 10});
  file.node("MatMul", {"x", "w"}, "y");
  check_close(outputs_of(file, {1, 2, 3, 4}), {21, 43});
}

TEST_CASE("an imported convolution takes unlike paddings, an average counts what it is told to") {
  FileBuilder file({1, 2, 2});
  file.tensor("w", {1, 1, 2, 2}, {1, 10, 100, 1000});
  set(file.node("Conv", {"x", "w"}, "c"), "pads", {1, 0, 0, 1});  // a row above, a column on the right
  auto& pool = file.node("AveragePool", {"c"}, "y");
  set(pool, "kernel_shape", {2, 2});
  set(pool, "pads", {1, 1, 0, 0});
  // c = [[2100, 200], [4321, 402]] of [[1, 2], [3, 4]]
  check_close(outputs_of(file, {1, 2, 3, 4}),
              {2100, (2100 + 200) / 2.0F, (2100 + 4321) / 2.0F, (2100 + 200 + 4321 + 402) / 4.0F});
}

TEST_CASE("a shape that is computed from the batch is a flattening") {
  FileBuilder file({2, 1, 2});
  file.integers("zero", {0});
  file.integers("rest", {-1});
  file.node("Shape", {"x"}, "s");
  set(file.node("Gather", {"s", "zero"}, "n"), "axis", 0);
  set(file.node("Concat", {"n", "rest"}, "to"), "axis", 0);
  file.node("Reshape", {"x", "to"}, "flat");
  file.tensor("w", {4, 1}, {1, 2, 3, 4});
  file.node("MatMul", {"flat", "w"}, "y");
  check_close(outputs_of(file, {1, 1, 1, 1, 1, 2, 3, 4}), {10, 30});
}

TEST_CASE("constants are added and multiplied by channel, and a gate of a sigmoid is a SiLU") {
  FileBuilder file({2, 1, 1});
  file.tensor("k", {2, 1, 1}, {2, -1});
  file.tensor("one", {}, {1});
  file.node("Mul", {"x", "k"}, "scaled");
  file.node("Sub", {"one", "scaled"}, "z");
  file.node("Sigmoid", {"z"}, "gate");
  file.node("Mul", {"z", "gate"}, "y");
  const auto silu = [](float z) { return z / (1 + std::exp(-z)); };
  check_close(outputs_of(file, {3, 5}), {silu(-5), silu(6)});
}

TEST_CASE("a training starts from the weights of an ONNX file") {
  const TemporaryFolder folder;
  FileBuilder file({2});
  file.tensor("output.weight", {2, 2}, {1, 2, 3, 4});
  file.tensor("output.bias", {2}, {5, 6});
  set(file.node("Gemm", {"x", "output.weight", "output.bias"}, "y"), "transB", 1);
  const auto start = training::read_starting_tensors({.file = file.save(folder), .names = {}});
  REQUIRE(start.tensors.size() == 2);
  const auto& weight = start.tensors.at("output.weight");
  CHECK(weight.type == TensorType{DType::f32, {2, 2}});
  const Floats expected = {1, 2, 3, 4};
  REQUIRE(weight.values.size() == sizeof(float) * expected.size());
  CHECK(std::memcmp(weight.values.data(), expected.data(), weight.values.size()) == 0);
  CHECK(start.tensors.contains("output.bias"));
}

TEST_CASE("a detector from ONNX finds what its run finds, and its layers are summed up") {
  const TemporaryFolder folder;
  const std::string models = GPUNN_SOURCE_DIR "/models";
  const std::string parameters =
      "classes: 10, base: 8, blocks1: 1, blocks2: 1, blocks3: 1, blocks4: 1, width: 16, "
      "depth: 1, least_score: 0.001";
  const Experiment experiment = parse_experiment(
      "task: detection\nloss: focal\nmodel: {file: " + models + "/fcos.yaml, parameters: {" + parameters +
          "}}\ndata: {dataset: drawn_digits, image_size: 64, channels: 1, digits: 2, flip: 0, most_boxes: 8, "
          "batch_size: 16, synthetic_train: 64, synthetic_test: 16}\noptimizer: {type: adam, learning_rate: 0.01}\n"
          "training: {epochs: 2}\nbackend: cpu\nruns: " +
          folder.path().string() + "\n",
      "boxes.yaml");
  const RunResult run = train(experiment);
  export_onnx(run.run, folder / "found.onnx");
  const EvalReport before = evaluate({.path = run.run, .overrides = {}});
  const EvalReport after = evaluate({.path = folder / "found.onnx",
                                     .overrides = {{"data", "drawn_digits"},
                                                   {"data.image_size", "64"},
                                                   {"data.channels", "1"},
                                                   {"data.digits", "2"},
                                                   {"data.synthetic_test", "16"},
                                                   {"backend", "cpu"}}});
  CHECK(before.scores.value("map_50") > 0);
  CHECK(after.rows == 16);
  CHECK(after.scores.value("map_50") == Approx(before.scores.value("map_50")));
  CHECK(after.scores.value("map_coco") == Approx(before.scores.value("map_coco")));
  CHECK(std::isnan(after.loss));

  const SummaryReport called = summarize({.file = folder / "found.onnx", .overrides = {}, .input = {}});
  CHECK(called.sample == Shape{1, 64, 64});
  CHECK(called.layers.back().type == "non_maximum_suppression");
  CHECK(called.forward_flops > 0);
  CHECK(called.step_flops == 0);
  CHECK(called.trainable == 0);
  CHECK(called.activation_bytes > 0);
  CHECK_THAT(called.notice, Contains("has no loss"));
  const SummaryReport trained = summarize({.file = models + "/fcos.yaml", .overrides = {}, .input = {3, 64, 64}});
  CHECK(trained.step_flops > 2 * trained.forward_flops);
}

TEST_CASE("many values are joined by several layers") {
  FileBuilder file({1});
  std::vector<std::string> parts;
  Floats expected;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "p" + std::to_string(i);
    file.tensor("k" + name, {}, {static_cast<float>(i)});
    file.node("Mul", {"x", "k" + name}, name);
    parts.push_back(name);
    expected.push_back(2.0F * static_cast<float>(i));
  }
  set(file.node("Concat", parts, "y"), "axis", -1);
  check_close(outputs_of(file, {2}), expected);
}

TEST_CASE("operators mean what they meant in the file's version") {
  FileBuilder old({3}, 10);
  auto& clip = old.node("Clip", {"x"}, "y");
  for (const auto& [name, value] : {std::pair{"min", 0.0F}, std::pair{"max", 6.0F}}) {
    auto* attribute = clip.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::FLOAT);
    attribute->set_f(value);
  }
  check_close(outputs_of(old, {-1, 3, 9}), {0, 3, 6});
  FileBuilder now({3}, 18);
  now.tensor("low", {}, {0});
  now.tensor("high", {}, {6});
  now.node("Clip", {"x", "low", "high"}, "y");
  check_close(outputs_of(now, {-1, 3, 9}), {0, 3, 6});
  for (const int64_t opset : {5, 29}) {
    FileBuilder other({3}, opset);
    other.node("Relu", {"x"}, "y");
    CHECK_THAT(refusal(other), Contains("opsets 6 to 28"));
  }
}

TEST_CASE("all nodes that can't be imported are named at once") {
  FileBuilder file({3});
  file.node("Einsum", {"x"}, "a");
  file.node("FancyOp", {"a"}, "b").set_domain("com.example");
  file.node("Relu", {"b"}, "c");
  file.node("DeformConv", {"c"}, "y");
  const std::string text = refusal(file);
  CHECK_THAT(text, Contains("3 nodes can't be imported"));
  CHECK_THAT(text, Contains("Einsum 'a_node'"));
  CHECK_THAT(text, Contains("com.example.FancyOp 'b_node'"));
  CHECK_THAT(text, Contains("DeformConv 'y_node'"));
}

TEST_CASE("a graph that is none is refused") {
  FileBuilder cycle({3});
  cycle.node("Add", {"x", "b"}, "a");
  cycle.node("Relu", {"a"}, "b");
  cycle.node("Relu", {"a"}, "y");
  CHECK_THAT(refusal(cycle), Contains("cycle"));
  FileBuilder missing({3});
  missing.node("Add", {"x", "gone"}, "y");
  CHECK_THAT(refusal(missing), Contains("'gone'") && Contains("neither an initializer"));
  FileBuilder negative({3, -2});
  negative.node("Relu", {"x"}, "y");
  CHECK_THAT(refusal(negative), Contains("is -2"));
  FileBuilder silent({3});
  silent.tensor("w", {3, 1}, {1, 2, 3});
  silent.node("MatMul", {"x", "w"}, "gone").clear_output();
  silent.node("Relu", {"x"}, "y");
  CHECK_THAT(refusal(silent), Contains("gives nothing"));
  FileBuilder branch({3});
  auto* attribute = branch.node("If", {"x"}, "y").add_attribute();
  attribute->set_name("then_branch");
  attribute->set_type(onnx::AttributeProto::GRAPH);
  CHECK_THAT(refusal(branch), Contains("a graph of its own"));
}

TEST_CASE("what a tensor says of itself is compared with its bytes") {
  for (const Shape& shape : {Shape{3, -1}, Shape{int64_t{1} << 31, int64_t{1} << 31}, Shape{3, 1000}}) {
    FileBuilder file({3});
    file.tensor("w", shape, {1, 2, 3});
    file.node("MatMul", {"x", "w"}, "y");
    CHECK_THAT(refusal(file), Contains("the tensor 'w'"));
  }
  FileBuilder raw({3});
  auto& tensor = raw.tensor("w", {3, 1}, {});
  tensor.set_raw_data("four");
  raw.node("MatMul", {"x", "w"}, "y");
  CHECK_THAT(refusal(raw), Contains("the tensor 'w'"));
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(Model::load(folder.write("x.onnx", "no model at all")), Contains("not an ONNX model"));
  CHECK_THROWS_AS(Model::load(folder / "none.onnx"), Error);
}

TEST_CASE("tensors beside a file are of its folder") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "model");
  const Floats values = {1, 2, 3};
  const std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  folder.write("outside.bin", bytes);
  folder.write("model/w.bin", bytes);
  folder.write("model/short.bin", bytes.substr(1));
  std::filesystem::create_symlink(folder / "outside.bin", folder / "model" / "link.bin");
  const auto load = [&](const std::string& location) {
    FileBuilder file({3});
    auto& tensor = file.tensor("w", {3, 1}, {});
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    auto* entry = tensor.add_external_data();
    entry->set_key("location");
    entry->set_value(location);
    file.node("MatMul", {"x", "w"}, "y");
    std::ofstream(folder / "model" / "x.onnx", std::ios::binary) << file.model().SerializeAsString();
    return Model::load(folder / "model" / "x.onnx", {.backend = "cpu", .threads = 1, .max_batch = 1});
  };
  check_close(first_output(load("w.bin"), {1, 1, 1}), {6});
  for (const std::string& bad :
       {std::string("../outside.bin"), (folder / "outside.bin").string(), std::string("link.bin"),
        std::string("short.bin"), std::string("none.bin"), std::string()}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(load(bad), Error);
  }
}
