#include <gpunn/error.hpp>
#include <gpunn/onnx_export.hpp>
#include <gpunn/ops.h>
#include <gpunn/version.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/text.hpp"
#include "export/onnx_builder.hpp"
#include "export/other_sizes.hpp"
#include "export/photograph_steps.hpp"
#include "export/preparation.hpp"
#include "export/quantize_layers.hpp"
#include "export/rounding_warnings.hpp"
#include "export/write_onnx.hpp"
#include "export/write_trained.hpp"
#include "inference/forward_weights.hpp"
#include "interchange/onnx/import.hpp"
#include "program/programs.hpp"
#include "runs/model_info.hpp"
#include "runs/own_files.hpp"
#include "runs/trained_model.hpp"
#include "storage/checkpoint.hpp"
#include "storage/model_info.hpp"
#include "tasks/task.hpp"

namespace gpunn {

namespace {

using graph::Graph;
using graph::ValueId;
using namespace interchange;  // NOLINT(google-build-using-namespace): the room's own

constexpr int64_t kFirstOpset = 13, kLastOpset = 21;
constexpr int64_t kRows = 2;                            // of the first of two programs, which tell what depends on them
constexpr uint64_t kAlignment = 4;                      // no gaps between weights
constexpr uint64_t kMostInFile = uint64_t{2000} << 20;  // protobuf ends at 2 GiB; nodes need some of it

// Names of sizes that the caller chooses.
const std::string kBatch = "batch", kHeight = "height", kWidth = "width", kChannels = "channels";

constexpr std::array<const char*, 3> kBoxOutputs = {"boxes", "scores", "labels"};

void check_request(const std::filesystem::path& file, const OnnxExportOptions& options) {
  if (file.extension() != ".onnx") {
    throw Error("an ONNX model is written as NAME.onnx, found " + in_quotes(file.string()), ExitCode::usage);
  }
  if (options.opset < kFirstOpset || options.opset > kLastOpset) {
    throw Error("opset: expected " + std::to_string(kFirstOpset) + " to " + std::to_string(kLastOpset) + ", found " +
                    std::to_string(options.opset),
                ExitCode::usage);
  }
  require_onnx();
}

std::filesystem::path data_file(const std::filesystem::path& file) {
  std::filesystem::path data = file;
  data += ".data";
  return data;
}

// Whether the op is one whose weights are in int8 where what it reads is in eight bits.
bool has_weights(const Graph& g, const graph::Node& node) {
  if (node.op == GPUNN_OP_CONV2D) return true;
  if (node.op != GPUNN_OP_MATMUL || !g.is_constant(node.inputs[1])) return false;
  const auto attrs = node.attrs.as<gpunn_matmul_attrs>();
  return attrs.transpose_a == 0 && attrs.transpose_b != 0;
}

void require_pictures(const ModelInfo& info, std::size_t inputs, bool takes_any_size) {
  const TensorType& sample = info.fields.input().type;
  const auto refuse = [](const std::string& why) {
    throw Error("the graph can't prepare pictures: " + why + ". Export the model without --with-preprocessing",
                ExitCode::usage);
  };
  if (inputs > 1) refuse("the model takes " + std::to_string(inputs) + " inputs");
  if (info.photographs) {
    if (!takes_any_size) refuse("the model takes images of one size");
  } else if (sample.dtype != DType::u8 || sample.shape.size() != 3) {
    refuse("the model takes rows of " + to_string(sample) + ", not images of bytes");
  }
}

// Row r of a batch is painted in style r modulo their number, which a batch of any size makes a matter of data.
void require_one_style(const ModelSpec& model) {
  for (const LayerSpec& layer : model.layers) {
    if (layer.type != "conditional_instance_norm") continue;
    const auto number = [&](const char* name) {
      const auto found = std::ranges::find(layer.parameters, name, &LayerParameter::name);
      return found == layer.parameters.end() ? int64_t{-1} : std::stoll(found->values.front());
    };
    if (number("styles") < 2 || number("style") >= 0) continue;
    throw Error("layer '" + layer.name + "' has " + std::to_string(number("styles")) +
                    " styles, one for each row of a batch, which the ONNX export can't write; export a model of one "
                    "style, or one whose layers name theirs by the key `style`",
                ExitCode::usage);
  }
}

// A trained model on its way: the weights must stay where they are until it is written.
class Translation {
 public:
  Translation(const training::TrainedFile& trained, const OnnxExportOptions& options,
              std::vector<inference::Quantizer> quantizers)
      : options_(options) {
    const storage::Checkpoint& checkpoint = trained.checkpoint;
    const std::filesystem::path& file = trained.file;
    Experiment experiment = trained.experiment;
    experiment.precision = Precision::fp32;
    require_one_style(experiment.model);
    ModelInfo info = training::model_info(checkpoint, experiment, file);
    model_ = inference::forward_model(std::move(experiment), std::move(info), kAlignment, kRows + 1);
    model_.quantizers = std::move(quantizers);
    // Weights in eight bits are those with the batch norms in them.
    const bool quantized = !model_.quantizers.empty() ||
                           std::ranges::any_of(model_.experiment.model.layers,
                                               [](const LayerSpec& layer) { return layer.type == "quantize"; });
    const auto norms =
        options.fold_batch_norm || quantized ? inference::BatchNorms::folded : inference::BatchNorms::kept;
    first_ = inference::forward_program(model_, kRows, norms);
    second_ = inference::forward_program(model_, kRows + 1, norms);
    others_ = programs_of_other_sizes(model_, first_, kRows, norms);
    if (options.with_preprocessing) require_pictures(model_.info, model_.inputs.size(), !others_.empty());
    weights_ = inference::forward_weights(model_, first_, checkpoint, file);
  }

