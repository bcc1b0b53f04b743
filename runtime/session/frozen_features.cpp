#include "session/frozen_features.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

#include "common/text.hpp"
#include "compiler/half_precision.hpp"
#include "data/images/image.hpp"
#include "data/photographs/drawn_style.hpp"
#include "data/photographs/image_pairs.hpp"
#include "nn/frozen/known_networks.hpp"
#include "program/variable_access.hpp"
#include "runs/name_table.hpp"
#include "runs/trained_model.hpp"
#include "storage/safetensors.hpp"
#include "tasks/style/losses.hpp"

namespace gpunn::training {

namespace fs = std::filesystem;

namespace {

using Tensors = std::map<std::string, storage::StoredTensor>;

std::vector<std::string> all_of(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> both = a;
  both.insert(both.end(), b.begin(), b.end());
  return both;
}

// $GPUNN_DATA_DIR, and its folder `weights`.
fs::path find_weights(const nn::KnownNetwork& known) {
  const char* const data = std::getenv("GPUNN_DATA_DIR");
  std::error_code ignored;
  if (data != nullptr && *data != '\0') {
    for (const fs::path& folder : {fs::path(data) / "weights", fs::path(data)}) {
      std::vector<fs::path> found;
      for (fs::directory_iterator it(folder, ignored), end; !ignored && it != end; it.increment(ignored)) {
        const std::string name = it->path().filename().string();
        if (name.starts_with(known.file) && it->path().extension() == ".safetensors") found.push_back(it->path());
      }
      if (!found.empty()) return *std::ranges::min_element(found);
    }
  }
  throw Error("no weights of " + known.name + ": expected a file " + known.file +
                  "*.safetensors in $GPUNN_DATA_DIR or in its folder weights" +
                  (data == nullptr ? " (the variable is not set)" : " (" + std::string(data) + ")") +
                  ". Give a .safetensors file with torchvision's names, or take the network `drawn`, which needs none",
              ExitCode::missing);
}

Tensors read_weights(const nn::KnownNetwork& known, const fs::path& file) {
  const NameTable names = NameTable::parse(known.names, known.name);
  Tensors tensors;
  for (storage::StoredTensor& tensor : storage::load_safetensors(file).tensors) {
    const std::string name = names.rename(tensor.name);
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

std::vector<float> floats_of(const storage::StoredTensor& tensor) {
  std::vector<float> values(tensor.values.size() / sizeof(float));
  std::memcpy(values.data(), tensor.values.data(), values.size() * sizeof(float));
  return values;
}

// Fills in what the file has; throws where it lacks something.
std::vector<nn::Constant> filled(const std::string& network, const ModelSpec& model, const Tensors& tensors,
                                 const std::string& file) {
  std::vector<nn::Constant> constants = nn::frozen_tensors(network, model);
  for (nn::Constant& constant : constants) {
    const std::string name = constant.name.substr(network.size() + 1);
    const auto found = tensors.find(name);
    const TensorType wanted{DType::f32, constant.shape};
    if (found == tensors.end() || found->second.type != wanted) {
      throw Error(file + ": no tensor " + in_quotes(name) + " of " + to_string(wanted) +
                      (found == tensors.end() ? "" : "; it is " + to_string(found->second.type)) +
                      ". Name layers whose weights the file has, or give another file",
                  ExitCode::missing);
    }
    constant.values = floats_of(found->second);
    if (!std::ranges::all_of(constant.values, [](float value) { return std::isfinite(value); })) {
      throw Error(file + ": the tensor " + in_quotes(name) + " has numbers that are not finite");
    }
  }
  return constants;
}

// The layers in front of the first whose weights are missing.
ModelSpec covered_part(ModelSpec model, const Tensors& tensors) {
  const auto missing = std::ranges::find_if(model.layers, [&](const LayerSpec& layer) {
    return layer.type == "conv2d" && !tensors.contains(layer.name + ".weight");
  });
  model.layers.erase(missing, model.layers.end());
  return model;
}

// Of the layers that a network is known for those that the weights reach; the last one that they reach in place of
// none.
std::vector<std::string> reached(const std::vector<std::string>& wanted, const ModelSpec& model) {
  std::vector<std::string> layers;
  for (const std::string& name : wanted) {
    if (std::ranges::find(model.layers, name, &LayerSpec::name) != model.layers.end()) layers.push_back(name);
  }
  if (!layers.empty() || wanted.empty()) return layers;
  for (const LayerSpec& layer : model.layers) {
    if (layer.type != "max_pool") layers = {layer.name};
  }
  return layers;
}

std::vector<nn::Constant> drawn(const std::string& network, const ModelSpec& model, uint64_t seed) {
  std::vector<nn::Constant> constants = nn::frozen_tensors(network, model);
  uint64_t index = 0;
  for (nn::Constant& constant : constants) {
    nn::Parameter parameter{.name = constant.name, .shape = constant.shape};
    if (constant.shape.size() == 4) {  // He et al., 2015; biases stay 0
      const double fan_in = static_cast<double>(element_count(constant.shape)) / static_cast<double>(constant.shape[0]);
      parameter.init = nn::InitKind::normal;
      parameter.deviation = std::sqrt(2 / fan_in);
    }
    constant.values = nn::initial_values(parameter, seed, index++);
  }
  return constants;
}

tasks::FrozenFeatures load_known(const FrozenRequest& request, const nn::KnownNetwork& known) {
  tasks::FrozenFeatures loaded;
  loaded.content_weight = known.content_weight;
  loaded.style_weight = known.style_weight;
  const ModelSpec whole = nn::known_model(known);
  const bool has_file = !known.file.empty();
  if (!has_file && !request.weights.empty()) {
    throw Error("the network " + known.name + " takes no file of weights", ExitCode::usage);
  }
  fs::path file;
  Tensors tensors;
  ModelSpec model = whole;
  if (has_file) {
    file = request.weights.empty() ? find_weights(known) : request.weights;
    tensors = read_weights(known, file);
    model = covered_part(whole, tensors);
    if (model.layers.empty()) {
      throw Error(file.string() + ": no weights of " + known.name + "; expected torchvision's names, as " +
                      "features.0.weight, found " + (tensors.empty() ? "nothing" : tensors.begin()->first),
                  ExitCode::usage);
    }
  }
  loaded.content = request.content.empty() ? reached(known.content_layers, model) : request.content;
  if (request.compares_styles)
    loaded.style = request.style.empty() ? reached(known.style_layers, model) : request.style;
  if (model.layers.size() < whole.layers.size()) {
    loaded.notes.push_back(file.filename().string() + " has " + known.name + " up to " + model.layers.back().name);
  }
  ModelSpec used = nn::model_up_to(whole, all_of(loaded.content, loaded.style));
  std::vector<nn::Constant> values =
      has_file ? filled(known.name, used, tensors, file.string()) : drawn(known.name, used, request.seed);
  const FeatureColours colours = has_file ? request.colours : FeatureColours::standardised;
  loaded.network = nn::frozen_network(known.name, std::move(used), nn::seen_colours(colours), std::move(values));
  return loaded;
}

// A trained model, as its experiment normalises images.
tasks::FrozenFeatures load_trained(const FrozenRequest& request) {
  TrainedFile trained = read_trained(request.network);
  const std::string file = trained.file.string();
  if (request.content.empty() || (request.compares_styles && request.style.empty())) {
    std::vector<std::string> names;
    for (const LayerSpec& layer : trained.experiment.model.layers) names.push_back(layer.name);
    throw Error(file + ": name the layers to compare images at, for content and, of a style, for that. It has " +
                    join(names, ", "),
                ExitCode::usage);
  }
  const std::vector<double>& mean = trained.experiment.data.mean.empty() && trained.checkpoint.model
                                        ? trained.checkpoint.model->fields.input().mean
                                        : trained.experiment.data.mean;
  const std::vector<double>& stddev = trained.experiment.data.stddev.empty() && trained.checkpoint.model
                                          ? trained.checkpoint.model->fields.input().stddev
                                          : trained.experiment.data.stddev;
  if (mean.size() != 3 || stddev.size() != 3) {
    throw Error(file + ": a network of features sees images of 3 channels; this one is normalised by " +
                    std::to_string(mean.size()) + (mean.size() == 1 ? " channel" : " channels"),
                ExitCode::usage);
  }
  nn::SeenColours seen{};
  for (std::size_t c = 0; c < 3; ++c) {
    seen.scale.at(c) = static_cast<float>(1 / stddev[c]);
    seen.shift.at(c) = static_cast<float>(-mean[c] / stddev[c]);
  }
  Tensors tensors;
  for (storage::StoredTensor& tensor : model_tensors(trained.checkpoint)) {
    const std::string name = tensor.name;
    tensors.emplace(name, std::move(tensor));
  }
  tasks::FrozenFeatures loaded;
  loaded.content = request.content;
  loaded.style = request.style;
  ModelSpec used = nn::model_up_to(trained.experiment.model, all_of(loaded.content, loaded.style));
  used.inputs.front().shape.clear();  // convolutions take any size
  std::vector<nn::Constant> values = filled("features", used, tensors, file);
  loaded.network = nn::frozen_network("features", std::move(used), seen, std::move(values));
  return loaded;
}

}  // namespace

tasks::FrozenFeatures load_frozen(const FrozenRequest& request) {
  const std::vector<std::string> known = nn::known_network_names();
  std::error_code ignored;
  const bool trained = std::ranges::find(known, request.network) == known.end() && fs::exists(request.network, ignored);
  tasks::FrozenFeatures loaded =
      trained ? load_trained(request) : load_known(request, nn::known_network(request.network));
  if (request.precision == Precision::bf16) {
    loaded.network.precision = [](graph::Graph& graph, std::size_t first, std::vector<graph::ValueId>& results) {
      compiler::use_half_precision(graph, first, DType::bf16, results);
    };
  }
  return loaded;
}

std::unique_ptr<tasks::FrozenFeatures> load_frozen_of(const Experiment& experiment) {
  FrozenRequest request;
  request.precision = experiment.precision;
  const auto take = [&](const FeatureNetwork& network) {
    request.network = network.features;
    request.weights = network.weights;
    request.colours = network.colours;
    request.content = network.content_layers;
  };
  if (const auto* perceptual = std::get_if<Perceptual>(&experiment.loss.kind)) {
    take(*perceptual);
    request.compares_styles = false;
  } else if (const auto* style = std::get_if<StyleLoss>(&experiment.loss.kind)) {
    take(*style);
    request.style = style->style_layers;
  } else {
    return nullptr;
  }
  return std::make_unique<tasks::FrozenFeatures>(load_frozen(request));
}

void upload(execution::ProgramRunner& runner, const std::vector<nn::Constant>& constants) {
  for (const nn::Constant& constant : constants) {
    runner.variables().create(constant.name, {DType::f32, constant.shape}, graph::Storage::data);
    runner.variables().write(constant.name, bytes_of(constant.values));
  }
}

std::vector<nn::Constant> seen_in(execution::ProgramRunner& runner, const nn::FrozenNetwork& network,
                                  const data::Planes& picture, const std::vector<std::string>& layers, OfLayer of) {
  graph::Graph g;
  const TensorType type{DType::f32, {1, picture.channels, picture.height, picture.width}};
  const std::string prefix = "seen.";
  const graph::ValueId image = g.add_value(prefix + "picture", type, graph::Storage::data);
  const std::map<std::string, graph::ValueId> found = nn::FrozenLayers(g, network).look_at(image, layers);
  graph::Expressions e(g, "seen");
  std::vector<nn::Constant> seen;
  for (const std::string& layer : layers) {
    const graph::ValueId value = of(e, found.at(layer));
    const TensorType of_value = g.value(value).type;
    g.add_into(GPUNN_OP_COPY, layer, {}, {value}, {g.add_value(prefix + layer, of_value, graph::Storage::state)});
    seen.push_back({layer, of_value.shape, {}});
  }
  execution::RunnableProgram program = runner.compile(std::move(g));
  execution::Executable& executable = runner.ready(program);
  runner.variables().write(prefix + "picture", bytes_of(picture.values));
  executable.run();
  for (nn::Constant& one : seen) {
    one.values = values_of<float>(runner.variables().read(prefix + one.name));
    runner.variables().drop(prefix + one.name);
  }
  runner.variables().drop(prefix + "picture");
  return seen;
}

void place_frozen(execution::ProgramRunner& runner, const LossConfig& loss, tasks::FrozenFeatures& frozen) {
  upload(runner, frozen.network.constants);
  const auto* style = std::get_if<StyleLoss>(&loss.kind);
  if (style == nullptr) return;
  std::vector<data::Image> pictures;
  for (const std::filesystem::path& file : style->styles) {
    pictures.push_back(data::read_colours(file, style->style_size));
  }
  if (pictures.empty()) pictures.push_back(data::drawn_style());
  frozen.styles.clear();
  for (const data::Image& picture : pictures) {
    const std::vector<nn::Constant> grams =
        seen_in(runner, frozen.network, data::planes_of(picture, ColourPlanes::rgb), frozen.style, tasks::gram_matrix);
    for (std::size_t i = 0; i < grams.size(); ++i) {
      if (frozen.styles.size() == i)
        frozen.styles.push_back({tasks::style_constant(grams[i].name), grams[i].shape, {}});
      std::vector<float>& values = frozen.styles[i].values;
      values.insert(values.end(), grams[i].values.begin(), grams[i].values.end());
    }
  }
  for (nn::Constant& one : frozen.styles) one.shape.front() = std::ssize(pictures);
  upload(runner, frozen.styles);
}

}  // namespace gpunn::training
