#pragma once

#include <gpunn/data.hpp>
#include <gpunn/evaluation_part.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/export.h>
#include <gpunn/metric.hpp>
#include <gpunn/model.hpp>
#include <gpunn/profile.hpp>
#include <gpunn/ranks.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gpunn {

// The factor by which a training in f16 multiplies the gradient of its loss, and the steps so far whose gradients
// overflowed.
struct LossScale {
  double scale = 1;
  int64_t skipped_steps = 0;
};

// About batches that the host makes or gathers while the device trains.
struct LoaderReport {
  double samples_per_second = 0;  // while the loader works
  double waited_seconds = 0;      // time in which the device waited for a batch
};

// Progress that a listener receives while training; times in seconds.
struct StepReport {
  int64_t epoch = 0, epochs = 0;  // epoch counts from 1
  int64_t step = 0, steps = 0;    // in this epoch
  int64_t global_step = 0;
  double loss = 0;  // the running mean of this epoch
  Scores scores;    // running means of this epoch, of the metrics kept while training
  double learning_rate = 0;
  double samples_per_second = 0;
  double seconds_left = 0;
  std::optional<double> gradient_norm = {};  // of this step, before clip_norm; empty: not recorded
  std::optional<LossScale> loss_scale = {};  // after this step; f16 only
};

// Evaluated rows whose outputs or loss are NaN or infinite.
struct NonFiniteRows {
  int64_t rows = 0;
  int64_t first = 0;  // counts from 0
  std::string cause;  // the likely one, as a sentence's end; empty if it was not looked for
};

// Loss and metrics of a model on a part of the data.
struct EvalReport {
  EvaluationPart part = EvaluationPart::test;
  double loss = 0;
  Scores scores;
  int64_t rows = 0;
  double seconds = 0;
  std::optional<NonFiniteRows> non_finite = {};  // of an evaluation that looks at each row, as evaluate_classes() does
};

// An epoch of a training, as a line of progress shows it.
struct EpochReport {
  int64_t epoch = 0;
  int64_t global_step = 0;
  double train_loss = 0;
  Scores train_scores;  // of the metrics kept while training
  EvalReport evaluation;
  double learning_rate = 0;
  double train_seconds = 0;
  double samples_per_second = 0;
  bool best = false;
  std::optional<LossScale> loss_scale = {};  // f16 only
  std::optional<LoaderReport> loader = {};   // of batches that the host makes
};

// A training that begins.
struct RunStart {
  const Experiment& experiment;
  std::filesystem::path run;
  std::string backend;  // the backend in use, which may differ from the experiment's
  std::string device;   // its name
};

// Receives messages and progress. Called on the training thread, between steps.
class GPUNN_API TrainingListener {
 public:
  virtual ~TrainingListener() = default;
  virtual void on_message(const std::string& /*text*/) {}  // an announcement the user must see
  virtual void on_start(const RunStart&) {}
  virtual void on_step(const StepReport&) {}
  // The loss of each step, in order, some steps late; `first` counts from 0.
  virtual void on_losses(int64_t /*first*/, const std::vector<float>& /*losses*/) {}
  virtual void on_epoch(const EpochReport&) {}
};

// Result of `backend: check:A,B`: the largest differences of B from A. A trained.
struct BackendComparison {
  std::string trained, checked;  // A and B
  int64_t steps = 0;
  double op_error = 0;              // largest difference of an op on equal inputs, as a share of the tolerance
  std::string op;                   // "CONV2D 'conv2' at step 7"; empty: all bits equal
  double parameter_difference = 0;  // largest difference of a parameter after one step from the same state
  std::string parameter;            // "conv1.weight[0, 0, 2, 1] at step 9"; empty: all bits equal
};

// The result of a training.
struct RunResult {
  std::filesystem::path run;
  std::string backend;
  std::vector<EpochReport> epochs;
  EvalReport final_evaluation;
  Metric monitor;          // the metric of best_metric
  double best_metric = 0;  // kUndefined without a best epoch
  int64_t best_epoch = 0;
  bool stopped_early = false;
  bool interrupted = false;
  double train_seconds = 0;  // of the steps only
  double total_seconds = 0;
  uint64_t arena_bytes = 0, persistent_bytes = 0, data_bytes = 0;
  std::optional<ProfileReport> profile;         // if it was requested
  std::optional<BackendComparison> comparison;  // if two backends were requested
  std::vector<std::string> next;                // commands for the run, as "gpunn eval RUN"; of arrays: none
};

// Options of a training beside its experiment.
struct RunOptions {
  TrainingListener* listener = nullptr;
  const std::atomic<bool>* stop = nullptr;  // set by a signal handler: checkpoint and return
  std::filesystem::path run_folder = {};    // empty: <runs>/<name>/<time>
  std::optional<ProfileOptions> profile = {};
  // The program gpunn, which is started to find the op at which a device was lost (`gpunn diagnose`). Empty: the error
  // says how to search for it.
  std::filesystem::path program = {};
  // resume(): the schedule keeps the length that it had, although the training becomes longer or shorter.
  bool keep_schedule = false;
  // This process is one of several that train together: all of them call the same function with the same experiment.
  // Rank 0 has the run folder; the results of the others name none.
  std::optional<RankPlace> place = {};
};

