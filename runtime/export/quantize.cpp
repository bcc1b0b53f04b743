#include <gpunn/error.hpp>
#include <gpunn/ops.h>
#include <gpunn/quantization.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/hash.hpp"
#include "common/text.hpp"
#include "data/described.hpp"
#include "export/measured_loss.hpp"
#include "export/write_trained.hpp"
#include "inference/eight_bits/calibration.hpp"
#include "inference/open_model.hpp"
#include "runs/evaluated_data.hpp"
#include "runs/own_files.hpp"
#include "runs/trained_model.hpp"

namespace gpunn {

namespace {

using inference::Quantizer;
using Json = nlohmann::json;

constexpr int64_t kCalibrationRows = 32;  // of a batch of the calibration
constexpr int64_t kFewestImages = 8;
constexpr double kPoints = 100;
constexpr double kMostLost = 0.4;  // points or percent

void check_options(const QuantizeOptions& options) {
  if (options.images < kFewestImages) {
    throw Error(fmt::format("a calibration takes {} images at least, found {}", kFewestImages, options.images),
                ExitCode::usage);
  }
  if (!(options.percentile > 0 && options.percentile <= kPoints)) {
    throw Error(fmt::format("percentile: expected a number above 0 and up to 100, found {}", options.percentile),
                ExitCode::usage);
  }
  if (options.most_lost && std::isnan(*options.most_lost)) {
    throw Error("the most that may be lost: expected a number, found NaN", ExitCode::usage);
  }
}

const Split& part_of(const Dataset& data, const std::string& part) {
  const std::vector<std::pair<std::string, const Split*>> parts = {
      {"train", &data.train}, {"validation", &data.validation}, {"test", &data.test}};
  const auto found = std::ranges::find(parts, part, &std::pair<std::string, const Split*>::first);
  if (found == parts.end()) {
    throw Error("the calibration's part of the data: expected train, validation or test, found " + in_quotes(part),
                ExitCode::usage);
  }
  const Split& split = *found->second;
  if (!split.singles.empty()) {
    throw Error(fmt::format("the {} images have sizes of their own, and a calibration takes samples of one size: "
                            "calibrate with the part train",
                            part),
                ExitCode::usage);
  }
  if ((split.sample_bytes().empty() && split.source == nullptr) || split.rows() < kFewestImages) {
    throw Error(fmt::format("{} has {} {} rows; a calibration takes at least {}", data::described(data), split.rows(),
                            part, kFewestImages),
                ExitCode::missing);
  }
  return split;
}

// The first samples that a source of batches gives, as a split. Empty without such a source.
Split drawn_samples(const Dataset& data, int64_t batch, int64_t images) {
  Split drawn;
  if (data.batches == nullptr) return drawn;
  TensorType type = data.train.samples;
  type.shape.front() = batch;
  std::vector<std::byte> samples(type.bytes());
  std::vector<std::vector<std::byte>> others;
  BatchRoom room{.samples = samples, .fields = {}};
  for (const Field& field : data.fields) {
    if (&field == &data.fields.input() || field.role == Role::id) continue;
    const std::size_t number = size_of(data.batches->dtype_of(field));
    others.emplace_back(static_cast<std::size_t>(batch * field.type.elements()) * number);
  }
  room.fields.assign(others.begin(), others.end());
  const std::size_t row = samples.size() / static_cast<std::size_t>(batch);
  int64_t rows = 0;
  for (int64_t step = 0; rows < images; ++step) {
    const int64_t taken = std::min(data.batches->read(step, room), images - rows);
    drawn.values.insert(drawn.values.end(), samples.begin(),
                        samples.begin() + taken * static_cast<std::ptrdiff_t>(row));
    rows += taken;
  }
  type.shape.front() = rows;
  drawn.samples = std::move(type);
  return drawn;
}

// Rows of a part that are evenly spread over it, in whole batches.
class CalibrationSamples {
 public:
  CalibrationSamples(const Split& split, int64_t images)
      : split_(split), batches_((std::min(images, split.rows()) + kCalibrationRows - 1) / kCalibrationRows) {}