  OnnxModel run() {
    onnx_.opset = options_.opset;
    onnx_.name = model_.experiment.name;
    const ProgramSizes programs{
        .first = first_.graph, .one_row_more = second_.graph, .rows = kRows, .others = std::move(others_)};
    for (const inference::ForwardInput& input : model_.inputs) {
      onnx_.inputs.push_back(input_value(input, !programs.others.empty()));
    }
    OnnxBuilder builder(onnx_, programs, sources());
    for (const inference::ForwardInput& input : model_.inputs) builder.reserve(input.name);
    const std::array<const char*, 2> of_task = tasks::find(model_.info.task).answers().outputs;
    std::vector<std::string> names;
    for (const OutputSpec& output : model_.experiment.model.outputs) names.push_back(output.name);
    if (names.empty()) names.emplace_back(model_.has_task() ? of_task[0] : "outputs");
    if (model_.has_task()) names.emplace_back(of_task[1]);
    for (const std::string& name : names) builder.reserve(name);
    if (finds_boxes()) {
      for (const char* name : kBoxOutputs) builder.reserve(name);
    }
    std::set<ValueId> quantized;  // tensors in eight bits
    const inference::ProgramReaders readers(first_.graph);
    const std::map<ValueId, inference::Int8Weight> int8_weights = inference::int8_weights(first_.graph, readers);
    std::set<ValueId> within;  // steps of int8 weights, which are stored as integers
    for (const auto& [weight, stored] : int8_weights) within.insert({stored.quotients, stored.integers});
    const std::vector<OnnxStep> steps = onnx_steps(first_.graph);
    define_values(builder);
    const QuantizeLayers layers(builder, model_.experiment.model, steps);
    for (const OnnxStep& step : steps) {
      if (layers.add(builder, step)) continue;
      if (within.contains(step.outputs.front())) continue;
      if (const auto stored = int8_weights.find(step.outputs.front()); stored != int8_weights.end()) {
        add_int8_weight(builder, step.node->name, stored->second, stored->first);
        continue;
      }
      if (step.node->op == GPUNN_OP_FAKE_QUANTIZE) quantized.insert(step.outputs.front());
      // The weights of `gpunn quantize`, which calibrated what they are multiplied with.
      if (!model_.quantizers.empty() && has_weights(first_.graph, *step.node) &&
          !int8_weights.contains(step.inputs[1]) && quantized.contains(first_.graph.root(step.inputs[0]))) {
        quantize_weights(builder, step);
      }
      if (step.node->op == GPUNN_OP_GATHER_NORMALIZE) {
        builder.define(step.outputs.front(), add_input(builder, input_of(step.inputs.front()).value()));
        input_shape_ = builder.shape(step.outputs.front());
      } else {
        add_onnx_step(builder, step);
      }
    }
    if (finds_boxes()) {
      add_boxes(builder);
      add_metadata();
      return std::move(onnx_);
    }
    if (photographs_) {
      add_output(builder, photographs_->after(source_of(builder, inference::variable::kLogits).name), names.front(), {},
                 OnnxType::u8);
      onnx_.outputs.back().shape = {"output_" + kHeight, "output_" + kWidth, kChannels};
      add_metadata();
      return std::move(onnx_);
    }
    add_outputs(builder, names);
    add_metadata();
    return std::move(onnx_);
  }

