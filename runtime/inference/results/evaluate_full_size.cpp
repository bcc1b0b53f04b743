// An evaluation of label maps in the size of the files.
#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>
#include <gpunn/segmentation.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "data/segmentation/mapped_pictures.hpp"
#include "evaluation/non_finite_cause.hpp"
#include "inference/results/full_size.hpp"
#include "runs/evaluated_data.hpp"
#include "runs/trained_model.hpp"
#include "tasks/metric.hpp"
#include "tasks/segmentation/segmentation.hpp"
#include "tasks/task.hpp"

namespace gpunn {

namespace {

constexpr int64_t kTilesAtATime = 16;

// The numbers of the files that the test rows were made of.
std::vector<int64_t> file_numbers(const Dataset& set) {
  const auto found = set.test.fields.find(kFileNumbersField);
  if (found == set.test.fields.end()) {
    throw Error("the data set '" + set.name +
                    "' does not have label maps in files of their own size, which an evaluation at full size compares; "
                    "data.dataset: segmentation_folder does",
                ExitCode::usage);
  }
  std::vector<int64_t> numbers(static_cast<std::size_t>(set.test.rows()));
  std::memcpy(numbers.data(), found->second.bytes().data(), found->second.bytes().size());
  return numbers;
}

// Counts pixels by their class and the predicted one, as CONFUSION_ACCUMULATE does.
class Confusion {
 public:
  explicit Confusion(std::size_t classes) : classes_(classes), counts_(classes * classes) {}

  void add(const data::LabelMap& truth, const std::array<uint8_t, 256>& class_of_id, const LabelMap& predicted) {
    for (std::size_t i = 0; i < truth.ids.size(); ++i) {
      const uint8_t label = class_of_id[truth.ids[i]];
      if (label < classes_ && label != data::kIgnoredPixel) counts_[label * classes_ + predicted.classes[i]] += 1;
    }
  }
  const std::vector<double>& counts() const { return counts_; }

 private:
  std::size_t classes_;
  std::vector<double> counts_;
};

}  // namespace

ClassEvalReport evaluate_full_size(const TrainedModel& trained, const FullSize& options, TrainingListener* listener) {
  const auto start = std::chrono::steady_clock::now();
  const training::TrainedFile file = training::read_trained(trained.path, trained.overrides);
  const auto [set, notice] = training::load_evaluated(file);
  if (listener != nullptr && !notice.empty()) listener->on_message(notice);
  const Model model =
      Model::load(trained.path, {.max_batch = kTilesAtATime, .calls = 1, .overrides = trained.overrides});
  inference::require_pixel_classes(model);
  const std::vector<int64_t> numbers = file_numbers(set);
  const DataConfig& config = file.experiment.data;
  const data::MappedPictures pictures(config);
  const Field& target = set.fields.target();
  const std::array<uint8_t, 256> class_of_id = pictures.classes_of_ids(target);

  Confusion confusion(target.names.size());
  LongWork work("evaluating at full size", numbers.size());
  for (const int64_t number : numbers) {
    const data::MappedPicture& one = pictures.picture(number);
    std::string damage;  // rows of damaged pictures are there only if these are to be repaired
    const data::Image picture = data::read_image_file(one.picture, &damage);
    const data::LabelMap truth = pictures.map_of(one, data::ImageSides{picture.height, picture.width});
    confusion.add(truth, class_of_id, inference::map_of_picture(model, picture, options));
    work.advance();
  }

  const tasks::Task& task = tasks::find(model.info().task);
  tasks::Accumulated sums;
  sums.set(tasks::pixels::kConfusion, confusion.counts());
  ClassEvalReport report;
  report.output = task.output();
  report.total = {.part = set.evaluated,
                  .loss = kUndefined,
                  .scores = tasks::MetricTallies(task.metrics()).scores(sums, std::ssize(target.names)),
                  .rows = set.test.rows()};
  if (std::string cause = training::non_finite_weights(trained); !cause.empty()) {
    report.total.non_finite = NonFiniteRows{.rows = report.total.rows, .first = 0, .cause = std::move(cause)};
  }
  task.make_report({.dataset = set})->finish(sums, report);
  report.total.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace gpunn