  int64_t count() const { return batches_ * kCalibrationRows; }
  int64_t batches() const { return batches_; }
  DType type() const { return split_.samples.dtype; }
  std::vector<std::byte> batch(int64_t index) const {
    const std::size_t row = split_.samples.bytes() / static_cast<std::size_t>(split_.rows());
    std::vector<std::byte> samples(static_cast<std::size_t>(kCalibrationRows) * row);
    for (int64_t i = 0; i < kCalibrationRows; ++i) {
      const int64_t from = (index * kCalibrationRows + i) * split_.rows() / count();
      std::memcpy(samples.data() + static_cast<std::size_t>(i) * row, sample_of(split_, from).data(), row);
    }
    return samples;
  }

 private:
  const Split& split_;
  int64_t batches_;
};

std::vector<graph::ValueId> values_of(std::span<const inference::QuantizedTensor> tensors) {
  std::vector<graph::ValueId> values;
  for (const inference::QuantizedTensor& tensor : tensors) values.push_back(tensor.value);
  return values;
}

// A number for the model's weights and all that the ranges follow from.
std::string cache_key(const inference::Weights& weights, const Split& split, const QuantizeOptions& options) {
  uint64_t hash = hash_of(std::as_bytes(std::span(weights.parameters)));
  hash = hash_of(std::as_bytes(std::span(weights.scale)), hash);
  hash = hash_of(std::as_bytes(std::span(weights.shift)), hash);
  hash = hash_of(split.sample_bytes(), hash);
  const uint32_t made = split.source == nullptr ? 0 : split.source->digest(split.source_rows);
  hash = hash_of(std::as_bytes(std::span(&made, 1)), hash);
  return fmt::format("{:016x} {} {} {} {}", hash, static_cast<int>(options.method), options.percentile, options.images,
                     options.part);
}

std::vector<Quantizer> cached(const std::filesystem::path& file, const std::string& key, std::size_t count) {
  std::ifstream in(file);
  if (!in) return {};
  const Json content = Json::parse(in, nullptr, false);
  if (content.is_discarded() || content.value("key", "") != key || !content.contains("tensors")) return {};
  std::vector<Quantizer> quantizers;
  for (const Json& tensor : content["tensors"]) {
    quantizers.push_back({tensor.value("scale", 0.0F), tensor.value("zero_point", 0)});
  }
  return quantizers.size() == count ? quantizers : std::vector<Quantizer>{};
}

void write_cache(const std::filesystem::path& file, const std::string& key,
                 std::span<const inference::QuantizedTensor> tensors, std::span<const Quantizer> quantizers) {
  Json content = {{"key", key}, {"tensors", Json::array()}};
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    content["tensors"].push_back(
        {{"name", tensors[i].name}, {"scale", quantizers[i].scale}, {"zero_point", quantizers[i].zero_point}});
  }
  std::ofstream out(file);
  out << content.dump(2) << "\n";
  if (!out.flush()) throw Error("can't write the ranges of the calibration to " + file.string());
}

inference::RangeMethod method_of(CalibrationMethod method) {
  switch (method) {
    case CalibrationMethod::maximum:
      return inference::RangeMethod::maximum;
    case CalibrationMethod::percentile:
      return inference::RangeMethod::percentile;
    case CalibrationMethod::entropy:
      break;
  }
  return inference::RangeMethod::entropy;
}

double decibels(const std::vector<float>& exact, const std::vector<float>& found) {
  constexpr double kMost = 200;  // of a tensor without an error
  double signal = 0, noise = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double value = exact[i], error = static_cast<double>(found[i]) - value;
    signal += value * value;
    noise += error * error;
  }
  if (noise <= 0) return kMost;
  return signal <= 0 ? 0 : std::min(kMost, 10 * std::log10(signal / noise));
}

// A sentence on features that share the scale of the largest one, below whose steps others vanish; else empty.
std::string unlike_features(std::span<const float> values, std::size_t features) {
  std::vector<float> sizes(features, 0);
  for (std::size_t i = 0; i < values.size(); ++i)
    sizes[i % features] = std::max(sizes[i % features], std::abs(values[i]));
  std::erase(sizes, 0.0F);
  if (sizes.empty()) return "";
  const auto [least, most] = std::ranges::minmax(sizes);
  constexpr float kSteps = 127;
  if (most <= kSteps * least) return "";
  return fmt::format(
      "The features share one scale, and their largest values are from {:.3g} to {:.3g}: a model that normalises them "
      "(by data.mean and data.stddev, which are measured by default) loses less",
      least, most);
}