  const ModelInfo& info() const { return model_.info; }

 private:
  // The number of the input whose samples a value is; nothing if it is of none.
  std::optional<std::size_t> input_of(ValueId samples) const {
    for (std::size_t number = 0; number < model_.inputs.size(); ++number) {
      if (first_.graph.value(samples).name == inference::variable::numbered(inference::variable::kInput, number)) {
        return number;
      }
    }
    return std::nullopt;
  }

  // The inputs that the model takes as they are.
  void define_values(OnnxBuilder& b) const {
    for (std::size_t v = 0; v < first_.graph.values().size(); ++v) {
      const auto id = static_cast<ValueId>(v);
      const ValueId of = first_.graph.value(id).view_of;
      const std::optional<std::size_t> input = of == graph::kNoValue ? std::nullopt : input_of(of);
      if (input) b.define(id, model_.inputs[*input].name);
    }
  }

  Emitted source_of(OnnxBuilder& b, const std::string& variable) const {
    return b.source(inference::find_variable(first_.graph, variable));
  }

  // The model's outputs, and behind them what the task makes of the first one.
  void add_outputs(OnnxBuilder& b, const std::vector<std::string>& names) {
    const Graph& g = first_.graph;
    const std::vector<std::string> variables = model_.output_variables();
    std::map<std::string, std::string> given;  // tensors that have the name of an output
    for (std::size_t i = 0; i < names.size(); ++i) {
      const ValueId variable = inference::find_variable(g, variables[i]);
      std::string tensor = b.source(variable).name;
      const auto [known, is_new] = given.try_emplace(tensor, names[i]);
      if (!is_new) tensor = known->second;
      if (model_.has_task() && i + 1 == names.size()) tensor = in_data_units(b, tensor);
      add_output(b, tensor, names[i], rows_of(b, variable), onnx_type(g.value(variable).type.dtype));
    }
  }

  // What was a norm's beta is the bias of the layer in front.
  OnnxSources sources() const {
    const Graph& g = first_.graph;
    OnnxSources sources{
        .parameters = inference::find_variable(g, training::variable::kParameters, graph::Storage::parameters),
        .buffers = inference::find_variable(g, training::variable::kBuffers),
        .parameter_values = weights_.parameters,
        .buffer_values = weights_.buffers,
        .names = {}};
    constexpr std::string_view kWeight = "weight";
    for (const inference::FoldedNorm& norm : first_.norms) {
      const std::string& weight = g.value(norm.weight).name;
      if (!weight.ends_with(kWeight)) continue;
      sources.names[norm.beta] = weight.substr(0, weight.size() - kWeight.size()) + "bias";
    }
    return sources;
  }

  OnnxValue input_value(const inference::ForwardInput& input, bool any_size) const {
    if (options_.with_preprocessing) return {input.name, OnnxType::u8, {kHeight, kWidth, kChannels}};
    const bool normalises = input.is_normalised() && !options_.raw_input;
    OnnxValue value{input.name, normalises ? OnnxType::f32 : onnx_type(input.sample.dtype), {kBatch}};
    for (const int64_t size : input.sample.shape) value.shape.emplace_back(size);
    if (any_size) {
      value.shape[2] = kHeight;
      value.shape[3] = kWidth;
    }
    return value;
  }

  // The shape of an output by the program's variable, of which the batch is a part.
  BatchShape rows_of(const OnnxBuilder& b, ValueId variable) const {
    BatchShape shape = b.shape(variable);
    shape.front() = {0, 1};
    return shape;
  }

