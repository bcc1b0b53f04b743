// Every experiment that comes with the program: read, taken apart into a training step, and its memory planned. No data
// and no device are needed for that.
#include <gpunn/experiment.hpp>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "compiler/memory_plan.hpp"
#include "feed/model_samples.hpp"
#include "fields/kind.hpp"
#include "fields/values.hpp"
#include "program/layout.hpp"
#include "program/programs.hpp"
#include "program/update_rules.hpp"
#include "session/frozen_features.hpp"

using namespace gpunn;

namespace {

struct Kind {
  TensorType samples;
  int64_t outputs = 0;
  TensorType target = {};  // of one sample; without a shape: that of the task's kind
  TensorType row = {};     // of one sample of a second input; without a shape: there is none
};

// What data/registry.cpp would load.
const std::map<std::string, Kind> kData = {
    {"mnist", {{DType::u8, {60000, 1, 28, 28}}, 10}},
    {"fashion_mnist", {{DType::u8, {60000, 1, 28, 28}}, 10}},
    {"digits", {{DType::u8, {60000, 1, 28, 28}}, 10}},
    {"cifar10", {{DType::u8, {50000, 3, 32, 32}}, 10}},
    {"cifar100", {{DType::u8, {50000, 3, 32, 32}}, 100}},
    {"digit_and_limit", {{DType::u8, {4000, 1, 28, 28}}, 2, {}, {DType::f32, {2}}}},
    {"points", {{DType::f32, {2000, 2}}, 2}},
    {"drawn_shapes", {{DType::u8, {2000, 3, 64, 64}}, 5, {DType::u8, {64, 64}}}},
    {"two_digits", {{DType::u8, {10000, 1, 28, 56}}, 10}},
    {"csv", {{DType::f32, {342, 10}}, 1}},
};

// Patches, and images with boxes, have the size that the experiment says.
Kind kind_of(const Experiment& experiment) {
  if (const auto* boxes = std::get_if<BoxSet>(&experiment.data.kind)) {
    const int64_t channels = boxes->channels == 1 ? 1 : 3;
    return {{DType::u8, {2000, channels, boxes->image_size.at(0), boxes->image_size.at(1)}},
            10,
            {DType::f32, {boxes->most_boxes, kBoxNumbers}}};
  }
  if (const auto* images = std::get_if<ImageFolderSet>(&experiment.data.kind)) {
    return {{DType::u8, {2000, images->channels, images->image_size.at(0), images->image_size.at(1)}}, 10};
  }
  if (experiment.data.dataset == "segmentation_folder") {  // CamVid
    return {{DType::u8, {367, 3, 180, 240}}, 11, {DType::u8, {180, 240}}};
  }
  const auto* settings = std::get_if<PhotographSet>(&experiment.data.kind);
  if (settings == nullptr) {
    REQUIRE(kData.count(experiment.data.dataset) == 1);
    return kData.at(experiment.data.dataset);
  }
  const int64_t channels = settings->colours == ColourPlanes::luma ? 1 : 3;
  const int64_t side = settings->patch_size / (settings->input == ModelInput::small ? settings->scale : 1);
  return {{DType::f32, {settings->patches, channels, side, side}},
          channels * settings->patch_size * settings->patch_size,
          {DType::f32, {channels, settings->patch_size, settings->patch_size}}};
}

uint64_t planned_bytes(const graph::Graph& program) {
  const std::vector<uint64_t> no_workspace(program.nodes().size(), 0);
  return compiler::plan_memory(program, no_workspace, 256).arena_bytes;
}

}  // namespace

TEST_CASE("each experiment of the project can be planned") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(GPUNN_SOURCE_DIR) + "/experiments")) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path().filename());
    const Experiment experiment = load_experiment(entry.path());
    CHECK(resolved_yaml(parse_experiment(resolved_yaml(experiment), "again")) == resolved_yaml(experiment));
    const Kind kind = kind_of(experiment);
    Schema schema;
    schema.input().type = {kind.samples.dtype, {kind.samples.shape.begin() + 1, kind.samples.shape.end()}};
    schema.target() = fields::target_field(tasks::find(experiment.task).target_kind(), fields::numbered(kind.outputs));
    if (!kind.target.shape.empty()) schema.target().type = kind.target;
    if (!kind.row.shape.empty()) schema.fields.push_back({.name = "row", .kind = "numbers", .type = kind.row});
    const nn::SampleTypes samples = training::model_samples(schema);
    std::vector<nn::Parameter> parameters = nn::model_parameters(experiment.model, samples);
    std::vector<training::UpdateRule> rules = training::update_rules(parameters, experiment);
    const auto layout = training::lay_out(std::move(parameters), std::move(rules), 256);
    const std::unique_ptr<tasks::FrozenFeatures> frozen = training::load_frozen_of(experiment);
    const training::ProgramContext context{
        .experiment = experiment,
        .layout = layout,
        .fields = schema,
        .outputs = kind.outputs,
        .total_steps = 10,
        .buffers = training::lay_out(nn::model_buffers(experiment.model, samples), 256),
        .frozen = frozen.get()};
    Split split;
    split.samples = kind.samples;
    const graph::Graph step = training::training_program(context, training::split_type("train", schema, split));
    CHECK(step.nodes().size() > 10);
    CHECK(planned_bytes(step) > 0);
    CHECK(planned_bytes(training::evaluation_program(context, training::split_type("test", schema, split), 100)) > 0);
    ++count;
  }
  CHECK(count >= 15);
}
