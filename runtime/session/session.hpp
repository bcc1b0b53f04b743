#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/progress.hpp>
#include <gpunn/training.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execution/measurement/profiler.hpp"
#include "execution/steps/compiler.hpp"
#include "execution/steps/executable.hpp"
#include "execution/steps/program_runner.hpp"
#include "feed/data_feed.hpp"
#include "feed/evaluation_part.hpp"
#include "feed/streamed_program.hpp"
#include "program/programs.hpp"
#include "program/sums.hpp"
#include "runs/training_state.hpp"
#include "session/schedule.hpp"
#include "session/training_length.hpp"
#include "storage/checkpoint.hpp"

namespace gpunn::training {

class StepChecker;

// An experiment opened on a backend: model and data on the device (or the data streamed to it), parameters initialised,
// step programs built on demand. Everything that trains, evaluates or measures uses a session.
class Session {
 public:
  // The profiler measures training steps until it has enough, and the host's work. It must outlive the session.
  static Session open(const Experiment& experiment, execution::Profiler* profiler = nullptr,
                      EvaluationPart part = EvaluationPart::validation);
  // The same with a data set that is already there: load_for()'s, or one of the sizes alone for a plan.
  // With a team it is one of the ranks that train together; each of them opens a session. With an origin it goes on
  // from there, and is given that state by restore_state().
  static Session open(const Experiment& experiment, Dataset dataset, execution::Profiler* profiler = nullptr,
                      std::shared_ptr<distributed::Team> team = nullptr, const Origin& origin = {});
  // Plans the first of this many ranks, without running it.
  static Session open_planned(const Experiment& experiment, Dataset dataset, int world);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) = delete;
  ~Session();

  const Experiment& experiment() const { return *experiment_; }
  const tasks::Task& task() const { return tasks::find(experiment_->task); }
  const DataFeed& data() const { return *data_; }
  const Dataset& dataset() const { return data_->dataset(); }  // its `test` is what is evaluated
  execution::Backend& backend() { return runner_->backend(); }
  // The backend of a resumed run: its name, or "check:A,B" for a checked training.
  std::string backend_name() const;
  execution::Profiler* profiler() const { return profiler_; }  // may be null
  // nullptr: this process trains alone. With a team, all ranks call train_steps, evaluate, sums and save_state alike.
  distributed::Team* team() const { return team_.get(); }
  Ranks ranks() const { return ranks_; }
  const ParameterLayout& layout() const { return state_->parameters(); }
  const ParameterLayout& buffers() const { return state_->buffers(); }
  const TrainingLength& length() const { return length_; }
  int64_t steps_per_epoch() const { return length_.steps_per_epoch; }
  int64_t total_steps() const { return length_.steps; }
  int64_t samples_per_step() const { return experiment_->data.batch_size * experiment_->accumulate; }
  // "WARNING: ..." for the user: another data set in place of a missing one, copies through the host. Empty: none.
  std::string notice() const;
  uint64_t arena_bytes() const { return runner_->arena_bytes(); }
  // What an experiment with the same data and parameters would have.
  uint64_t arena_bytes_of(const Experiment& other) const;
  uint64_t persistent_bytes() const { return runner_->persistent_bytes(); }
  uint64_t data_bytes() const { return variables().bytes(graph::Storage::data); }

  // Whether the last layer's outputs have a loss: not those of a detector from ONNX, which suppression has gone over.
  bool has_loss() const;

  // Builds and binds the training step. The first step does so if it is not called before.
  const execution::CompiledProgram& training();
  // Enqueues this many steps without waiting; several in one launch if the backend captures graphs. If the experiment
  // names two backends, the second is compared with the first; throws Error if it differs.
  void train_steps(int64_t count);
  void train_step() { train_steps(1); }
  // Statistics of the stream of training batches; none if the data set is resident.
  std::optional<LoaderCounts> loader() const;
  // How the steps are run: whether captured, and if not, why.
  const execution::Executable& training_executable() { return runner_->ready(training_step().program); }
  std::optional<BackendComparison> comparison() const;  // so far
  // The same, with `after` told of every op when it is done.
  void train_step_observed(const std::function<void(const graph::Node&)>& after);

