#include <gpunn/explain.hpp>
#include <gpunn/model.hpp>
#include <gpunn/report.hpp>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/files.hpp"
#include "common/input_file.hpp"
#include "evaluation/evaluate.hpp"
#include "evaluation/open_trained.hpp"
#include "fields/standardise.hpp"
#include "report/page.hpp"
#include "runs/own_files.hpp"
#include "runs/trained_model.hpp"
#include "storage/checkpoint.hpp"

namespace gpunn {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace reports;

namespace {

constexpr std::size_t kMostValues = 8;  // of a sample that is no picture

// What the run's own record says of where it trained; empty where there is none.
std::string recorded(const json& record, const char* object, const char* key) {
  const auto found = record.find(object);
  if (found == record.end() || !found->is_object()) return "";
  const auto value = found->find(key);
  return value != found->end() && value->is_string() ? value->get<std::string>() : "";
}

json environment_of(const fs::path& run) {
  const fs::path file = run / "environment.json";
  return path_exists(file) ? json::parse(read_text(file), nullptr, false) : json();
}

// As many values of a sample as a reader can take in.
std::string values_text(const TensorType& sample, std::span<const std::byte> bytes) {
  const auto count = static_cast<std::size_t>(sample.elements());
  std::string text;
  for (std::size_t i = 0; i < std::min(count, kMostValues); ++i) {
    text += fmt::format("{}{:.4g}", i > 0 ? ", " : "", fields::element_of(sample.dtype, bytes, i));
  }
  return text + (count > kMostValues ? ", ..." : "");
}

// What can be shown of rows of the evaluated data.
class SampleShow {
 public:
  explicit SampleShow(training::Session& session) : sample_(session.dataset().test.samples), data_(session.data()) {
    sample_.shape[0] = 1;
  }
  template <class Shown>
  void add(int64_t row, Shown& shown) const {
    const std::vector<std::byte> own = values(row);
    shown.picture = picture_of(sample_, own);
    if (!shown.picture) shown.values = values_text(sample_, own);
  }
  std::vector<std::byte> values(int64_t row) const { return data_.test_sample(row); }

 private:
  TensorType sample_;
  const training::DataFeed& data_;
};

// What in the picture spoke for the class that it was taken for. Networks without convolutions have no maps.
void add_map(const Model& model, std::span<const std::byte> values, ShownMistake& shown) {
  const Field& input = model.info().fields.input();
  if (!shown.picture || input.type.dtype != DType::u8 || values.size() != input.type.bytes()) return;
  const Shape shape = batch_shape(input.type.shape, 1);
  const ArrayView image{.name = input.name, .dtype = input.type.dtype, .shape = shape, .data = values.data()};
  try {
    const Explanation one = model.explain(image, {.class_index = shown.mistake.predicted}).front();
    shown.map = overlay_png(one, {reinterpret_cast<const uint8_t*>(values.data()), values.size()}, 1);
    shown.layer = one.layer;
  } catch (const DeviceLostError&) {
    throw;
  } catch (const Error&) {  // the mistake is shown without
  }
}

void show_samples(const ClassEvalReport& report, training::Session& session, const TrainedModel& trained,
                  Contents& contents) {
  if (report.mistakes.empty() && report.worst_rows.empty()) return;
  const SampleShow samples(session);
  for (const Mistake& mistake : report.mistakes) {
    samples.add(mistake.row, contents.mistakes.emplace_back(ShownMistake{mistake, {}, {}}));
  }
  if (!contents.mistakes.empty() && contents.mistakes.front().picture) {
    const Model model = Model::load(trained.path, {.max_batch = 1, .calls = 1, .overrides = trained.overrides});
    for (ShownMistake& shown : contents.mistakes) add_map(model, samples.values(shown.mistake.row), shown);
  }
  for (const RowReport& row : report.worst_rows) {
    samples.add(row.row, contents.worst_rows.emplace_back(ShownRow{row, {}, {}}));
  }
}

void add_filters(Contents& contents, const storage::Checkpoint& checkpoint) {
  const auto first = std::ranges::find_if(checkpoint.parameters, [](const storage::StoredTensor& tensor) {
    return tensor.type.shape.size() == 4 && tensor.type.dtype == DType::f32;
  });
  if (first == checkpoint.parameters.end()) return;
  std::vector<float> weights(first->values.size() / sizeof(float));
  std::memcpy(weights.data(), first->values.data(), weights.size() * sizeof(float));
  contents.convolution = first->name + " " + to_string(first->type);
  contents.filters = filter_grid(first->type.shape, weights);
}

std::vector<Metric> metrics_of(const tasks::Task& task) {
  std::vector<Metric> metrics;
  for (const tasks::TaskMetric& one : task.metrics()) metrics.push_back(one.metric);
  return metrics;
}

Contents gather(const ReportRequest& request, TrainingListener* listener) {
  const fs::path file = training::checkpoint_file(request.run);
  const TrainedModel trained{.path = file, .overrides = request.overrides};
  const auto session = training::open_trained(trained, listener);
  const Experiment& experiment = session->experiment();
  const Dataset& data = session->dataset();
  const json environment = environment_of(request.run);

  Contents contents;
  contents.title = experiment.name;
  contents.notice = session->notice();
  contents.parameters = session->layout().count();
  contents.experiment = resolved_yaml(experiment);
  contents.history = read_history(request.run / "metrics.jsonl", metrics_of(session->task()));
  contents.held_out = experiment.data.validation_fraction > 0 ? EvaluationPart::validation : contents.history.part;
  contents.evaluation = training::evaluate_classes(*session, request.mistakes);
  show_samples(contents.evaluation, *session, trained, contents);

  const storage::Checkpoint checkpoint = storage::load_checkpoint(file);
  add_filters(contents, checkpoint);
  const auto epoch = checkpoint.counters.find("epoch");
  const std::string of_epoch =
      epoch == checkpoint.counters.end() ? "" : ", after epoch " + std::to_string(epoch->second);
  const std::string device = recorded(environment, "device", "name");
  contents.facts = {{"Run", request.run.string()},
                    {"Checkpoint", file.filename().string() + of_epoch + ", written " + checkpoint.created},
                    {"Model", experiment.model.name},
                    {"Data", fmt::format("{}: {} training and {} {} rows", data.name, data.train.rows(),
                                         data.test.rows(), name_of(data.evaluated))},
                    {"Trained on", checkpoint.backend + (device.empty() ? "" : ", " + device)},
                    {"gpunn", checkpoint.gpunn_version}};
  return contents;
}

}  // namespace

fs::path write_report(const ReportRequest& request, TrainingListener* listener) {
  if (!is_folder(request.run)) {
    throw Error(request.run.string() + ": no such run folder; `gpunn run` makes one under runs/", ExitCode::missing);
  }
  fs::path file = request.file.empty() ? request.run / "report.html" : request.file;
  training::require_output(file);
  write_atomically(file, page(gather(request, listener)));
  return file;
}

}  // namespace gpunn
