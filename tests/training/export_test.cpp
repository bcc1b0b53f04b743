// Weights for other programs: the names, shapes and bits that PyTorch's load_state_dict wants.
#include <gpunn/error.hpp>

#include <fstream>
#include <map>
#include <sstream>

#include "catch.hpp"
#include "nn/model.hpp"
#include "runs/name_table.hpp"
#include "runs/transfer.hpp"
#include "session/session.hpp"
#include "storage/safetensors.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

const std::string kExportSource = GPUNN_SOURCE_DIR;
const std::string kCounter = ".num_batches_tracked";

using Shapes = std::map<std::string, Shape>;

Shapes torchvision(const std::string& network) {
  std::ifstream file(kExportSource + "/tests/fixtures/torchvision_state_dicts.txt");
  Shapes shapes;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, key;
    words >> name >> key;
    if (name != network) continue;
    Shape& shape = shapes[key];
    for (int64_t size = 0; words >> size;) shape.push_back(size);
  }
  return shapes;
}

using Tensors = std::map<std::string, storage::StoredTensor>;

Tensors tensors_in(const std::filesystem::path& file) {
  Tensors result;
  for (storage::StoredTensor& tensor : storage::load_safetensors(file).tensors) result[tensor.name] = tensor;
  return result;
}

// A network of the two layers that have running statistics and none, in the names of resnet.names.yaml.
Experiment small_norm(const std::filesystem::path& runs, const std::vector<Override>& more = {}) {
  return parse_experiment(
      "name: small_norm\n"
      "model: {layers: [conv2d: {name: conv1, filters: 3, kernel: 3, bias: false}, batch_norm: {name: bn1}, relu, "
      "global_avg_pool, linear: {name: output, units: 10}]}\n"
      "data: {dataset: digits, synthetic_train: 128, synthetic_test: 64, batch_size: 32}\n"
      "training: {epochs: 1, accumulate: 2}\nbackend: cpu\nruns: " +
          runs.string() + "\n",
      "small_norm.yaml", more);
}

}  // namespace

TEST_CASE("the tables beside the models lead to torchvision's state_dict, every key and shape") {
  struct Case {
    std::string network, model, parameters, table;
  };
  const Case c = GENERATE(
      Case{"resnet18", "resnet18", "{}", "resnet"}, Case{"vgg16_bn", "vgg16", "{batch_norm: true}", "vgg16_bn"},
      Case{"mobilenet_v2", "mobilenet_v2", "{}", "mobilenet_v2"},
      Case{"squeezenet1_1", "squeezenet1_1", "{}", "squeezenet1_1"}, Case{"alexnet", "alexnet", "{}", "alexnet"},
      Case{"vit_b_16", "vit", "{}", "vit"}, Case{"deeplabv3_resnet50", "deeplabv3", "{}", "deeplabv3"});
  CAPTURE(c.network);
  const ModelSpec model = parse_experiment("model: {file: " + kExportSource + "/models/" + c.model +
                                               ".yaml, parameters: " + c.parameters + "}\ndata: points\n",
                                           "e.yaml")
                              .model;
  const auto names = training::NameTable::load(kExportSource + "/models/" + c.table + ".names.yaml");
  Shapes found;
  std::vector<nn::Parameter> tensors = nn::model_parameters(model, {3, 224, 224});
  for (const nn::Parameter& buffer : nn::model_buffers(model, {3, 224, 224})) tensors.push_back(buffer);
  for (const nn::Parameter& tensor : tensors) {
    const std::string name = names.original(tensor.name).value_or("lost " + tensor.name);
    found[name] = tensor.shape;
    const std::size_t mean = name.rfind(".running_mean");
    if (mean != std::string::npos) found[name.substr(0, mean) + kCounter] = {};
  }
  CHECK(found == torchvision(c.network));
  const std::map<std::string, std::size_t> counts = {
      {"resnet18", 122}, {"vgg16_bn", 97},           {"alexnet", 16}, {"mobilenet_v2", 314}, {"squeezenet1_1", 52},
      {"vit_b_16", 152}, {"deeplabv3_resnet50", 362}};
  CHECK(found.size() == counts.at(c.network));
}

