#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/progress.hpp>
#include <gpunn/training.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "execution/backend.hpp"
#include "execution/compiler.hpp"
#include "execution/executable.hpp"
#include "execution/profiler.hpp"
#include "execution/variables.hpp"
#include "plugins/plugin.hpp"
#include "storage/checkpoint.hpp"
#include "training/evaluation_part.hpp"
#include "training/layout.hpp"
#include "training/programs.hpp"
#include "training/schedule/schedule.hpp"

namespace gpunn::training {

class BatchStream;
class StepChecker;
struct Start;

using tasks::Totals;

// What a program gave for a batch of the test split: host memory, valid while it is looked at.
struct RowOutputs {
  int64_t first = 0;                   // row of the split
  std::span<const float> scores;       // [rows, outputs], of the model
  std::span<const float> predictions;  // [rows, outputs], made of them as the task says, in the units of the data set
  std::span<const float> losses;       // [rows]
};

// An experiment opened on a backend: model and data on the device, or the data streamed to it, parameters initialised,
// programs built on demand. Everything that trains, evaluates, predicts or measures goes through it.
class Session {
 public:
  // A profiler measures the training steps until it has enough, and what the host does. It must outlive the session.
  explicit Session(const Experiment& experiment, execution::Profiler* profiler = nullptr,
                   EvaluationPart part = EvaluationPart::validation);
  // The same with a data set that is already there: load_for()'s, or one of the sizes alone for a plan.
  Session(Experiment experiment, Dataset dataset, execution::Profiler* profiler = nullptr);
  ~Session();

  const Experiment& experiment() const { return experiment_; }
  const tasks::Task& task() const { return tasks::find(experiment_.task); }
  // Its `test` is what is evaluated, its `validation` empty.
  const Dataset& dataset() const { return dataset_; }  // the values of its splits are here only where it is streamed
  Residency residency() const { return residency_; }   // device or stream
  execution::Backend& backend() { return *backend_; }
  // What a resumed run asks for: the backend's name, or "check:A,B" where the training is checked.
  std::string backend_name() const;
  execution::Profiler* profiler() const { return profiler_; }  // may be null
  const ParameterLayout& layout() const { return layout_; }
  const ParameterLayout& buffers() const { return buffers_; }  // of variable kBuffers; total 0: there is none
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int64_t total_steps() const { return total_steps_; }
  int64_t samples_per_step() const { return experiment_.data.batch_size * experiment_.accumulate; }
  // "WARNING: ..." of what the user should know: a data set in place of the one asked for, copies through the host.
  // Empty: nothing.
  std::string notice() const;
  // Why the data set is streamed, where nobody asked for that; else empty.
  std::string streaming_notice() const;
  uint64_t arena_bytes() const;
  uint64_t persistent_bytes() const;
  uint64_t data_bytes() const;

  // Builds and binds the training step; the first step does it where nobody has.
  const execution::CompiledProgram& training();
  // So many steps, put on the stream without waiting; several at a launch where the backend captures graphs.
  // Where the experiment names two backends the second is compared with the first; throws Error where it departs.
  void train_steps(int64_t count);
  void train_step() { train_steps(1); }
  // How the steps are run: whether captured, and if not, why.
  const execution::Executable& training_executable() { return ready(training_bound()); }
  std::optional<BackendComparison> comparison() const;  // so far
  // The same, with `after` told of every op when it is done.
  void train_step_observed(const std::function<void(const graph::Node&)>& after);

  // The test split with the current parameters. With `after` op by op, as train_step_observed.
  EvalReport evaluate(const std::function<void(const graph::Node&)>& after = {});
  // The same, and `look` is told of every batch.
  EvalReport evaluate_rows(const std::function<void(const RowOutputs&)>& look);
  const execution::CompiledProgram& evaluation();
  // f32 [rows, outputs], what the task predicts of given samples (u8 or f32, [rows, ...] as the data set's).
  std::vector<float> predictions(const Split& samples);
  // What the first so many training steps get: augmented samples, in the units of the data set. For resident data.
  Split augmented_batches(int64_t steps);
  // The samples of the test split, as the data set has them.
  std::vector<std::byte> test_samples() const;
  // The first NaN or infinity in a value of the training program, for use between observed ops.
  std::optional<double> first_non_finite(graph::ValueId id);

  int64_t step();  // training steps done
  Totals totals() const;
  void reset_totals();
  std::vector<float> losses(int64_t first, int64_t last) const;  // of the steps [first, last), at most kLossHistorySize
  // Of the gradients, likewise; empty where they are not recorded.
  std::vector<float> gradient_norms(int64_t first, int64_t last) const;
  const Schedule& schedule() const { return schedule_; }
  float learning_rate_of_step(int64_t step) const { return schedule_.rates()[static_cast<std::size_t>(step)]; }
  // To be told of every epoch. True where the learning rates of the steps to come changed.
  bool epoch_ended(const EpochReport& epoch);

  // The whole state, and back. restore() throws Error listing every tensor that is missing, surplus or misshapen.
  void save_state(storage::Checkpoint& checkpoint);
  void restore_state(const storage::Checkpoint& checkpoint);
  // Takes what the start has for this model.
  void initialise_from(const Start& start);
  // The parameters and buffers alone, and the parameters' average where there is one: the model, without the state of
  // its training.
  void restore_parameters(const storage::Checkpoint& checkpoint);

 private:
  struct Bound;
  ProgramContext context() const;
  std::unique_ptr<Bound> bind(graph::Graph program);
  std::unique_ptr<Bound> bind_training(graph::Graph program);
  execution::Executable& ready(Bound& bound);
  // To be run node by node, which claimed runs of nodes are not; the same where there are none.
  execution::Executable& ready_op_by_op(Bound& bound);
  Bound& training_bound();
  Bound& evaluation_bound();
  int64_t evaluation_batch() const;
  LongWork evaluation_work() const;
  std::unique_ptr<BatchStream> evaluation_stream();
  EvalReport evaluate_by(Bound& bound, const std::function<void(int64_t steps)>& launch);
  void to_data_units(std::span<float> predictions) const;
  void check_memory();
  void* arena(uint64_t bytes);
  void place_data();
  void upload(const SplitType& type, const Split& split);
  void go_to(int64_t step);  // the training step that comes next, after the counter was written
  void initialise_parameters();
  void initialise(const char* variable, const ParameterLayout& layout, graph::Storage storage);
  // A line for each tensor of the model that the checkpoint lacks, has too many of, or in another shape.
  std::string model_mismatches(const storage::Checkpoint& checkpoint) const;
  void write_model(const storage::Checkpoint& checkpoint);
  void initialise_updates();  // what the optimizer and the average begin with
  void upload_normalisation();
  void upload_class_targets();
  void upload_rates();
  std::vector<float> history(const char* variable, int64_t first, int64_t last) const;
  void upload_mixup();

  Experiment experiment_;
  execution::Profiler* profiler_;
  Dataset dataset_;
  plugins::PluginRegistry registry_;
  std::unique_ptr<execution::Backend> backend_;
  std::unique_ptr<execution::Variables> variables_;
  ParameterLayout layout_, buffers_;
  Residency residency_ = Residency::device;
  SplitType train_split_, test_split_;
  int64_t steps_per_epoch_ = 0, total_steps_ = 0;
  Schedule schedule_;
  execution::Buffer arena_;
  std::unique_ptr<Bound> training_, evaluation_;
  std::unique_ptr<execution::Backend> second_;  // of `check:A,B`, until the checker has it
  std::unique_ptr<StepChecker> checker_;
};

}  // namespace gpunn::training
