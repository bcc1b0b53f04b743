#include <gpunn/error.hpp>
#include <gpunn/model.hpp>
#include <gpunn/ops.h>
#include <gpunn/quantization.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/hash.hpp"
#include "common/text.hpp"
#include "inference/calibration.hpp"
#include "inference/open_model.hpp"
#include "interchange/export/write_trained.hpp"
#include "training/evaluated_data.hpp"
#include "training/own_files.hpp"
#include "training/trained_model.hpp"

namespace gpunn {

namespace {

using inference::Quantizer;
using Json = nlohmann::json;

constexpr int64_t kCalibrationRows = 32;  // of a batch of the calibration
constexpr int64_t kFewestImages = 8;
constexpr double kPoints = 100;

void check_options(const QuantizeOptions& options) {
  if (options.images < kFewestImages) {
    throw Error(fmt::format("a calibration takes {} images at least, found {}", kFewestImages, options.images),
                ExitCode::usage);
  }
  if (!(options.percentile > 0 && options.percentile <= kPoints)) {
    throw Error(fmt::format("percentile: expected a number above 0 and up to 100, found {}", options.percentile),
                ExitCode::usage);
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
  if ((split.sample_bytes().empty() && split.source == nullptr) || split.rows() < kFewestImages) {
    throw Error(fmt::format("the data set has {} {} rows in memory; a calibration takes {} at least", split.rows(),
                            part, kFewestImages),
                ExitCode::missing);
  }
  return split;
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

// The rows of a part whose class has the largest of these numbers, of the rows from `first` on.
int64_t right_rows(const Split& split, int64_t first, int64_t rows, std::span<const float> logits) {
  const auto classes = logits.size() / static_cast<std::size_t>(kCalibrationRows);
  int64_t right = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const std::span<const float> row = logits.subspan(static_cast<std::size_t>(i) * classes, classes);
    if (std::ranges::max_element(row) - row.begin() == split.labels[static_cast<std::size_t>(first + i)]) ++right;
  }
  return right;
}

// The share of a part's rows whose class is named by what `logits_of` makes of kCalibrationRows samples.
double accuracy(const Split& split, const std::function<std::vector<float>(std::span<const std::byte>)>& logits_of) {
  const std::size_t row = split.samples.bytes() / static_cast<std::size_t>(split.rows());
  std::vector<std::byte> batch(row * static_cast<std::size_t>(kCalibrationRows));
  int64_t right = 0;
  for (int64_t first = 0; first < split.rows(); first += kCalibrationRows) {
    const int64_t rows = std::min(kCalibrationRows, split.rows() - first);
    for (int64_t i = 0; i < rows; ++i) {
      std::memcpy(batch.data() + static_cast<std::size_t>(i) * row, sample_of(split, first + i).data(), row);
    }
    right += right_rows(split, first, rows, logits_of(batch));
  }
  return static_cast<double>(right) / static_cast<double>(split.rows());
}

std::vector<float> logits_of(const Model& model, std::span<const std::byte> samples, DType type) {
  const ModelTensor &input = model.inputs().front(), &output = model.outputs().front();
  const Shape shape = batch_shape(input.row.shape, kCalibrationRows);
  const Shape answer = batch_shape(output.row.shape, kCalibrationRows);
  std::vector<float> logits(static_cast<std::size_t>(element_count(answer)));
  model.run(ArrayView{.name = {}, .dtype = type, .shape = shape, .data = samples.data()},
            MutableArrayView{.name = output.name, .dtype = DType::f32, .shape = answer, .data = logits.data()});
  return logits;
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
    const Split& split = part_of(data_.dataset, options_.part);
    const CalibrationSamples samples(split, options_.images);
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
    measure_accuracy(draft.file(), weights);
    std::filesystem::rename(draft.file(), file);
    report_.file = file;
    return std::move(report_);
  }

 private:
  // A model from elsewhere takes normalised numbers where the data set has bytes: it is told how these are normalised.
  void take_samples() {
    const Split& test = data_.dataset.test;
    if (!trained_.checkpoint.model || test.samples.dtype != DType::u8) return;
    InputInfo& input = trained_.checkpoint.model->input;
    if (input.sample.dtype != DType::f32) return;
    input.sample.dtype = DType::u8;
    input.mean = data_.dataset.mean;
    input.stddev = data_.dataset.stddev;
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
      report_.layers.push_back({.name = tensors_[i].name,
                                .scale = static_cast<double>(quantizers_[i].scale),
                                .zero_point = quantizers_[i].zero_point,
                                .decibels = decibels(expected[i], found[i])});
    }
  }

  void measure_accuracy(const std::filesystem::path& draft, const inference::Weights& weights) {
    const Split& test = data_.dataset.test;
    if (test.labels.empty() || (test.sample_bytes().empty() && test.source == nullptr)) return;
    inference::OpenedModel opened = open();
    inference::ForwardProgram program = inference::forward_program(opened.model, kCalibrationRows);
    const graph::ValueId last = program.outputs.last;
    inference::TensorProbe before(opened.model, std::move(program), {&last, 1}, kCalibrationRows, weights,
                                  std::move(opened.backend));
    ModelOptions options;
    options.max_batch = kCalibrationRows;
    options.calls = 1;
    options.backend = trained_.experiment.backend;
    const Model after = Model::load(draft, options);
    report_.rows = test.rows();
    report_.accuracy_before = accuracy(
        test, [&](std::span<const std::byte> samples) { return before.run(samples, test.samples.dtype).front(); });
    report_.accuracy_after = accuracy(
        test, [&](std::span<const std::byte> samples) { return logits_of(after, samples, test.samples.dtype); });
    const double lost = kPoints * (*report_.accuracy_before - *report_.accuracy_after);
    if (lost > options_.most_lost) {
      throw Error(
          fmt::format("in eight bits the model is right in {:.2f} % of {} test rows, before in {:.2f} %: it loses "
                      "{:.2f} points, of {:.2f} that it may; nothing is written. Another method, or more images, "
                      "may lose less",
                      kPoints * *report_.accuracy_after, report_.rows, kPoints * *report_.accuracy_before, lost,
                      options_.most_lost));
    }
  }

  training::TrainedFile trained_;
  QuantizeOptions options_;
  training::EvaluatedData data_;
  std::vector<inference::QuantizedTensor> tensors_;
  std::vector<Quantizer> quantizers_;
  QuantizeReport report_;
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