// The file's name until it is known to be good enough.
std::filesystem::path draft_of(const std::filesystem::path& file) {
  return file.parent_path() / (file.stem().string() + ".quantizing.onnx");
}

class Draft {
 public:
  explicit Draft(std::filesystem::path file) : file_(std::move(file)) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
};

class Quantization {
 public:
  Quantization(const TrainedModel& model, QuantizeOptions options, TrainingListener* listener)
      : trained_(training::read_trained(model.path, model.overrides)),
        options_(std::move(options)),
        data_(training::load_evaluated(trained_)) {
    if (listener != nullptr && !data_.notice.empty()) listener->on_message(data_.notice);
    if (std::ranges::any_of(trained_.experiment.model.layers,
                            [](const LayerSpec& layer) { return layer.type == "quantize"; })) {
      throw Error("the model " + trained_.file.string() + " is in eight bits already", ExitCode::usage);
    }
    trained_.experiment.precision = Precision::fp32;
    take_samples();
  }

  QuantizeReport run(const std::filesystem::path& file) {
    inference::OpenedModel opened = open();
    inference::ForwardProgram program = inference::forward_program(opened.model, kCalibrationRows);
    tensors_ = inference::tensors_to_quantize(program.graph);
    if (tensors_.empty()) {
      throw Error("the model has no convolution and no dense layer, which alone are put in eight bits",
                  ExitCode::usage);
    }
    const inference::Weights weights =
        inference::forward_weights(opened.model, program, trained_.checkpoint, trained_.file);
    const bool draws = options_.part == "train" && data_.dataset.batches != nullptr;
    const Split drawn =
        draws ? drawn_samples(data_.dataset, trained_.experiment.data.batch_size, options_.images) : Split();
    const Split& split = draws ? drawn : part_of(data_.dataset, options_.part);
    const CalibrationSamples samples(split, options_.images);
    const interchange::MeasuredLoss loss = measured_loss();
    inference::TensorProbe exact(opened.model, std::move(program), values_of(tensors_), kCalibrationRows, weights,
                                 std::move(opened.backend));
    report_.images = samples.count();
    const std::string key = cache_key(weights, split, options_);
    if (!options_.cache.empty()) quantizers_ = cached(options_.cache, key, tensors_.size());
    report_.from_cache = !quantizers_.empty();
    if (quantizers_.empty()) calibrate(exact, samples);
    if (!options_.cache.empty()) write_cache(options_.cache, key, tensors_, quantizers_);
    measure_errors(exact, samples, weights);
    const Draft draft(draft_of(file));
    const OnnxExportReport written = interchange::write_trained(trained_, draft.file(), {}, quantizers_);
    if (!written.data.empty()) {
      std::filesystem::remove(written.data);
      throw Error("the model is too large for one ONNX file, which ends at 2 GB");
    }
    if (report_.not_measured.empty()) {
      loss.compare(draft.file(), report_);
      require_little_loss();
    }
    std::filesystem::rename(draft.file(), file);
    report_.file = file;
    return std::move(report_);
  }

 private:
  interchange::MeasuredLoss measured_loss() {
    interchange::MeasuredLoss loss(trained_, data_.dataset);
    report_.not_measured = loss.reason();
    if (options_.most_lost && !loss.reason().empty()) {
      throw Error("no loss can be measured, as --most-lost asks: " + loss.reason() + ". Leave it out to go without",
                  ExitCode::usage);
    }
    return loss;
  }

  // A model from elsewhere takes normalised numbers where the data set has bytes: it is told how these are normalised.
  void take_samples() {
    const Split& test = data_.dataset.test;
    if (!trained_.checkpoint.model || test.samples.dtype != DType::u8) return;
    Field& input = trained_.checkpoint.model->fields.input();
    if (input.type.dtype != DType::f32) return;
    input.type.dtype = DType::u8;
    input.mean = data_.dataset.fields.input().mean;
    input.stddev = data_.dataset.fields.input().stddev;
  }

  inference::OpenedModel open() const {
    ModelOptions options;
    options.max_batch = kCalibrationRows;
    return inference::open_model(trained_.checkpoint, trained_.file,
                                 inference::with_options(trained_.experiment, options), options);
  }