TEST_CASE("a state_dict of PyTorch's goes through a training's file and back, bit for bit") {
  const TemporaryFolder folder;
  const std::string weights = kExportSource + "/tests/fixtures/resnet.safetensors";  // tests/fixtures/resnet.py made it
  const std::string names = kExportSource + "/models/resnet.names.yaml";
  // As torch_weights_test.cpp has it.
  const Experiment experiment = parse_experiment(
      "model:\n"
      "  blocks:\n"
      "    basic:\n"
      "      parameters: {filters: , stride: 1, project: false}\n"
      "      layers:\n"
      "        - conv2d: {name: conv1, filters: $filters, kernel: 3, stride: $stride, padding: 1, bias: false}\n"
      "        - batch_norm: {name: bn1}\n"
      "        - conv2d: {name: conv2, filters: $filters, kernel: 3, padding: 1, bias: false}\n"
      "        - batch_norm: {name: bn2}\n"
      "        - branch: shortcut\n"
      "          from: input\n"
      "          when: $project\n"
      "          layers:\n"
      "            - conv2d: {name: conv, filters: $filters, kernel: 1, stride: $stride, bias: false}\n"
      "            - batch_norm: {name: bn}\n"
      "        - add: {from: [bn2, shortcut]}\n"
      "  layers:\n"
      "    - conv2d: {name: conv1, filters: 4, kernel: 3, stride: 2, padding: 1, bias: false}\n"
      "    - batch_norm: {name: bn1}\n"
      "    - basic: {name: stage1, repeat: 2, filters: 4}\n"
      "    - basic: {name: stage2, repeat: 2, filters: 8, first: {stride: 2, project: true}}\n"
      "    - global_avg_pool\n"
      "    - linear: {name: output, units: 10}\n"
      "init_from: {file: " +
          weights + ", names: " + names +
          "}\ndata: {dataset: digits, synthetic_train: 200, synthetic_test: 100}\nbackend: cpu\n",
      "e.yaml");
  const auto start = training::find_start(experiment, nn::one_sample({1, 28, 28}));
  REQUIRE(start);
  CHECK(start->report.kept.empty());
  training::Session session = training::Session::open(experiment);
  session.initialise_from(*start);
  storage::Checkpoint checkpoint;
  checkpoint.experiment = resolved_yaml(experiment);
  session.save_state(checkpoint);
  storage::save_checkpoint(folder / "begun.h5", checkpoint);

  const ExportReport report = export_weights(folder / "begun.h5", folder / "out.safetensors", names);
  CHECK(report.unnamed.empty());
  Tensors found = tensors_in(folder / "out.safetensors"), expected = tensors_in(weights);
  CHECK(report.tensors == static_cast<int64_t>(found.size()));
  expected.erase("fixture.samples");
  expected.erase("fixture.probabilities");
  std::size_t counters = 0;
  for (const auto& [name, tensor] : found) {
    CAPTURE(name);
    if (name.ends_with(kCounter)) {
      ++counters;
      CHECK(tensor.type == TensorType{DType::i64, {}});
      continue;
    }
    REQUIRE(expected.contains(name));
    CHECK(tensor.type == expected[name].type);
    CHECK(tensor.values == expected[name].values);
  }
  CHECK(counters == 10);  // batch norms
  std::erase_if(expected, [](const auto& entry) { return entry.first.ends_with(kCounter); });
  CHECK(found.size() == expected.size() + counters);
}

TEST_CASE("a training starts from its own export, and the export counts its batches") {
  const TemporaryFolder folder;
  folder.write("names.yaml", "features.0.*: conv1.*\nfeatures.1.*: bn1.*\nfc.*: output.*\n");
  const std::filesystem::path names = folder / "names.yaml", file = folder / "w.safetensors";
  const RunResult run = train(small_norm(folder.path()));
  export_weights(run.run / "last.h5", file, names);
  Tensors exported = tensors_in(file);
  REQUIRE(exported.contains("features.1.num_batches_tracked"));
  int64_t batches = 0;
  std::memcpy(&batches, exported["features.1.num_batches_tracked"].values.data(), sizeof batches);
  CHECK(batches == 4);  // two steps of two batches
  CHECK(exported.size() == 8);

  const Experiment again =
      small_norm(folder.path(), {{"init_from.file", file.string()}, {"init_from.names", names.string()}});
  const auto start = training::find_start(again, nn::one_sample({1, 28, 28}));
  REQUIRE(start);
  training::Session session = training::Session::open(again);
  session.initialise_from(*start);
  storage::Checkpoint begun;
  session.save_state(begun);
  const storage::Checkpoint trained = storage::load_checkpoint(run.run / "last.h5");
  for (std::size_t i = 0; i < trained.parameters.size(); ++i) {
    CHECK(begun.parameters[i].values == trained.parameters[i].values);
  }
  for (std::size_t i = 0; i < trained.buffers.size(); ++i) {
    CHECK(begun.buffers[i].values == trained.buffers[i].values);
  }

  // Without a table nothing is added, and a table of another model is none.
  CHECK(export_weights(run.run, file).tensors == 7);
  folder.write("half.yaml", "fc.*: output.*\n");
  CHECK(export_weights(run.run, file, folder / "half.yaml").unnamed.size() == 5);
  folder.write("other.yaml", "encoder.*: block.*\n");
  CHECK_THROWS_WITH(export_weights(run.run, file, folder / "other.yaml"), Contains("no row names a tensor"));
  folder.write("lossy.yaml", "conv1.*: other.*\nfc.*: output.*\n");
  CHECK_THROWS_WITH(export_weights(run.run, file, folder / "lossy.yaml"), Contains("no name leads to conv1.weight"));
}
