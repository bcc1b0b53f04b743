#include "runs/run_folder.hpp"

#include <gpunn/clock.hpp>

#include <chrono>
#include <cmath>
#include <functional>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "common/files.hpp"
#include "common/metric_json.hpp"
#include "runs/event_file.hpp"

namespace gpunn::training {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::milliseconds kLookEvery{100};

std::string csv_header(const tasks::Task& task, const std::string& part) {
  std::string header = "epoch,global_step,train_loss,";
  for (const tasks::TaskMetric& one : task.metrics()) {
    if (one.while_training) header += "train_" + one.metric.name + ",";
  }
  header += part + "_loss,";
  for (const tasks::TaskMetric& one : task.metrics()) header += part + "_" + one.metric.name + ",";
  return header + "learning_rate,train_seconds,samples_per_second,best\n";
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// A name that TensorBoard takes, and reads after those that are there.
fs::path new_event_file(const fs::path& folder) {
  auto seconds = static_cast<int64_t>(seconds_since_1970());
  const auto name = [&] { return folder / ("events.out.tfevents." + std::to_string(seconds) + ".gpunn"); };
  while (path_exists(name())) ++seconds;
  return name().filename();
}

// Records may be missing: a checkpoint alone is enough to go on from.
std::string text_if_there(const fs::path& file) { return path_exists(file) ? read_text(file) : std::string(); }

// A process that was killed on a GPU holds its lock until the driver has let go of its memory, a second or two.
std::shared_ptr<const FileLock> lock_when_free(const fs::path& path,
                                               const std::function<void(const std::string&)>& waiting) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (bool told = false;; told = true) {
    if (auto lock = lock_folder(path)) return std::make_shared<const FileLock>(std::move(*lock));
    if (!told && waiting) waiting(path.string() + ": another process holds this run folder; waiting 5 s for its end");
    if (std::chrono::steady_clock::now() >= end) return nullptr;
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace

RunFolder RunFolder::create(const Experiment& experiment, const fs::path& given) {
  RunFolder folder;
  folder.hidden_ = given.empty() ? HiddenFolder::make(experiment.runs / experiment.name / utc_name())
                                 : HiddenFolder::make_named(given);
  folder.path_ = folder.hidden_->path();
  return folder;
}

RunFolder RunFolder::open(const fs::path& path, const std::function<void(const std::string&)>& waiting) {
  if (!is_folder(path)) {
    throw Error(path.string() + ": no such run folder; `gpunn run` makes one under runs/", ExitCode::missing);
  }
  RunFolder folder;
  folder.path_ = path;
  if (!path_exists(folder.last())) {
    throw Error(path.string() + ": holds no last.h5, so there is nothing to resume", ExitCode::missing);
  }
  folder.lock_ = lock_when_free(path, waiting);
  if (folder.lock_ == nullptr) {
    throw Error(path.string() + ": another process is training in this run folder; wait for it, or stop it",
                ExitCode::usage);
  }
  return folder;
}

std::string RunFolder::lock_notice() const {
  if (is_none()) return "";
  const FileLock& lock = lock_ != nullptr ? *lock_ : hidden_->lock();
  if (lock.failure().empty()) return "";
  return "note: " + path_.string() + ": the file system can't lock the run folder (" + lock.failure() +
         "), so nothing stops a second process from training in it";
}

void RunFolder::write_given(const Experiment& experiment) const {
  if (is_none()) return;
  write_atomically(path_ / "experiment.yaml", experiment.text);
}

void RunFolder::write_resolved(const Experiment& experiment) const {
  if (is_none()) return;
  write_atomically(path_ / "resolved.yaml", resolved_yaml(experiment));
}

void RunFolder::write_environment(const std::string& text, const std::string& name) const {
  if (is_none()) return;
  write_atomically(path_ / name, text + "\n");
}

// The event file comes last: TensorBoard looks into hidden folders too, and would list this one under both names.
void RunFolder::publish(const tasks::Task& task, EvaluationPart part) {
  if (is_none()) return;
  part_ = name_of(part);
  append(path_ / "metrics.csv", csv_header(task, part_));
  append(path_ / "metrics.jsonl", "");
  path_ = hidden_->publish();
  begin_events();
}

void RunFolder::begin_events() {
  events_ = new_event_file(path_);
  append(path_ / events_, event_file::version_record(seconds_since_1970()));
}

void RunFolder::rewind(int64_t global_step, bool inside, const tasks::Task& task, EvaluationPart part) {
  if (is_none()) return;
  part_ = name_of(part);
  begin_events();
  append(path_ / events_, event_file::start_record(seconds_since_1970(), global_step + 1));

  const int64_t last_epoch = inside ? global_step - 1 : global_step;
  std::istringstream records(text_if_there(path_ / "metrics.jsonl"));
  std::string kept;
  for (std::string line; std::getline(records, line);) {
    // A line that was cut short by a kill does not parse; it goes too.
    const json record = json::parse(line, nullptr, false);
    const bool whole =
        record.is_object() && record.contains("global_step") && record["global_step"].is_number_integer();
    if (!whole) continue;
    const bool of_epoch = record.value("kind", "") == "epoch";
    if (record["global_step"].get<int64_t>() <= (of_epoch ? last_epoch : global_step)) kept += line + "\n";
  }
  write_atomically(path_ / "metrics.jsonl", kept);

  std::istringstream rows(text_if_there(path_ / "metrics.csv"));
  std::string header,
      table = csv_header(task, part_);  // the columns are the same, whatever an earlier version called them
  std::getline(rows, header);
  for (std::string row; std::getline(rows, row);) {
    std::istringstream cells(row);
    std::string epoch, step;
    const bool whole = std::getline(cells, epoch, ',') && std::getline(cells, step, ',') && !step.empty() &&
                       step.find_first_not_of("0123456789") == std::string::npos && step.size() < 18;
    if (whole && std::stoll(step) <= last_epoch) table += row + "\n";
  }
  write_atomically(path_ / "metrics.csv", table);
}

void RunFolder::log(const std::string& text) const {
  if (is_none()) return;
  append(path_ / "log.txt", utc_time() + " " + elapsed_stamp() + " " + text + "\n");
}

namespace {

void add_loader(json& record, std::vector<event_file::Scalar>& scalars, const std::optional<LoaderReport>& loader) {
  if (!loader) return;
  record["loader_samples_per_second"] = loader->samples_per_second;
  record["waited_seconds"] = loader->waited_seconds;
  scalars.push_back({"loader_samples_per_second", loader->samples_per_second});
  scalars.push_back({"waited_seconds", loader->waited_seconds});
}

void add_loss_scale(json& record, std::vector<event_file::Scalar>& scalars, const std::optional<LossScale>& scale) {
  if (!scale) return;
  record["loss_scale"] = scale->scale;
  record["skipped_steps"] = scale->skipped_steps;
  scalars.push_back({"loss_scale", scale->scale});
  scalars.push_back({"skipped_steps", static_cast<double>(scale->skipped_steps)});
}

}  // namespace

void RunFolder::record_step(const StepReport& r) const {
  if (is_none()) return;
  json record{{"kind", "step"},
              {"epoch", r.epoch},
              {"global_step", r.global_step},
              {"loss", r.loss},
              {"learning_rate", r.learning_rate},
              {"samples_per_second", r.samples_per_second}};
  std::vector<event_file::Scalar> scalars{
      {"loss/train", r.loss}, {"learning_rate", r.learning_rate}, {"samples_per_second", r.samples_per_second}};
  for (const Score& score : r.scores) {
    record[score.metric.name] = metric_json<json>(score.value);
    if (is_defined(score.value)) scalars.push_back({score.metric.name + "/train", score.value});
  }
  if (r.gradient_norm) {
    record["gradient_norm"] = *r.gradient_norm;
    scalars.push_back({"gradient_norm", *r.gradient_norm});
  }
  add_loss_scale(record, scalars, r.loss_scale);
  append(path_ / "metrics.jsonl", record.dump() + "\n");
  append(path_ / events_, event_file::scalar_record(seconds_since_1970(), r.global_step, scalars));
}

void RunFolder::record_epoch(const EpochReport& r) const {
  if (is_none()) return;
  json record{{"kind", "epoch"},
              {"epoch", r.epoch},
              {"global_step", r.global_step},
              {"train_loss", r.train_loss},
              {part_ + "_loss", r.evaluation.loss},  // null where nothing is evaluated
              {"learning_rate", r.learning_rate},
              {"train_seconds", r.train_seconds},
              {"samples_per_second", r.samples_per_second},
              {"best", r.best}};
  std::vector<event_file::Scalar> scalars{
      {"loss/train", r.train_loss}, {"learning_rate", r.learning_rate}, {"samples_per_second", r.samples_per_second}};
  std::ostringstream row;
  row.precision(9);
  row << r.epoch << ',' << r.global_step << ',' << r.train_loss << ',';
  // The columns of all runs of a task are the same, whichever values are defined.
  const auto add = [&](const Scores& scores, const std::string& part) {
    for (const Score& score : scores) {
      record[part + "_" + score.metric.name] = metric_json<json>(score.value);
      if (is_defined(score.value)) {
        row << score.value;
        scalars.push_back({score.metric.name + "/" + part, score.value});
      }
      row << ',';
    }
  };
  add(r.train_scores, "train");
  if (is_defined(r.evaluation.loss)) {
    row << r.evaluation.loss;
    scalars.push_back({"loss/" + part_, r.evaluation.loss});
  }
  row << ',';
  add(r.evaluation.scores, part_);
  add_loss_scale(record, scalars, r.loss_scale);
  add_loader(record, scalars, r.loader);
  row << r.learning_rate << ',' << r.train_seconds << ',' << r.samples_per_second << ',' << (r.best ? 1 : 0) << '\n';
  append(path_ / "metrics.jsonl", record.dump() + "\n");
  append(path_ / "metrics.csv", row.str());
  append(path_ / events_, event_file::scalar_record(seconds_since_1970(), r.global_step, scalars));
}

}  // namespace gpunn::training