  // The test split with the current parameters. With `after` op by op, as train_step_observed.
  EvalReport evaluate(const std::function<void(const graph::Node&)>& after = {});
  // The same, and calls `look` after every batch.
  EvalReport evaluate_rows(const std::function<void(const tasks::EvaluatedRows&)>& look);
  // What the last evaluation added up on the device.
  tasks::Accumulated evaluated_sums() const { return sums_of(tasks::Phase::evaluation).read(nullptr); }
  // So many bytes of evaluated rows with sizes of their own stay on the device between evaluations.
  void keep_singles(uint64_t bytes) { kept_bytes_ = bytes; }
  const execution::CompiledProgram& evaluation();
  // The samples of the first training steps: augmented, in the units of the data set. For resident data.
  Split augmented_batches(int64_t steps);
  // The first NaN or infinity in a value of the training step, for use between observed ops.
  std::optional<double> first_non_finite(graph::ValueId id);

  int64_t step();  // training steps done
  // What the training steps since the last reset_sums() have added up, over all ranks.
  tasks::Accumulated sums() const;
  void reset_sums();
  Scores training_scores(const tasks::Accumulated& sums) const;  // the metrics that the training keeps
  std::vector<float> losses(int64_t first, int64_t last) const;  // of the steps [first, last), at most kLossHistorySize
  // Of the gradients, likewise; empty where they are not recorded.
  std::vector<float> gradient_norms(int64_t first, int64_t last) const;
  std::optional<LossScale> loss_scale() const;  // where the loss is scaled
  const Schedule& schedule() const { return schedule_; }
  float learning_rate_of_step(int64_t step) const { return schedule_.rates()[static_cast<std::size_t>(step)]; }
  // Call it after every epoch. True if the learning rates of later steps changed.
  bool epoch_ended(const EpochReport& epoch);

  // The whole state, and back. restore() throws Error listing every tensor that is missing, surplus or misshapen.
  void save_state(storage::Checkpoint& checkpoint);
  void restore_state(const storage::Checkpoint& checkpoint);
  // Loads the start's tensors for this model.
  void initialise_from(const Start& start) { state_->initialise_from(start); }
  // The model alone, without the state of its training.
  void restore_parameters(const storage::Checkpoint& checkpoint) { state_->restore_model(checkpoint); }

 private:
  struct Parts;
  explicit Session(Parts parts);
  static Session open(Parts parts, Dataset dataset);
  ProgramContext context_of(const Experiment& experiment) const;
  ProgramContext context() const { return context_of(*experiment_); }
  execution::Variables& variables() { return runner_->variables(); }
  const execution::Variables& variables() const { return runner_->variables(); }
  StreamedProgram& training_step();
  StreamedProgram& evaluation_step();
  execution::RunnableProgram compile_training() const;
  LongWork evaluation_work() const;
  void advance(LongWork& work, int64_t batches);
  SumVariables sums_of(tasks::Phase phase) const;
  void write_counters(int64_t step);
  // An evaluation on its way: what it adds up on the host, and since when.
  struct Evaluation;
  EvalReport report_of(const Evaluation& evaluation, distributed::Team* team) const;
  EvalReport evaluate_singles(const std::function<void(const tasks::EvaluatedRows&)>& look);
  // An evaluated row with a size of its own.
  struct SingleRow;
  std::unique_ptr<execution::RunnableProgram> compile_single(const SingleRow& row);
  void run_single(const SingleRow& row, execution::RunnableProgram& program, Evaluation& evaluation,
                  const std::function<void(const tasks::EvaluatedRows&)>& look);
  void drop_single(const SingleRow& row);
  // The batches of these ranks that are this one's.
  EvalReport evaluate_by(StreamedProgram& program, Ranks ranks, Evaluation& evaluation,
                         const std::function<void(int64_t steps)>& launch);
  void check_memory();
  uint64_t evaluation_arena_bytes();  // 0: there is nothing to evaluate
  void upload_tables();
  void upload_rates();
  void upload_mixup();
  std::vector<float> history(const char* variable, int64_t first, int64_t last) const;

  // Each in a place of its own: they refer to one another.
  std::unique_ptr<const Experiment> experiment_;
  execution::Profiler* profiler_;
  std::shared_ptr<distributed::Team> team_;
  Ranks ranks_;
  std::unique_ptr<execution::ProgramRunner> runner_;
  std::unique_ptr<DataFeed> data_;
  std::unique_ptr<TrainingState> state_;
  TrainingLength length_;
  Schedule schedule_;
  std::unique_ptr<StreamedProgram> training_, evaluation_;
  std::vector<std::unique_ptr<execution::RunnableProgram>> singles_;  // of evaluated rows with sizes of their own
  uint64_t kept_bytes_ = uint64_t{256} << 20;
  std::unique_ptr<execution::Backend> second_;  // of `check:A,B`, until the checker has it
  std::unique_ptr<StepChecker> checker_;
  std::unique_ptr<tasks::FrozenFeatures> frozen_;  // of a loss that compares images by their features
};

}  // namespace gpunn::training
