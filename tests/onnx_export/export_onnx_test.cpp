// Files of `export_onnx`, read back by the messages of ONNX.
#include <gpunn/error.hpp>
#include <gpunn/network.hpp>
#include <gpunn/onnx_export.hpp>

#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <interchange/onnx/onnx.pb.h>
#include <sys/resource.h>

#include "catch.hpp"
#include "temporary_folder.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

onnx::ModelProto read(const std::filesystem::path& file) {
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(content_of(file)));
  return model;
}

// The first weights of a network of a few layers, as a checkpoint.
std::filesystem::path checkpoint_in(const TemporaryFolder& folder, const std::string& task = "classification") {
  const Experiment experiment = parse_experiment(
      "name: few_layers\ntask: " + task +
          "\nmodel: {layers: [conv2d: {name: conv1, filters: 12, kernel: 2, padding: same, bias: false}, "
          "batch_norm: {name: bn1}, relu, max_pool: {name: pool1, window: 3, stride: 2, padding: 1, ceil_mode: true}, "
          "flatten, linear: {name: output, units: 2}]}\n"
          "data: {dataset: arrays, batch_size: 4}\nbackend: cpu\n",
      "few_layers.yaml");
  ModelInfo info{.task = task, .fields = {}, .data = {}};
  info.fields.target().names = {"a", "b"};
  info.fields.input().type = {DType::u8, {1, 9, 9}};
  info.fields.input().mean = {0.5};
  info.fields.input().stddev = {0.25};
  if (task == "regression") {
    info.fields.target().mean = {1, 2};
    info.fields.target().stddev = {3, 4};
  }
  const std::filesystem::path file = folder / "few_layers.h5";
  Network(experiment, info).save(file);
  return file;
}

std::vector<std::string> ops_of(const onnx::ModelProto& model) {
  std::vector<std::string> ops;
  for (const auto& node : model.graph().node()) ops.push_back(node.op_type());
  return ops;
}

std::map<std::string, std::string> metadata_of(const onnx::ModelProto& model) {
  std::map<std::string, std::string> told;
  for (const auto& entry : model.metadata_props()) told[entry.key()] = entry.value();
  return told;
}

}  // namespace

TEST_CASE("an ONNX file has the layers, the names and the weights of its model") {
  const TemporaryFolder folder;
  const auto checkpoint = checkpoint_in(folder);
  const OnnxExportReport report = export_onnx(checkpoint, folder / "x.onnx");
  const onnx::ModelProto model = read(folder / "x.onnx");
  CHECK(model.ir_version() == 8);
  CHECK(report.ir_version == 8);
  REQUIRE(model.opset_import_size() == 1);
  CHECK(model.opset_import(0).version() == 18);
  CHECK(model.producer_name() == "gpunn");
  // Padding is in the convolution and in the pooling, the bias in the product.
  CHECK(ops_of(model) ==
        std::vector<std::string>{"Conv", "BatchNormalization", "Relu", "MaxPool", "Flatten", "Gemm", "Softmax"});
  const onnx::GraphProto& graph = model.graph();
  CHECK(report.nodes == graph.node_size());
  CHECK(report.tensors == graph.initializer_size());
  CHECK(graph.node(0).name() == "conv1");
  CHECK(graph.node(1).name() == "bn1");
  CHECK(graph.node(3).name() == "pool1");
  CHECK(graph.node(5).name() == "output");
  std::set<std::string> tensors;
  const Network network = Network::load(checkpoint);
  for (const auto& tensor : graph.initializer()) {
    CAPTURE(tensor.name());
    tensors.insert(tensor.name());
    const auto values = network.read(tensor.name());
    REQUIRE(tensor.raw_data().size() == values.size_bytes());
    CHECK(std::memcmp(tensor.raw_data().data(), values.data(), values.size_bytes()) == 0);
  }
  CHECK(tensors == std::set<std::string>{"conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean",
                                         "bn1.running_var", "output.weight", "output.bias"});
  REQUIRE(graph.input_size() == 1);
  CHECK(graph.input(0).name() == "image");
  CHECK(graph.input(0).type().tensor_type().shape().dim(0).dim_param() == "batch");
  REQUIRE(graph.output_size() == 2);
  CHECK(graph.output(0).name() == "logits");
  CHECK(graph.output(1).name() == "probabilities");
  auto told = metadata_of(model);
  CHECK(told["class_names"] == "[\"a\",\"b\"]");
  CHECK(told["mean"] == "[0.5]");
  CHECK(told["std"] == "[0.25]");
  CHECK(told["task"] == "classification");
}

TEST_CASE("a graph may normalise, fold its norms and keep its weights beside it") {
  const TemporaryFolder folder;
  const OnnxExportOptions options{.opset = 13, .raw_input = true, .fold_batch_norm = true, .external_data = true};
  const OnnxExportReport report = export_onnx(checkpoint_in(folder, "regression"), folder / "x.onnx", options);
  const onnx::ModelProto model = read(folder / "x.onnx");
  CHECK(model.ir_version() == 7);
  CHECK(ops_of(model) ==
        std::vector<std::string>{"Cast", "Mul", "Add", "Conv", "Relu", "MaxPool", "Flatten", "Gemm", "Mul", "Add"});
  CHECK(model.graph().input(0).type().tensor_type().elem_type() == onnx::TensorProto::UINT8);
  CHECK(model.graph().output(1).name() == "values");
  REQUIRE(model.graph().node(3).input_size() == 3);
  CHECK(model.graph().node(3).input(2) == "conv1.bias");
  REQUIRE(report.data == folder / "x.onnx.data");
  CHECK_THROWS_WITH(export_onnx(folder / "few_layers.h5", folder / "x.onnx.txt"), Contains("NAME.onnx"));
}