  std::vector<OnnxDimension> dimensions(const BatchShape& shape) const {
    std::vector<OnnxDimension> result;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i].per_row != 0) {
        result.push_back(options_.with_preprocessing ? OnnxDimension{int64_t{1}} : OnnxDimension{kBatch});
      } else if (!shape[i].depends_on_image()) {
        result.emplace_back(shape[i].fixed);
      } else {
        const std::string name = i == 2 ? kHeight : kWidth;
        result.emplace_back(shape[i] == input_shape_.at(i) ? name : "output_" + name);
      }
    }
    return result;
  }

  std::string add_input(OnnxBuilder& b, std::size_t number) {
    const inference::ForwardInput& input = model_.inputs[number];
    if (!options_.raw_input && !options_.with_preprocessing) return input.name;
    std::string sample = input.name;
    if (options_.with_preprocessing) {
      sample = model_.info.photographs ? photographs_.emplace(b, *model_.info.photographs, input.name).before()
                                       : preparation_.emplace(b, model_.info.fields.input(), input.name).run();
      b.set_batch(sample);
    }
    return normalised(b, input, sample);
  }

  std::string normalised(OnnxBuilder& b, const inference::ForwardInput& input, std::string x) const {
    const std::string layer = "normalize";
    if (input.sample.dtype == DType::u8 && !options_.with_preprocessing) {
      x = b.add(layer, "Cast", {x}, {{"to", static_cast<int64_t>(OnnxType::f32)}}, false);
    }
    Shape by_channel(input.sample.shape.size(), 1);
    by_channel[0] = input.sample.shape[0];
    if (input.sample.dtype != DType::u8) return standardised(b, input, layer, std::move(x), by_channel);
    const training::Normalisation own = training::device_normalisation(input.sample.dtype, input.mean, input.stddev);
    x = b.add(layer, "Mul", {x, b.floats(layer, own.scale, by_channel)}, {}, false);
    return b.add(layer, "Add", {x, b.floats(layer, own.shift, by_channel)}, {}, false);
  }

  // The mean is subtracted first, and in two parts: so f32 rounds the input alone, and neither the mean nor a product.
  static std::string standardised(OnnxBuilder& b, const inference::ForwardInput& input, const std::string& layer,
                                  std::string x, const Shape& by_channel) {
    std::vector<float> coarse(input.mean.begin(), input.mean.end()), fine, scale;
    for (std::size_t i = 0; i < coarse.size(); ++i) {
      fine.push_back(static_cast<float>(input.mean[i] - static_cast<double>(coarse[i])));
      scale.push_back(static_cast<float>(1 / input.stddev[i]));
    }
    for (const std::vector<float>* const part : {&coarse, &fine}) {
      const bool is_zero = std::ranges::all_of(*part, [](float value) { return value == 0; });
      if (!is_zero) x = b.add(layer, "Sub", {x, b.floats(layer, *part, by_channel)}, {}, false);
    }
    return b.add(layer, "Mul", {x, b.floats(layer, scale, by_channel)}, {}, false);
  }

  // The numbers of a regression as the data has them.
  std::string in_data_units(OnnxBuilder& b, const std::string& scores) const {
    const ModelInfo& info = model_.info;
    if (info.fields.target().mean.empty()) return scores;
    const Shape shape = {static_cast<int64_t>(info.fields.target().mean.size())};
    const std::vector<float> stddev(info.fields.target().stddev.begin(), info.fields.target().stddev.end());
    const std::vector<float> mean(info.fields.target().mean.begin(), info.fields.target().mean.end());
    const std::string layer = "values_in_units";
    const std::string scaled = b.add(layer, "Mul", {scores, b.floats(layer, stddev, shape)}, {}, false);
    return b.add(layer, "Add", {scaled, b.floats(layer, mean, shape)}, {}, false);
  }

  bool finds_boxes() const { return model_.has_task() && tasks::find(model_.info.task).answers().box_numbers > 0; }

  // What a detector is asked for, in place of rows of six numbers: corners in pixels of the input, scores, and classes,
  // -1 behind the last box.
  void add_boxes(OnnxBuilder& b) {
    const std::string layer = "found";
    const ValueId predictions = inference::find_variable(first_.graph, inference::variable::kPredictions);
    const int64_t each = tasks::find(model_.info.task).answers().box_numbers;
    const int64_t most = inference::output_row(first_.graph, inference::variable::kPredictions).shape.at(0) / each;
    const auto reshaped = [&](const std::string& x, const std::vector<int64_t>& to) {
      return b.add(layer, "Reshape", {x, b.integers(layer, to)}, {}, false);  // 0: as it is
    };
    const std::string rows = reshaped(b.source(predictions).name, {0, most, each});
    const auto numbers = [&](int64_t from, int64_t to) {
      return b.add(layer, "Slice", {rows, b.integers(layer, {from}), b.integers(layer, {to}), b.integers(layer, {2})},
                   {}, false);
    };
    const BatchSize batch{0, 1};
    const std::string boxes = numbers(0, 4);
    add_output(b, preparation_ ? preparation_->boxes_on_picture(boxes) : boxes, kBoxOutputs[0],
               {batch, {most, 0}, {4, 0}});
    add_output(b, reshaped(numbers(4, 5), {0, most}), kBoxOutputs[1], {batch, {most, 0}});
    const std::string classes = b.add(layer, "Cast", {reshaped(numbers(5, 6), {0, most})},
                                      {{"to", static_cast<int64_t>(OnnxType::i64)}}, false);
    add_output(b, classes, kBoxOutputs[2], {batch, {most, 0}}, OnnxType::i64);
  }

  // Gives the tensor its name; one that has the name of another output already, or is the input, is copied.
  void add_output(OnnxBuilder& b, const std::string& tensor, const std::string& name, const BatchShape& shape,
                  OnnxType type = OnnxType::f32) {
    const auto producer =
        std::ranges::find_if(onnx_.nodes, [&](const OnnxNode& node) { return node.outputs.front() == tensor; });
    const bool taken = std::ranges::any_of(onnx_.outputs, [&](const OnnxValue& o) { return o.name == tensor; });
    if (producer == onnx_.nodes.end() || taken) {
      b.add(name, "Identity", {tensor}, {}, false);
      onnx_.nodes.back().outputs = {name};
    } else {
      producer->outputs = {name};
      for (OnnxNode& node : onnx_.nodes) std::ranges::replace(node.inputs, tensor, name);
    }
    onnx_.outputs.push_back({name, type, dimensions(shape)});
  }

  void add_metadata() {
    const ModelInfo& info = model_.info;
    const auto list = [](const auto& values) { return nlohmann::json(values).dump(); };
    std::vector<std::string> outputs;
    for (const std::string& name : info.fields.target().names) outputs.push_back(storage::as_utf8(name));
    onnx_.metadata = {{"gpunn_version", version()},
                      {"experiment", storage::as_utf8(model_.experiment.name)},
                      {"task", info.task},
                      {tasks::find(info.task).has_labels() ? "class_names" : "output_names", list(outputs)},
                      {"mean", list(info.fields.input().mean)},
                      {"std", list(info.fields.input().stddev)},
                      {"scale", info.fields.input().type.dtype == DType::u8 ? "1/255" : "1"},
                      {"input", options_.with_preprocessing ? "picture"
                                : options_.raw_input        ? "raw"
                                                            : "normalized"},
                      {kSampleKey, list(info.fields.input().type.shape)},
                      {"model", storage::model_info_text(info)}};
    if (model_.has_task() && onnx_.outputs.size() > 2 && !finds_boxes()) {
      onnx_.metadata.emplace_back(kPredictionsKey, onnx_.outputs.back().name);
    }
    if (std::string text = preparation_text(info); !text.empty()) {
      onnx_.metadata.emplace_back("preparation", std::move(text));
    }
  }

  OnnxExportOptions options_;
  inference::ForwardModel model_;
  inference::ForwardProgram first_, second_;
  std::vector<Graph> others_;  // for other sizes of images
  inference::Weights weights_;
  OnnxModel onnx_;
  std::optional<ImagePreparation> preparation_;
  std::optional<PhotographSteps> photographs_;
  BatchShape input_shape_;
};

}  // namespace

