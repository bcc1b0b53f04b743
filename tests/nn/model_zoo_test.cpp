// The models that come with the program have as many parameters as torchvision's of the same name.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <set>
#include <utility>

#include "catch.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace nn_test;

namespace {

struct Row {
  std::string model, settings;
  Shape sample;
  int64_t parameters;
};

ModelSpec model_of_row(const Row& row) {
  return parse_experiment("data: points\nmodel: {file: " + std::string(GPUNN_SOURCE_DIR) + "/models/" + row.model +
                              ".yaml, parameters: {" + row.settings + "}}\n",
                          "e")
      .model;
}

const Shape kImagenet = {3, 224, 224};

// torchvision 0.26: sum(p.numel() for p in torchvision.models.vgg16().parameters()).
const std::vector<Row> kTorchvision = {
    {"alexnet", "", kImagenet, 61'100'840},
    {"vgg11", "", kImagenet, 132'863'336},
    {"vgg13", "", kImagenet, 133'047'848},
    {"vgg16", "", kImagenet, 138'357'544},
    {"vgg19", "", kImagenet, 143'667'240},
    {"vgg11", "batch_norm: true", kImagenet, 132'868'840},
    {"vgg13", "batch_norm: true", kImagenet, 133'053'736},
    {"vgg16", "batch_norm: true", kImagenet, 138'365'992},
    {"vgg19", "batch_norm: true", kImagenet, 143'678'248},
    {"resnet18", "", kImagenet, 11'689'512},
    {"resnet34", "", kImagenet, 21'797'672},
    {"resnet50", "", kImagenet, 25'557'032},
    {"resnet101", "", kImagenet, 44'549'160},
    {"mobilenet_v2", "", kImagenet, 3'504'872},
    {"squeezenet1_1", "", kImagenet, 1'235'496},
    {"vit", "", kImagenet, 86'567'656},
    {"vit", "patch: 32", kImagenet, 88'224'232},
    {"vit", "width: 1024, depth: 24, heads: 16, mlp: 4096", kImagenet, 304'326'632},
    {"deeplabv3", "", kImagenet, 39'638'869},
};

}  // namespace

TEST_CASE("models have as many parameters as torchvision's, each under a name of its own") {
  for (const Row& row : kTorchvision) {
    INFO(row.model << " " << row.settings);
    int64_t count = 0;
    std::set<std::string> names;
    for (const nn::Parameter& parameter : nn::model_parameters(model_of_row(row), row.sample)) {
      count += element_count(parameter.shape);
      CHECK(names.insert(parameter.name).second);
    }
    CHECK(count == row.parameters);
  }
}

TEST_CASE("AlexNet and VGG have torchvision's parameters at any size of images") {
  for (const int64_t size : {64, 224, 256, 300}) {
    for (const auto& [model, features] : {std::pair{"alexnet", 9216}, {"vgg11", 25088}}) {
      INFO(model << " at " << size);
      const auto parameters = nn::model_parameters(model_of_row({model, "", {}, 0}), {3, size, size});
      const auto fc1 = std::ranges::find(parameters, "fc1.weight", &nn::Parameter::name);
      REQUIRE(fc1 != parameters.end());
      CHECK(fc1->shape == Shape{4096, features});
    }
  }
}

TEST_CASE("a residual network's stems keep of its images what they are for") {
  const auto stem = [](const std::string& name, const Shape& sample) {
    const Row row{"resnet18", "classes: 10, stem: " + name, sample, 0};
    const Built built(model_of_row(row), sample, true);
    for (const auto& node : built.graph.nodes()) {  // what the last stage gives
      if (node.name == "stage4.1.add1") return to_string(built.graph.value(node.outputs[0]).type.shape);
    }
    return std::string();
  };
  CHECK(stem("imagenet", {3, 224, 224}) == "[4, 512, 7, 7]");
  CHECK(stem("cifar", {3, 32, 32}) == "[4, 512, 4, 4]");
  CHECK(stem("mnist", {1, 28, 28}) == "[4, 512, 2, 2]");
  CHECK_THROWS_WITH(stem("cfar", {3, 32, 32}), Contains("there is no 'cfar' here; did you mean 'cifar'?"));
}

TEST_CASE("models of segmentation give a map as large as their image, of any size") {
  for (const auto& [model, settings] : {std::pair{"unet", "width: 4"},
                                        {"unet", "width: 4, encoder: resnet"},
                                        {"deeplabv3", "width: 8, block: basic, stride: 16"},
                                        {"deeplabv3", "width: 8, blocks3: 1, stride: 8"}}) {
    for (const auto& [rows, columns] : {std::pair{64, 96}, {180, 240}, {33, 47}, {1, 5}}) {
      INFO(model << " " << settings << " at " << rows << " x " << columns);
      const Row row{model, std::string("classes: 11, ") + settings, {}, 0};
      const Built built(model_of_row(row), {3, rows, columns}, true);
      CHECK(built.graph.value(built.y).type.shape == Shape{4, 11, rows, columns});
    }
  }
}

TEST_CASE("DeepLabV3 keeps the size of its maps from its stride on") {
  for (const auto& [stride, columns] : {std::pair{8, 12}, {16, 6}}) {
    const Row row{"deeplabv3",
                  "width: 8, block: basic, blocks3: 2, blocks4: 2, rate: 3, stride: " + std::to_string(stride),
                  {},
                  0};
    const Built built(model_of_row(row), {3, 64, 96}, true);
    std::vector<int32_t> dilations;
    for (const auto& node : built.graph.nodes()) {
      if (node.op != GPUNN_OP_CONV2D) continue;
      const bool of_stage = node.name.starts_with("stage3") || node.name.starts_with("stage4");
      if (of_stage && !node.name.ends_with("shortcut.conv")) {
        dilations.push_back(node.attrs.as<gpunn_conv2d_attrs>().dilation[0]);
      }
      if (node.name == "aspp3.conv") {
        CHECK(node.attrs.as<gpunn_conv2d_attrs>().dilation[0] == 9);
        CHECK(built.graph.value(node.outputs[0]).type.shape == Shape{4, 8, columns * 2 / 3, columns});
      }
    }
    const std::vector<int32_t> expected =
        stride == 8 ? std::vector<int32_t>{1, 1, 2, 2, 2, 2, 4, 4} : std::vector<int32_t>{1, 1, 1, 1, 1, 1, 2, 2};
    CHECK(dilations == expected);
  }
}

TEST_CASE("names of parameters are those of the blocks that they are in") {
  const auto parameters =
      nn::model_parameters(model_of_row({"vgg11", "classes: 10, pool: 1, hidden: 16", {}, 0}), {3, 32, 32});
  std::vector<std::string> names;
  for (const nn::Parameter& parameter : parameters) names.push_back(parameter.name);
  CHECK(names.front() == "stage1.0.conv.weight");
  CHECK(names[14] == "stage5.1.conv.weight");
  CHECK(names.back() == "output.bias");
  CHECK(parameters[16].shape == Shape{16, 512});
}