  void calibrate(inference::TensorProbe& probe, const CalibrationSamples& samples) {
    std::vector<inference::TensorRange> ranges(tensors_.size());
    const auto each = [&](void (inference::TensorRange::*see)(std::span<const float>)) {
      for (int64_t b = 0; b < samples.batches(); ++b) {
        const std::vector<std::vector<float>> values = probe.run(samples.batch(b), samples.type());
        for (std::size_t i = 0; i < ranges.size(); ++i) {
          if (tensors_[i].range == i) (ranges[i].*see)(values[i]);
        }
      }
    };
    each(&inference::TensorRange::see_extremes);
    each(&inference::TensorRange::see);
    for (const inference::QuantizedTensor& tensor : tensors_) {
      // Pixels have few values, and the largest are often frequent: none of them is cut off.
      const bool pixels = tensors_[tensor.range].input;
      const auto method = pixels ? inference::RangeMethod::maximum : method_of(options_.method);
      quantizers_.push_back(ranges[tensor.range].quantizer(method, options_.percentile));
    }
  }

  // Of each tensor, on a batch of the calibration: as the program in eight bits has it.
  void measure_errors(inference::TensorProbe& exact, const CalibrationSamples& samples,
                      const inference::Weights& weights) {
    inference::OpenedModel opened = open();
    opened.model.quantizers = quantizers_;
    inference::ForwardProgram program = inference::forward_program(opened.model, kCalibrationRows);
    std::vector<graph::ValueId> values;
    for (const graph::Node& node : program.graph.nodes()) {
      if (node.op == GPUNN_OP_FAKE_QUANTIZE) values.push_back(node.outputs.front());
    }
    for (inference::EightBitOp& one :
         inference::use_eight_bits(program.graph, *opened.backend, inference::FloatWeights::rounded)) {
      if (one.op == GPUNN_OP_QUANTIZED_CONV2D)
        report_.convolutions.push_back(std::move(one.name));
      else if (one.op == GPUNN_OP_QUANTIZED_LINEAR)
        report_.dense.push_back(std::move(one.name));
    }
    inference::TensorProbe stored(opened.model, std::move(program), values, kCalibrationRows, weights,
                                  std::move(opened.backend));
    const std::vector<std::byte> batch = samples.batch(0);
    const std::vector<std::vector<float>> expected = exact.run(batch, samples.type()),
                                          found = stored.run(batch, samples.type());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].input && trained_.checkpoint.model &&
          trained_.checkpoint.model->fields.input().type.shape.size() == 1) {
        advice_ = unlike_features(expected[i], expected[i].size() / static_cast<std::size_t>(kCalibrationRows));
      }
      report_.layers.push_back({.name = tensors_[i].name,
                                .scale = static_cast<double>(quantizers_[i].scale),
                                .zero_point = quantizers_[i].zero_point,
                                .decibels = decibels(expected[i], found[i])});
    }
  }

  void require_little_loss() const {
    const double most = options_.most_lost.value_or(kMostLost);
    if (!(*report_.lost > most)) return;
    const Metric& metric = *report_.metric;
    const auto shown = [&](double value) {
      return metric.is_share ? fmt::format("{:.2f} %", kPoints * value) : fmt::format("{:.5g}", value);
    };
    throw Error(
        fmt::format("in eight bits the model's {} is {} on {} {} rows, before {}: it loses {}, of {} that it "
                    "may (--most-lost); nothing is written. {}",
                    metric.title, shown(*report_.after), report_.rows, name_of(report_.part), shown(*report_.before),
                    interchange::lost_text(metric, *report_.lost), interchange::lost_text(metric, most),
                    advice_.empty() ? "Another method, or more images, may lose less" : advice_));
  }

  training::TrainedFile trained_;
  QuantizeOptions options_;
  training::EvaluatedData data_;
  std::vector<inference::QuantizedTensor> tensors_;
  std::vector<Quantizer> quantizers_;
  QuantizeReport report_;
  std::string advice_;  // if too much is lost
};

}  // namespace

QuantizeReport quantize(const TrainedModel& model, const std::filesystem::path& file, const QuantizeOptions& options,
                        TrainingListener* listener) {
  check_options(options);
  if (file.extension() != ".onnx") {
    throw Error("a model in eight bits is written as NAME.onnx, found " + in_quotes(file.string()), ExitCode::usage);
  }
  training::require_output(file);
  return Quantization(model, options, listener).run(file);
}

}  // namespace gpunn