namespace interchange {

OnnxExportReport write_trained(const training::TrainedFile& trained, const std::filesystem::path& file,
                               const OnnxExportOptions& options, std::vector<inference::Quantizer> quantizers) {
  check_request(file, options);
  training::require_output(file);
  Translation translation(trained, options, std::move(quantizers));
  const OnnxModel onnx = translation.run();

  OnnxExportReport report{.file = file, .opset = onnx.opset, .ir_version = ir_version(onnx.opset)};
  uint64_t bytes = 0;
  for (const OnnxTensor& tensor : onnx.tensors) {
    bytes += tensor.bytes.size();
    report.numbers += element_count(tensor.shape);
  }
  if ((options.external_data || bytes > kMostInFile) && has_large_tensors(onnx)) {
    report.data = data_file(file);
    training::require_output(report.data);
  }
  write_onnx(onnx, file, report.data);
  report.warnings = rounding_warnings(translation.info(), options.raw_input);
  report.nodes = static_cast<int64_t>(onnx.nodes.size());
  report.tensors = static_cast<int64_t>(onnx.tensors.size());
  return report;
}

}  // namespace interchange

OnnxExportReport export_onnx(const std::filesystem::path& model, const std::filesystem::path& file,
                             const OnnxExportOptions& options, const std::vector<Override>& overrides) {
  check_request(file, options);
  return interchange::write_trained(training::read_trained(model, overrides), file, options, {});
}

}  // namespace gpunn
