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

// Of batches that the host makes or gathers while the device trains.
struct LoaderReport {
  double samples_per_second = 0;  // while it is at work
  double waited_seconds = 0;      // that the device had nothing to do because a batch was not there
};

// Reports to a listener while training; times in seconds.
struct StepReport {
  int64_t epoch = 0, epochs = 0;  // epoch counts from 1
  int64_t step = 0, steps = 0;    // in this epoch
  int64_t global_step = 0;
  double loss = 0;  // the running mean of this epoch
  Scores scores;    // likewise, of the metrics that are kept while training
  double learning_rate = 0;
  double samples_per_second = 0;
  double seconds_left = 0;
  std::optional<double> gradient_norm = {};  // of this step, before clip_norm; where it is recorded
  std::optional<LossScale> loss_scale = {};  // after this step, of a training in f16
};

// Loss and metrics of a model on a part of the data.
struct EvalReport {
  EvaluationPart part = EvaluationPart::test;
  double loss = 0;
  Scores scores;
  int64_t rows = 0;
  double seconds = 0;
};

// An epoch of a training, as a line of progress shows it.
struct EpochReport {
  int64_t epoch = 0;
  int64_t global_step = 0;
  double train_loss = 0;
  Scores train_scores;  // of the metrics that are kept while training
  EvalReport evaluation;
  double learning_rate = 0;
  double train_seconds = 0;
  double samples_per_second = 0;
  bool best = false;
  std::optional<LossScale> loss_scale = {};  // of a training in f16
  std::optional<LoaderReport> loader = {};   // where batches come from the host
};

// A training that begins.
struct RunStart {
  const Experiment& experiment;
  std::filesystem::path run;
  std::string backend;  // that runs it, whatever the experiment says
  std::string device;   // its name
};

// Prints, records, draws. Called on the training thread, between steps.
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

// Of `backend: check:A,B`: how far B came from A, which trained.
struct BackendComparison {
  std::string trained, checked;  // A and B
  int64_t steps = 0;
  double op_error = 0;  // the largest difference of an op on equal inputs, as a share of what rounding allows
  std::string op;       // "CONV2D 'conv2' at step 7"; empty: equal bits throughout
  double parameter_difference = 0;  // the largest of a parameter after one step from the same state
  std::string parameter;            // "conv1.weight[0, 0, 2, 1] at step 9"; likewise
};

// The result of a training.
struct RunResult {
  std::filesystem::path run;
  std::string backend;
  std::vector<EpochReport> epochs;
  EvalReport final_evaluation;
  Metric monitor;  // what best_metric is
  double best_metric = 0;
  int64_t best_epoch = 0;
  bool stopped_early = false;
  bool interrupted = false;
  double train_seconds = 0;  // steps alone
  double total_seconds = 0;
  uint64_t arena_bytes = 0, persistent_bytes = 0, data_bytes = 0;
  std::optional<ProfileReport> profile;         // where one was asked for
  std::optional<BackendComparison> comparison;  // where two backends were asked for
};

// Options of a training beside its experiment.
struct RunOptions {
  TrainingListener* listener = nullptr;
  const std::atomic<bool>* stop = nullptr;  // set by a signal handler: checkpoint and return
  std::filesystem::path run_folder = {};    // empty: <runs>/<name>/<time>
  std::optional<ProfileOptions> profile = {};
  // The program gpunn, started anew to find the op at which a device was lost (`gpunn diagnose`); empty: the error says
  // how to look for it.
  std::filesystem::path program = {};
  // This process is one of several that train together: all of them call the same function with the same experiment.
  // Rank 0 has the run folder; the results of the others name none.
  std::optional<RankPlace> place = {};
};

// Trains in a new run folder.
GPUNN_API RunResult train(const Experiment& experiment, const RunOptions& options = {});

// The same on a data set of the calling program, called kArrays.
GPUNN_API RunResult train(const Experiment& experiment, Dataset dataset, const RunOptions& options = {});

// Goes on from last.h5 of a run folder, in the same folder.
GPUNN_API RunResult resume(const std::filesystem::path& run, const std::vector<Override>& overrides,
                           const RunOptions& options = {});
// The same with the data set of the calling program that the run was begun with.
GPUNN_API RunResult resume(const std::filesystem::path& run, const std::vector<Override>& overrides, Dataset dataset,
                           const RunOptions& options = {});

// Steps of a run in which a device was lost, counted from 1.
struct DiagnoseRequest {
  std::filesystem::path run;
  int64_t first_step = 0;    // 0: the one after the last checkpoint
  int64_t last_step = 0;     // 0: the last of that epoch
  std::string backend = {};  // empty: the one that the checkpoint names
};

// The result of diagnose(): where the device was lost.
struct GPUNN_API FaultReport {
  int64_t first_step = 0, last_step = 0;  // looked at op by op; then the evaluation, where an epoch ends
  bool found = false;                     // the device was lost again
  int64_t step = 0;                       // in this one; 0: in the evaluation
  std::string op = {};                    // "CONV2D 'conv1'"; empty: before first_step
  std::string plugin = {};                // whose kernel it is
  std::string error = {};
  std::string text() const;  // a part of a sentence: "the device is lost in CONV2D 'conv1' of step 8, ..."
};

// Repeats the steps of a run from its last checkpoint, with a wait behind each op, to find the one at which the device
// is lost. Changes nothing in the run folder.
GPUNN_API FaultReport diagnose(const DiagnoseRequest& request);

// The place of a trained model: a run folder (its best.h5, else last.h5), a checkpoint or an ONNX file.
struct TrainedModel {
  std::filesystem::path path;
  std::vector<Override> overrides;
};

// Evaluates the model on the test data. Throws DeviceLostError where the device fails.
GPUNN_API EvalReport evaluate(const TrainedModel& model, TrainingListener* listener = nullptr);

// The answer of a model to one sample.
struct Prediction {
  std::string source;                 // the image file, "table.csv:12" of a line, or "mnist test row 7"
  std::vector<ClassProbability> top;  // of a classification or of several labels
  std::vector<NamedValue> values;     // of a regression
  std::optional<int64_t> label;       // where it is known
  std::vector<DetectedBox> boxes;     // of a detection, in pixels of the image
};

// The file that was written, and how many tensors and numbers it has.
struct ExportReport {
  std::filesystem::path file;
  int64_t tensors = 0, numbers = 0;
  std::vector<std::string> unnamed;  // tensors that the table of names has no row for: they keep the model's names
};

// Writes the weights of a run folder (its best.h5, else last.h5), a checkpoint or an ONNX file as a .safetensors file,
// under the names that they have in the model. With `names`, a table as `init_from.names` takes it, they have the names
// on its left, and each batch norm has PyTorch's `num_batches_tracked` too. Throws Error(usage) for another ending, and
// where the table does not lead from a name there back to the model's.
GPUNN_API ExportReport export_weights(const std::filesystem::path& model, const std::filesystem::path& file,
                                      const std::filesystem::path& names = {});

// Which samples are predicted.
struct PredictRequest {
  // Images, folders of images, CSV files with a row of features a line, and patterns ("*.png") of such.
  std::vector<std::filesystem::path> inputs;
  std::vector<int64_t> rows;  // of the test split, which is read for them
  int64_t top_k = 3;
};
// Without rows, no data set is needed.
GPUNN_API std::vector<Prediction> predict(const TrainedModel& model, const PredictRequest& request);
// The same of a model that is loaded.
GPUNN_API std::vector<Prediction> predict(const Model& model, const PredictRequest& request);

}  // namespace gpunn
