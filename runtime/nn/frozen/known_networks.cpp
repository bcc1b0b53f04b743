#include "nn/frozen/known_networks.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "config/diagnostics.hpp"
#include "config/model_reader.hpp"
#include "config/yaml_tree.hpp"

namespace gpunn::nn {

namespace {

// VGG-19 without its classifier (Simonyan and Zisserman, 2015), its layers called as in the literature on styles.
std::string vgg19_layers(std::string* names) {
  constexpr std::array<int, 5> kDepths = {2, 2, 4, 4, 4};
  constexpr std::array<int, 5> kFilters = {64, 128, 256, 512, 512};
  std::string layers;
  int place = 0;  // in torchvision's `features`
  for (std::size_t stage = 0; stage < kDepths.size(); ++stage) {
    for (int i = 1; i <= kDepths[stage]; ++i, place += 2) {
      const std::string at = std::to_string(stage + 1) + "_" + std::to_string(i);
      layers += "  - conv2d: {name: conv" + at + ", filters: " + std::to_string(kFilters[stage]) +
                ", kernel: 3, padding: 1}\n  - relu: {name: relu" + at + "}\n";
      if (names != nullptr) *names += "features." + std::to_string(place) + ".*: conv" + at + ".*\n";
    }
    layers += "  - max_pool: {name: pool" + std::to_string(stage + 1) + ", window: 2}\n";
    ++place;
  }
  return layers;
}

std::string vgg19_names() {
  std::string names;
  vgg19_layers(&names);
  return names;
}

// SqueezeNet 1.1 without its classifier (Iandola et al., 2016); modules are numbered as in torchvision's `features`.
std::string squeezenet_layers() {
  struct Fire {
    int place, squeeze, expand;
  };
  constexpr std::array<Fire, 8> kFires = {Fire{3, 16, 64}, {4, 16, 64},   {6, 32, 128},  {7, 32, 128},
                                          {9, 48, 192},    {10, 48, 192}, {11, 64, 256}, {12, 64, 256}};
  std::string layers =
      "  - conv2d: {name: conv1, filters: 64, kernel: 3, stride: 2}\n  - relu: {name: relu1}\n"
      "  - max_pool: {name: pool2, window: 3, stride: 2, ceil_mode: true}\n";
  for (const Fire& fire : kFires) {
    const std::string name = "fire" + std::to_string(fire.place), expand = std::to_string(fire.expand);
    const std::string conv = "  - conv2d: {name: " + name, end = ", activation: relu}\n";
    layers += conv + ".squeeze, filters: " + std::to_string(fire.squeeze) + ", kernel: 1" + end;
    layers += conv + ".expand1x1, filters: " + expand + ", kernel: 1" + end;
    layers += conv + ".expand3x3, from: " + name + ".squeeze, filters: " + expand + ", kernel: 3, padding: 1" + end;
    layers += "  - concat: {name: " + name + ", from: [" + name + ".expand1x1, " + name + ".expand3x3]}\n";
    if (fire.place == 4 || fire.place == 7) {
      layers += "  - max_pool: {name: pool" + std::to_string(fire.place + 1) + ", window: 3, stride: 2, " +
                "ceil_mode: true}\n";
    }
  }
  return layers;
}

// Filters that nothing has learnt tell textures apart, too (Ustyuzhaninov et al., 2016; He et al., 2016): wide ones on
// three scales.
constexpr const char* kDrawnLayers =
    "  - conv2d: {name: conv1, filters: 64, kernel: 7, padding: 3}\n  - relu: {name: relu1}\n"
    "  - avg_pool: {name: pool1, window: 2}\n"
    "  - conv2d: {name: conv2, filters: 96, kernel: 5, padding: 2}\n  - relu: {name: relu2}\n"
    "  - avg_pool: {name: pool2, window: 2}\n"
    "  - conv2d: {name: conv3, filters: 128, kernel: 3, padding: 1}\n  - relu: {name: relu3}\n";

std::string layers_of(const KnownNetwork& network) {
  if (network.name == "vgg19") return vgg19_layers(nullptr);
  if (network.name == "squeezenet") return squeezenet_layers();
  return kDrawnLayers;
}

}  // namespace

SeenColours seen_colours(FeatureColours colours) {
  if (colours == FeatureColours::centred) return {{255, 255, 255}, {-123.68F, -116.779F, -103.939F}};
  return {{1 / 0.229F, 1 / 0.224F, 1 / 0.225F}, {-0.485F / 0.229F, -0.456F / 0.224F, -0.406F / 0.225F}};
}

const std::vector<KnownNetwork>& known_networks() {
  static const std::vector<KnownNetwork> networks = {
      {.name = "vgg19",
       .help = "VGG-19, as far as the weights go",
       .names = vgg19_names(),
       .file = "vgg19",
       .content_layers = {"relu4_2"},
       .style_layers = {"relu1_1", "relu2_1", "relu3_1", "relu4_1", "relu5_1"},
       .style_weight = 1e5},
      {.name = "squeezenet",
       .help = "SqueezeNet 1.1",
       .names = "features.0.*: conv1.*\nfeatures.*.squeeze1x1.*: fire*.squeeze.*\nfeatures.*.squeeze.*: "
                "fire*.squeeze.*\nfeatures.*.expand1x1.*: fire*.expand1x1.*\nfeatures.*.expand3x3.*: "
                "fire*.expand3x3.*\n",
       .file = "squeezenet1_1",
       .content_layers = {"fire4"},
       .style_layers = {"relu1", "fire4", "fire7", "fire10"},
       .style_weight = 1000},
      {.name = "drawn",
       .help = "filters drawn at random, which need no file",
       .content_layers = {"relu2"},
       .style_layers = {"relu1", "relu2", "relu3"},
       .style_weight = 1e6},
  };
  return networks;
}

std::vector<std::string> known_network_names() {
  std::vector<std::string> names;
  for (const KnownNetwork& network : known_networks()) names.push_back(network.name);
  return names;
}

const KnownNetwork& known_network(std::string_view name) {
  const auto found = std::ranges::find(known_networks(), name, &KnownNetwork::name);
  if (found != known_networks().end()) return *found;
  throw Error("no network of features is called '" + std::string(name) + "'" +
                  did_you_mean_or_list(name, known_network_names()),
              ExitCode::usage);
}

ModelSpec known_model(const KnownNetwork& network) {
  config::Diagnostics diagnostics;
  const std::string text = "name: " + network.name + "\nlayers:\n" + layers_of(network);
  ModelSpec model = config::read_model(config::parse_yaml(text, network.name), diagnostics);
  diagnostics.throw_if_any();
  return model;
}

}  // namespace gpunn::nn