TEST_CASE("an export that can't be leaves no file") {
  const TemporaryFolder folder;
  const auto checkpoint = checkpoint_in(folder);
  CHECK_THROWS_WITH(export_onnx(checkpoint, folder / "x.onnx", {.opset = 22}), Contains("13 to 21, found 22"));
  CHECK_THROWS_WITH(export_onnx(checkpoint, folder / "none" / "x.onnx"), Contains("there is no folder"));
  CHECK_THROWS_WITH(export_onnx(folder / "no.h5", folder / "x.onnx"), Contains("no.h5"));
  CHECK(!std::filesystem::exists(folder / "x.onnx"));
}

TEST_CASE("a file that can't be written whole stays as it was") {
  const TemporaryFolder folder;
  const auto checkpoint = checkpoint_in(folder);
  export_onnx(checkpoint, folder / "x.onnx");
  const std::string before = content_of(folder / "x.onnx");
  rlimit usual{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &usual) == 0);
  const rlimit small{.rlim_cur = 512, .rlim_max = usual.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string message;
  try {
    export_onnx(checkpoint, folder / "x.onnx", {.opset = 21});
  } catch (const Error& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &usual);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(message, Contains("can't write"));
  CHECK(content_of(folder / "x.onnx") == before);
}

TEST_CASE("a graph may prepare a picture of any size") {
  const TemporaryFolder folder;
  const auto checkpoint = checkpoint_in(folder);
  export_onnx(checkpoint, folder / "x.onnx", {.opset = 13, .with_preprocessing = true});
  const onnx::ModelProto model = read(folder / "x.onnx");
  const auto& input = model.graph().input(0).type().tensor_type();
  CHECK(input.elem_type() == onnx::TensorProto::UINT8);
  REQUIRE(input.shape().dim_size() == 3);
  CHECK(input.shape().dim(0).dim_param() == "height");
  CHECK(input.shape().dim(2).dim_param() == "channels");
  CHECK(model.graph().output(1).type().tensor_type().shape().dim(0).dim_value() == 1);
  auto told = metadata_of(model);
  CHECK(told["input"] == "picture");
  CHECK(told["sample"] == "[1,9,9]");
  CHECK_THAT(told["preparation"], Contains(R"("colours":"grey","height":9,"width":9,"fit":"stretch")"));
}

TEST_CASE("a network of images has open sizes, without a node of a fixed size, where its layers are the same for all") {
  const TemporaryFolder folder;
  const auto file_of = [&](const std::string& layers) {
    const Experiment experiment = parse_experiment("name: images\ntask: super_resolution\nmodel: {layers: [" + layers +
                                                       "]}\ndata: {dataset: arrays, batch_size: 4}\nbackend: cpu\n",
                                                   "images.yaml");
    ModelInfo info{.task = "super_resolution", .fields = {}, .data = {}};
    info.fields.input().type = {DType::f32, {3, 8, 12}};
    info.fields.input().mean = {0, 0, 0};
    info.fields.input().stddev = {1, 1, 1};
    Network(experiment, info).save(folder / "images.h5");
    export_onnx(folder / "images.h5", folder / "images.onnx");
    return read(folder / "images.onnx");
  };
  const auto open = [](const onnx::ModelProto& model) {
    const auto& shape = model.graph().input(0).type().tensor_type().shape();
    return shape.dim(2).dim_param() == "height" && shape.dim(3).dim_param() == "width";
  };
  const onnx::ModelProto shuffled = file_of("conv2d: {filters: 12, kernel: 3, padding: 1}, pixel_shuffle: {factor: 2}");
  CHECK(open(shuffled));
  CHECK(ops_of(shuffled) == std::vector<std::string>{"Conv", "DepthToSpace"});
  const auto& output = shuffled.graph().output(0).type().tensor_type().shape();
  CHECK(output.dim(1).dim_value() == 3);
  CHECK(output.dim(2).dim_param() == "output_height");
  // A norm of groups is a Reshape and back; the way back takes the sizes from the tensor before.
  const onnx::ModelProto grouped = file_of("group_norm: {groups: 1}");
  CHECK(open(grouped));
  CHECK(grouped.graph().output(0).type().tensor_type().shape().dim(2).dim_param() == "height");
  // The mean of an image has a window of the image's size, for every size.
  CHECK(open(file_of("global_avg_pool: {name: mean}, sigmoid, multiply: {name: scaled, from: [sigmoid1, input]}")));
  // Weights of a fixed size, windows of a fixed number of results.
  CHECK_FALSE(open(file_of("layer_norm: {name: norm}")));
  CHECK_FALSE(open(file_of("resize: {rows: 4, columns: 6}")));
}