// Trains in a new run folder.
GPUNN_API RunResult train(const Experiment& experiment, const RunOptions& options = {});

// The same on a data set in the calling program's memory, called kArrays.
GPUNN_API RunResult train(const Experiment& experiment, Dataset dataset, const RunOptions& options = {});

// Continues a run from its last.h5, in the same folder.
GPUNN_API RunResult resume(const std::filesystem::path& run, const std::vector<Override>& overrides,
                           const RunOptions& options = {});
// The same with the data set in memory with which the run was started.
GPUNN_API RunResult resume(const std::filesystem::path& run, const std::vector<Override>& overrides, Dataset dataset,
                           const RunOptions& options = {});

// Steps of a run in which a device was lost, counted from 1.
struct DiagnoseRequest {
  std::filesystem::path run;
  int64_t first_step = 0;    // 0: the step after the last checkpoint
  int64_t last_step = 0;     // 0: the last step of that epoch
  std::string backend = {};  // empty: the one in the checkpoint
};

// The result of diagnose(): where the device was lost.
struct GPUNN_API FaultReport {
  int64_t first_step = 0, last_step = 0;  // steps examined op by op; the evaluation follows if an epoch ends
  bool found = false;                     // whether the device was lost again
  int64_t step = 0;                       // the step in which it was lost; 0: in the evaluation
  std::string op = {};                    // "CONV2D 'conv1'"; empty: before first_step
  std::string plugin = {};                // the backend of that kernel
  std::string error = {};
  std::string text() const;  // a part of a sentence: "the device is lost in CONV2D 'conv1' of step 8, ..."
};

// Repeats the steps of a run from its last checkpoint and waits after each op, to find the op at which the device is
// lost. Changes nothing in the run folder.
GPUNN_API FaultReport diagnose(const DiagnoseRequest& request);

// A trained model: a run folder (its best.h5, else last.h5), a checkpoint or an ONNX file.
struct TrainedModel {
  std::filesystem::path path;
  std::vector<Override> overrides;
};

// Evaluates the model on the test data. Throws DeviceLostError if the device fails.
GPUNN_API EvalReport evaluate(const TrainedModel& model, TrainingListener* listener = nullptr);

// A model's answer for one sample.
struct Prediction {
  std::string source;                 // the image file, "table.csv:12" for a line, or "mnist test row 7"
  std::vector<ClassProbability> top;  // of a classification or a multi-label task
  std::vector<NamedValue> values;     // of a regression
  std::optional<int64_t> label;       // if known
  std::vector<DetectedBox> boxes;     // of a detection, in pixels of the image
  std::string image_id = {};          // COCO's id of a row of the test data, as JSON; empty: unknown
  std::optional<LabelMap> map = {};   // of a segmentation, in pixels of the image
};

// The written file, and its number of tensors and values.
struct ExportReport {
  std::filesystem::path file;
  int64_t tensors = 0, numbers = 0;
  std::vector<std::string> unnamed;  // tensors without a row in the table of names: they keep the model's names
};

// Writes the weights of a run folder (its best.h5, else last.h5), a checkpoint or an ONNX file to a .safetensors file,
// under the model's names. `names` is a table as for `init_from.names`: tensors then get the names on its left, and
// each batch norm also gets PyTorch's `num_batches_tracked`. The override model.input_shape has sizes that an ONNX file
// leaves open. Throws Error(usage) for another ending, or if the table
// does not map each new name back to one of the model's.
GPUNN_API ExportReport export_weights(const std::filesystem::path& model, const std::filesystem::path& file,
                                      const std::filesystem::path& names = {},
                                      const std::vector<Override>& overrides = {});

// The samples to predict.
struct PredictRequest {
  // Images, folders of images, CSV files with a row of features on each line, and patterns ("*.png") of such files.
  std::vector<std::filesystem::path> inputs;
  std::vector<int64_t> rows;  // rows of the test split, which is then read
  int64_t top_k = 3;
  // Of a segmentation: each image goes in tiles, as in segment_image(). Empty: as one sample.
  std::optional<FullSize> full_size = {};
  Damaged damaged = Damaged::error;
  DamagedListener on_damaged = {};  // without it, Damaged::error throws once all others are answered
};
// Needs the data set only if rows are requested.
GPUNN_API std::vector<Prediction> predict(const TrainedModel& model, const PredictRequest& request);
// The same for a model that is loaded already.
GPUNN_API std::vector<Prediction> predict(const Model& model, const PredictRequest& request);

}  // namespace gpunn
