#pragma once

#include <gpunn/training.hpp>

#include <chrono>
#include <optional>

#include "runs/run_folder.hpp"
#include "session/session.hpp"

namespace gpunn::training {

// One run: epochs of steps, validation, checkpoints, records.
class Trainer {
 public:
  Trainer(Session& session, RunFolder folder, RunOptions options);

  // Starts from the session's present state, without a checkpoint.
  void begin();
  // Starts from a checkpoint of this run, or in a new folder from one of another.
  void begin(const storage::Checkpoint& checkpoint);
  RunResult run();
  // The state of the last checkpoint, and the state that the training has now.
  const storage::Checkpoint& last_checkpoint() const { return snapshot_; }
  storage::Checkpoint checkpoint();

 private:
  using Clock = std::chrono::steady_clock;
  // The metric of best.h5 and early stopping.
  struct Progress {
    double best = 0;
    int64_t best_epoch = 0;  // 0: none yet
    int64_t best_step = 0;   // steps done at its end
    double watched = 0;      // of early stopping, at its best
    int64_t watched_epoch = 0;
    int64_t stale_epochs = 0;  // since then
  };

  void begin_folder();
  RunResult run_to_the_end();
  bool finished() const;
  bool stopped_early() const;
  bool stop_requested() const;
  // Rank 0's number of steps, and whether any rank is to stop: on all ranks, which would wait for one that decided
  // alone.
  int64_t agree_on(int64_t steps);
  bool as_first_rank(bool decision) const;
  std::vector<std::string> next_commands() const;
  EvalReport final_evaluation();
  void train_epoch();
  void set_stepping(bool stepping);
  void run_ahead(int64_t count);
  void tell_if_eager();
  void watch(const EarlyStoppingConfig& stopping, const EpochReport& epoch);
  void tell_if_never_best();
  void finish_epoch();
  void report_loader(EpochReport& epoch);
  void look();  // reads the losses since the last look; throws on NaN or infinity
  void report(bool record);
  EvalReport evaluate();
  void take_snapshot();
  void save(const std::vector<std::filesystem::path>& files);  // one state, to each of them in turn
  storage::Checkpoint best_checkpoint() const;
  void say(const std::string& text);
  // `what` became NaN or infinite in a step that counts from 0.
  [[noreturn]] void diverged(int64_t step, const std::string& what);
  [[noreturn]] void device_lost(const DeviceLostError& error);

  Session& session_;
  RunFolder folder_;
  RunOptions options_;
  RunResult result_;
  Progress progress_;
  std::string given_;                        // the experiment.yaml of the run folder, as it was written
  storage::Checkpoint snapshot_;             // where a diverged run is replayed from
  std::optional<storage::Checkpoint> best_;  // where there is no folder, and the training is to end with it
  int64_t step_ = 0;                         // done
  int64_t rows_ = 0;                         // seen in the epochs before the one at hand
  int64_t in_flight_ = 0;                    // steps after that which were begun and not waited for
  std::optional<double> gradient_norm_;      // of the last step looked at, where it is recorded
  int64_t looked_at_ = 0;                    // losses of the steps before this one are known to be finite
  bool eager_told_ = false;
  std::optional<LoaderCounts> loader_before_;  // of the epoch
  bool loader_told_ = false;
  bool stop_agreed_ = false;  // by all ranks, where there are several
  int64_t ahead_ = 1;         // steps to put on the stream before waiting for them
  Clock::time_point last_report_;
  double epoch_seconds_ = 0;  // of training in this epoch, in this process
  int64_t epoch_first_step_ = 0;
};

}  // namespace gpunn::training
