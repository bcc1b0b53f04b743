#include "training/trainer.hpp"

#include <gpunn/clock.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "common/text.hpp"
#include "config/values.hpp"
#include "feed/model_samples.hpp"
#include "program/loss_scale.hpp"
#include "runs/model_info.hpp"
#include "runs/rank_files.hpp"
#include "session/check/summary.hpp"
#include "session/metric.hpp"
#include "session/notices.hpp"
#include "training/device_loss.hpp"
#include "training/divergence.hpp"
#include "training/environment.hpp"

namespace gpunn::training {

namespace {

// How often a listener is told of a step; records go by steps, not by time, so that they can be compared.
constexpr std::chrono::milliseconds kReportInterval{100};

// How far it is to the next multiple.
int64_t until_multiple(int64_t step, int64_t of) { return of - step % of; }

bool all_finite(const storage::StoredTensor& tensor) {
  for (std::size_t i = 0; i + sizeof(float) <= tensor.values.size(); i += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, tensor.values.data() + i, sizeof(float));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// Which limit of the training's length to raise: of the two that there are, the one that ends it.
std::string limit_ahead(const Session& session) {
  const int64_t most = session.experiment().max_steps;
  return most > 0 && session.total_steps() == most ? "training.max_steps a larger value, or 0 for no limit"
                                                   : "training.epochs a larger value";
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Trainer::Trainer(Session& session, RunFolder folder, RunOptions options)
    : session_(session), folder_(std::move(folder)), options_(std::move(options)) {
  result_.backend = session_.backend_name();
  session_.training();
  for (const std::string& notice :
       {folder_.lock_notice(), session_.notice(), session_.data().streaming_notice(),
        schedule_notice(session_.schedule()),
        single_number_notice(session_.experiment(), model_samples(session_.dataset()),
                             session_.team() == nullptr ? 1 : session_.team()->world()),
        moving_statistics_notice(session_.experiment(), session_.layout(), session_.buffers())}) {
    if (!notice.empty()) say(notice);
  }
}

void Trainer::say(const std::string& text) {
  folder_.log(text);
  if (options_.listener != nullptr) options_.listener->on_message(text);
}

void Trainer::begin() { begin_folder(); }

void Trainer::begin_folder() {
  given_ = session_.experiment().text;
  folder_.write_given(session_.experiment());
  folder_.write_resolved(session_.experiment());
  folder_.write_environment(environment_record(session_), "environment.json");
  save({folder_.last()});
  folder_.publish(session_.task(), session_.dataset().evaluated);
}

void Trainer::begin(const storage::Checkpoint& from) {
  const std::string data_notice = resumed_data_notice(from, session_.dataset());
  session_.restore_state(from);
  const auto counter = [&](const char* name) {
    const auto found = from.counters.find(name);
    return found == from.counters.end() ? int64_t{0} : found->second;
  };
  const auto metric = [&](const char* name) {
    const auto found = from.metrics.find(name);
    return found == from.metrics.end() ? 0.0 : found->second;
  };
  if (const int64_t per_epoch = counter("steps_per_epoch"); per_epoch != session_.steps_per_epoch()) {
    throw Error("the run has " + std::to_string(per_epoch) + " steps an epoch, with these settings it would have " +
                    std::to_string(session_.steps_per_epoch()) +
                    ": its place in the data would be lost. Resume with the same data and data.batch_size",
                ExitCode::usage);
  }
  if (session_.step() > session_.total_steps()) {
    throw Error("the run has done " + std::to_string(session_.step()) + " steps, more than the " +
                    std::to_string(session_.total_steps()) + " asked for; give " + limit_ahead(session_),
                ExitCode::usage);
  }
  progress_ = {.best = metric("best"),
               .best_epoch = counter("best_epoch"),
               .best_step = counter("best_step"),
               .watched = metric("watched"),
               .watched_epoch = counter("watched_epoch"),
               .stale_epochs = counter("stale_epochs")};
  step_ = looked_at_ = session_.step();
  rows_ = std::max<int64_t>(counter("rows") - std::llround(session_.sums().total(tasks::Total::rows)), 0);
  given_ = from.given;
  snapshot_ = from;
  const bool resumable = !folder_.is_none() && !folder_.is_new();
  const std::string stretched = stretched_schedule_notice(session_, step_, counter("total_steps"), resumable);
  if (!stretched.empty() && !finished()) say(stretched);
  if (folder_.is_new()) return begin_folder();
  const bool goes_on = !finished() && session_.length().in_epoch(step_) != 0;
  folder_.rewind(step_, goes_on, session_.task(), session_.dataset().evaluated);
  // A run that does nothing leaves last.h5 as it is, whose settings resolved.yaml has.
  if (!finished()) folder_.write_resolved(session_.experiment());
  folder_.write_environment(environment_record(session_), "environment-from-step-" + std::to_string(step_) + ".json");
  if (!data_notice.empty()) say(data_notice);
  if (folder_.is_none()) return;
  const std::string larger = stopped_early() ? "early_stopping.patience a larger value" : limit_ahead(session_);
  say(finished() ? "already finished after " + std::to_string(step_) + " steps; to go on, give " + larger
                 : "resumed at step " + std::to_string(step_) + " of " + std::to_string(session_.total_steps()));
}

bool Trainer::finished() const { return step_ >= session_.total_steps() || stopped_early(); }

bool Trainer::stopped_early() const {
  const auto& stopping = session_.experiment().early_stopping;
  return stopping && progress_.stale_epochs >= stopping->patience && step_ < session_.total_steps();
}

bool Trainer::stop_requested() const {
  if (session_.team() != nullptr) return stop_agreed_;
  return options_.stop != nullptr && options_.stop->load();
}

int64_t Trainer::agree_on(int64_t steps) {
  distributed::Team* const team = session_.team();
  if (team == nullptr) return steps;
  const bool stop = options_.stop != nullptr && options_.stop->load();
  const std::vector<double> sums = team->sums({team->speaks() ? static_cast<double>(steps) : 0.0, stop ? 1.0 : 0.0});
  stop_agreed_ = stop_agreed_ || sums[1] > 0;
  return static_cast<int64_t>(sums[0]);
}

bool Trainer::as_first_rank(bool decision) const {
  distributed::Team* const team = session_.team();
  return team == nullptr ? decision : team->any(team->speaks() && decision);
}

RunResult Trainer::run() {
  try {
    return run_to_the_end();
  } catch (const DeviceLostError& error) {
    device_lost(error);
  }
}

RunResult Trainer::run_to_the_end() {
  const auto start = Clock::now();
  result_.run = folder_.path();
  const std::string device = session_.backend().info().name;
  folder_.log("training " + session_.experiment().name + " on " + result_.backend + ", " + device + ", " +
              std::to_string(session_.total_steps() - step_) + " steps to go");
  if (options_.listener != nullptr) {
    options_.listener->on_start({session_.experiment(), folder_.path(), result_.backend, device});
  }
  try {
    while (!finished() && !stop_requested()) train_epoch();
  } catch (const Error& error) {
    folder_.log(error.what());
    throw;
  }
  result_.comparison = session_.comparison();
  if (result_.comparison) say(summary(*result_.comparison));

  result_.interrupted = stop_requested() && !finished();
  if (result_.interrupted) {
    save({folder_.last()});
    folder_.log("interrupted after step " + std::to_string(step_) + "; `gpunn resume " +
                shell_word(folder_.path().string()) + "` goes on");
  }
  result_.stopped_early = stopped_early();
  tell_if_never_best();
  result_.final_evaluation = final_evaluation();
  result_.monitor = tasks::monitored(session_.experiment().checkpoint.monitor);
  result_.best_metric = progress_.best_epoch == 0 ? kUndefined : progress_.best;
  result_.best_epoch = progress_.best_epoch;
  result_.arena_bytes = session_.arena_bytes();
  result_.persistent_bytes = session_.persistent_bytes();
  result_.data_bytes = session_.data_bytes();
  result_.total_seconds = seconds_since(start);
  result_.next = next_commands();
  return result_;
}

// What a user can do with the run. No command can read arrays that a program trained on.
std::vector<std::string> Trainer::next_commands() const {
  if (folder_.path().empty() || session_.dataset().name == kArrays) return {};
  const std::string run = shell_word(folder_.path().string());
  if (result_.interrupted) return {"gpunn resume " + run};
  return {"gpunn eval " + run, "gpunn " + tasks::find(session_.experiment().task).command(run)};
}

// Of the last epoch's weights, or where the experiment asks for it of the best's, which the session then has.
EvalReport Trainer::final_evaluation() {
  const auto& stopping = session_.experiment().early_stopping;
  const bool last_is_best = progress_.best_step >= step_;
  if (stopping && stopping->restore_best && !result_.interrupted && progress_.best_epoch > 0 && !last_is_best) {
    session_.restore_parameters(best_checkpoint());
    say("ends with the weights of epoch " + std::to_string(progress_.best_epoch) + ", the best by " +
        stopping->monitor);
    return evaluate();
  }
  return result_.epochs.empty() ? evaluate() : result_.epochs.back().evaluation;
}

// Undefined without rows to evaluate.
EvalReport Trainer::evaluate() {
  if (session_.data().evaluates()) return session_.evaluate();
  return {.part = session_.dataset().evaluated, .loss = kUndefined, .scores = {}};
}

storage::Checkpoint Trainer::best_checkpoint() const {
  if (session_.team() != nullptr) return load_on_all_ranks(*session_.team(), folder_.best());
  return best_ ? *best_ : storage::load_checkpoint(folder_.best());
}

void Trainer::set_stepping(bool stepping) {
  if (session_.team() != nullptr) session_.team()->set_stepping(stepping);
}

void Trainer::train_epoch() {
  const Experiment& experiment = session_.experiment();
  const int64_t per_epoch = session_.steps_per_epoch();
  const TrainingLength& length = session_.length();
  const int64_t end = std::min(length.end_of_epoch(step_), session_.total_steps());
  const int64_t record_every =
      experiment.log_every_steps > 0 ? experiment.log_every_steps : std::max<int64_t>(per_epoch / 10, 1);
  epoch_first_step_ = step_;
  epoch_seconds_ = 0;
  loader_before_ = session_.loader();
  if (length.in_epoch(step_) == 0) {
    rows_ += std::llround(session_.sums().total(tasks::Total::rows));
    session_.reset_sums();
  }

  auto start = Clock::now();
  last_report_ = start;
  while (step_ < end && !stop_requested()) {
    const int64_t save_every = experiment.checkpoint.every_steps;
    // The first step prepares kernels, which may take longer on one rank, as what rank 0 writes does.
    set_stepping(result_.train_seconds > 0 || step_ > epoch_first_step_);
    const int64_t steps = agree_on(std::min({ahead_, end - step_, until_multiple(step_, record_every),
                                             save_every > 0 ? until_multiple(step_, save_every) : end - step_,
                                             kLossHistorySize - (step_ - looked_at_)}));
    if (stop_requested()) break;
    run_ahead(steps);
    const bool record = step_ % record_every == 0 && length.in_epoch(step_) != 0;
    const bool save_now =
        experiment.checkpoint.every_steps > 0 && step_ % experiment.checkpoint.every_steps == 0 && step_ < end;
    const bool history_full = step_ - looked_at_ >= kLossHistorySize;
    // All ranks know of the others, and need not meet.
    if (record || save_now || history_full ||
        as_first_rank(options_.listener != nullptr && Clock::now() - last_report_ >= kReportInterval)) {
      set_stepping(false);
      look();
      epoch_seconds_ += seconds_since(start);
      report(record);
      if (save_now) save({folder_.last()});
      start = Clock::now();
    }
  }
  set_stepping(false);
  look();
  epoch_seconds_ += seconds_since(start);
  result_.train_seconds += epoch_seconds_;
  if (step_ == end) finish_epoch();
  if (session_.team() != nullptr) session_.team()->set_prepared();
}

// Steps, and waits for them. `ahead_` becomes as many as take about the time between two reports: so that steps may
// share a launch, and yet an interrupt is heeded and a report made in time, however long a step takes.
void Trainer::run_ahead(int64_t count) {
  const auto start = Clock::now();
  in_flight_ = count;
  try {
    session_.train_steps(count);
    if (session_.team() != nullptr) session_.team()->arrive();
    session_.backend().synchronize();
    step_ += count;
  } catch (const Error& error) {
    // A source of batches that ends because the training is to stop: the steps before that one count.
    if (error.code() != ExitCode::interrupted || !stop_requested()) throw;
    session_.backend().synchronize();
    step_ = session_.step();
  }
  in_flight_ = 0;
  tell_if_eager();
  const double affordable = std::chrono::duration<double>(kReportInterval).count() * static_cast<double>(count) /
                            std::max(seconds_since(start), 1e-9);
  ahead_ = std::clamp(static_cast<int64_t>(std::min(affordable, 1e6)), int64_t{1}, 4 * count);
}

// A backend that captures and yet runs op by op is slower than it could be: once, and why.
void Trainer::tell_if_eager() {
  if (eager_told_ || !session_.backend().can_capture()) return;
  const std::string reason = session_.training_executable().eager_reason();
  if (reason.empty()) return;
  eager_told_ = true;
  say("the steps run op by op, not as a captured graph: " + reason);
}

void Trainer::look() {
  const execution::HostSpan span(session_.profiler(), "read back");
  const std::vector<float> losses = session_.losses(looked_at_, step_);
  const std::vector<float> norms = session_.gradient_norms(looked_at_, step_);
  const std::optional<LossScale> scaling = session_.loss_scale();
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const int64_t step = looked_at_ + static_cast<int64_t>(i);
    if (!std::isfinite(losses[i])) diverged(step, "the loss became " + std::to_string(losses[i]));
    if (!norms.empty() && !std::isfinite(norms[i]) && !scaling) {
      diverged(step, "the norm of the gradients became " + std::to_string(norms[i]));
    }
  }
  if (scaling && scaling->scale < kLeastLossScale) {
    throw Error("the gradients are not finite in f16 at any scale of the loss: " +
                    std::to_string(scaling->skipped_steps) + " of " + std::to_string(step_) +
                    " steps were skipped. Try training.precision bf16 or a smaller optimizer.learning_rate.",
                ExitCode::diverged);
  }
  if (!norms.empty() && std::isfinite(norms.back())) gradient_norm_ = norms.back();
  if (options_.listener != nullptr && !losses.empty()) options_.listener->on_losses(looked_at_, losses);
  looked_at_ = step_;
}

void Trainer::diverged(int64_t step, const std::string& what) {
  // Batches of the calling program come once. Ranks that look at every op on their own part don't find the same one.
  const std::string culprit = session_.team() != nullptr ? "with one process, `gpunn resume` looks for the op"
                              : session_.dataset().batches == nullptr
                                  ? find_divergence(session_, snapshot_, step)
                                  : "the batches can't be had again, so the op was not looked for";
  const std::string before = folder_.is_none() ? "The weights are those of the end of the last epoch"
                                               : "The last checkpoint, " + folder_.last().string() + ", is from before";
  const std::string text = what + " at step " + std::to_string(step + 1) + " (epoch " +
                           std::to_string(session_.length().epoch_of(step) + 1) + "): " + culprit + ". " + before +
                           ". Try a smaller optimizer.learning_rate.";
  if (session_.team() != nullptr) throw SharedError(text, ExitCode::diverged);
  throw Error(text, ExitCode::diverged);
}

void Trainer::device_lost(const DeviceLostError& error) {
  const int64_t first = step_ + 1;
  const int64_t last = step_ + in_flight_;
  const std::string which = in_flight_ == 0   ? "after step " + std::to_string(step_)
                            : in_flight_ == 1 ? "in step " + std::to_string(first)
                                              : "in step " + std::to_string(first) + " or one of the " +
                                                    std::to_string(in_flight_ - 1) + " after it";
  const int64_t epoch = session_.length().epoch_of(std::max<int64_t>(last - 1, 0)) + 1;
  const std::string what = "the device was lost " + which + " (epoch " + std::to_string(epoch) + "): " + error.what();
  if (!options_.program.empty()) say("the device was lost; a new process repeats the steps to find the op");
  if (folder_.is_none()) throw DeviceLostError(what + ". The weights are those of the end of the last epoch");
  const DiagnoseRequest request{
      .run = folder_.path(), .first_step = first, .last_step = last, .backend = result_.backend};
  const std::string text = what + ". " + fault_text(options_.program, request) + " The last checkpoint, " +
                           folder_.last().string() + ", stands: `gpunn resume " + shell_word(folder_.path().string()) +
                           "` goes on from it.";
  folder_.log(text);
  throw DeviceLostError(text);
}

void Trainer::report(bool record) {
  const TrainingLength& length = session_.length();
  const tasks::Accumulated sums = session_.sums();
  const int64_t done_here = step_ - epoch_first_step_;
  StepReport report;
  report.epoch = length.epoch_of(step_ - 1) + 1;
  report.epochs = session_.experiment().epochs;
  report.step = length.in_epoch(step_ - 1) + 1;
  report.steps = length.steps_per_epoch;
  report.global_step = step_;
  report.loss = sums.mean_loss();
  report.scores = session_.training_scores(sums);
  report.learning_rate = session_.learning_rate_of_step(step_ - 1);
  if (epoch_seconds_ > 0) {
    const double per_second = static_cast<double>(done_here) / epoch_seconds_;
    report.samples_per_second = per_second * static_cast<double>(session_.samples_per_step());
    report.seconds_left = static_cast<double>(session_.total_steps() - step_) / per_second;
  }
  report.gradient_norm = gradient_norm_;
  report.loss_scale = session_.loss_scale();
  last_report_ = Clock::now();
  if (record) folder_.record_step(report);
  if (options_.listener != nullptr) options_.listener->on_step(report);
}

// To the log each time; to the user where the device begins to wait.
void Trainer::report_loader(EpochReport& epoch) {
  const std::optional<LoaderCounts> now = session_.loader();
  if (!now) return;
  epoch.loader = loader_report(loader_before_.value_or(LoaderCounts()), *now);
  const std::string text = "epoch " + std::to_string(epoch.epoch) + ": " +
                           loader_text(*epoch.loader, epoch.samples_per_second, epoch.train_seconds);
  const bool limits = loader_limits(*epoch.loader, epoch.train_seconds);
  if (limits && !loader_told_) {
    say(text);
  } else {
    folder_.log(text);
  }
  loader_told_ = limits;
}

// An epoch whose metric is undefined is neither an improvement nor one without: it never stops a run.
void Trainer::watch(const EarlyStoppingConfig& stopping, const EpochReport& epoch) {
  const double value = value_of(stopping.monitor, epoch);
  if (!is_defined(value)) return;
  const double best = progress_.watched_epoch == 0 ? kUndefined : progress_.watched;
  if (is_better(tasks::monitored(stopping.monitor), value, best, stopping.min_delta)) {
    progress_.watched = value;
    progress_.watched_epoch = epoch.epoch;
    progress_.stale_epochs = 0;
  } else {
    ++progress_.stale_epochs;
  }
}

// Says so if no epoch could be the best.
void Trainer::tell_if_never_best() {
  if (result_.interrupted || result_.epochs.empty() || progress_.best_epoch > 0) return;
  if (!session_.data().evaluates()) return;
  const std::string kept = folder_.is_none() ? "" : " There is no best.h5; last.h5 has them.";
  say(session_.experiment().checkpoint.monitor +
      " (checkpoint.monitor) was undefined in every epoch, so the weights of the last epoch are kept." + kept);
}

void Trainer::finish_epoch() {
  const Experiment& experiment = session_.experiment();
  const TrainingLength& length = session_.length();
  // The rest of an epoch that training.max_steps cuts short may still come. Until then nothing is decided by a part of
  // it: a run that is resumed is the straight run.
  const bool whole = length.in_epoch(step_) == 0;
  const Progress before = progress_;
  const tasks::Accumulated sums = session_.sums();
  EpochReport epoch;
  epoch.epoch = length.epoch_of(step_ - 1) + 1;
  epoch.global_step = step_;
  epoch.train_loss = sums.mean_loss();
  epoch.train_scores = session_.training_scores(sums);
  epoch.learning_rate = session_.learning_rate_of_step(step_ - 1);
  epoch.train_seconds = epoch_seconds_;
  if (epoch_seconds_ > 0) {
    epoch.samples_per_second =
        static_cast<double>((step_ - epoch_first_step_) * session_.samples_per_step()) / epoch_seconds_;
  }
  epoch.loss_scale = session_.loss_scale();
  report_loader(epoch);
  epoch.evaluation = evaluate();
  const std::string part = name_of(epoch.evaluation.part);
  const bool evaluated = session_.data().evaluates();
  if (evaluated && !std::isfinite(epoch.evaluation.loss)) {
    diverged(step_ - 1, "the " + part + " loss became " + std::to_string(epoch.evaluation.loss));
  }

  const double value = value_of(experiment.checkpoint.monitor, epoch);
  const double best = progress_.best_epoch == 0 ? kUndefined : progress_.best;
  epoch.best =
      (whole || progress_.best_epoch == 0) && is_better(tasks::monitored(experiment.checkpoint.monitor), value, best);
  if (epoch.best) {
    progress_.best = value;
    progress_.best_epoch = epoch.epoch;
    progress_.best_step = step_;
  }
  if (experiment.early_stopping && whole) watch(*experiment.early_stopping, epoch);

  const std::string part_done = whole ? ""
                                      : ", " + std::to_string(length.in_epoch(step_)) + " of its " +
                                            std::to_string(length.steps_per_epoch) + " steps";
  std::string line = "epoch " + std::to_string(epoch.epoch) + part_done + ": " +
                     (evaluated ? part + " loss " + std::to_string(epoch.evaluation.loss)
                                : "training loss " + std::to_string(epoch.train_loss));
  for (const Score& score : epoch.evaluation.scores) {
    if (!score.applies) continue;
    const auto digits = [](double defined) { return std::to_string(defined); };
    line += ", " + part + " " + score.metric.title + " " + metric_text(score.value, digits);
  }
  if (epoch.loss_scale) {
    line += ", loss scale " + config::number_text(epoch.loss_scale->scale) + ", " +
            std::to_string(epoch.loss_scale->skipped_steps) + " steps skipped so far";
  }
  folder_.log(line);
  // The record comes first: a kill between the two leaves a record too many, which resuming takes back.
  folder_.record_epoch(epoch);
  const bool new_rates = whole && session_.epoch_ended(epoch);
  if (new_rates && step_ < session_.total_steps()) {
    folder_.log("the learning rate is " + config::number_text(session_.learning_rate_of_step(step_)) +
                " from here on: " + std::get<ReduceOnPlateau>(experiment.schedule.kind).monitor + " does not improve");
  }
  const bool regular = experiment.checkpoint.every_epochs > 0 && epoch.epoch % experiment.checkpoint.every_epochs == 0;
  std::vector<std::filesystem::path> files;
  if (epoch.best) files.push_back(folder_.best());
  if (regular || finished()) files.push_back(folder_.last());
  const Progress reported = std::exchange(progress_, whole ? progress_ : before);
  save(files);
  progress_ = reported;
  if (new_rates && files.empty()) take_snapshot();  // steps are replayed at the rates that they had
  const bool ends_with_best = experiment.early_stopping && experiment.early_stopping->restore_best;
  if (folder_.is_none() && ends_with_best && epoch.best) best_ = snapshot_;
  result_.epochs.push_back(epoch);
  if (options_.listener != nullptr) options_.listener->on_epoch(epoch);
  if (stopped_early()) {
    say("stopped early: no improvement of " + experiment.early_stopping->monitor + " in " +
        std::to_string(progress_.stale_epochs) + " epochs");
  }
}

storage::Checkpoint Trainer::checkpoint() {
  storage::Checkpoint state;
  // The data set in use, and no other: a resume must not go on with another one, nor an evaluation judge by it.
  Experiment pinned = session_.experiment();
  pinned.data.dataset = session_.dataset().name;
  pinned.data.offline_fallback.clear();
  state.experiment = resolved_yaml(pinned);
  state.given = given_;
  state.model = model_info(session_.experiment(), session_.dataset());
  state.backend = session_.backend_name();
  state.created = utc_time();
  session_.save_state(state);
  state.counters["rows"] = rows_ + std::llround(session_.sums().total(tasks::Total::rows));
  state.counters["best_epoch"] = progress_.best_epoch;
  state.counters["best_step"] = progress_.best_step;
  state.counters["stale_epochs"] = progress_.stale_epochs;
  state.counters["watched_epoch"] = progress_.watched_epoch;
  state.metrics["best"] = progress_.best;
  state.metrics["watched"] = progress_.watched;
  state.metrics["learning_rate"] =
      session_.learning_rate_of_step(std::clamp<int64_t>(step_, 0, std::max<int64_t>(session_.total_steps() - 1, 0)));
  return state;
}

// A state that can't go on never takes the place of one that can.
void Trainer::take_snapshot() {
  storage::Checkpoint state = checkpoint();
  for (const storage::StoredTensor& tensor : state.parameters) {
    if (!all_finite(tensor)) diverged(step_ - 1, "parameter '" + tensor.name + "' became NaN or infinite");
  }
  snapshot_ = std::move(state);
}

void Trainer::save(const std::vector<std::filesystem::path>& files) {
  if (files.empty()) return;
  const execution::HostSpan span(session_.profiler(), "checkpoint");
  take_snapshot();
  if (folder_.is_none()) return;
  storage::save_checkpoint(files, snapshot_);
}

}  // namespace gpunn::training
