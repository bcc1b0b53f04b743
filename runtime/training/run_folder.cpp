#include "training/run_folder.hpp"

#include <chrono>
#include <ctime>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "common/files.hpp"

namespace gpunn::training {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kCsvHeader =
    "epoch,global_step,train_loss,train_accuracy,test_loss,test_accuracy,test_top5_accuracy,learning_rate,"
    "train_seconds,images_per_second,best\n";

std::string time_text(const char* format) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof(text), format, &local);
  return text;
}

void append(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::app | std::ios::binary);
  out << text;
  out.flush();
  if (!out) throw Error(file.string() + ": can't append to it; is the disk full?");
}

// A free name for a new folder: a second run in the same second gets a number.
fs::path free_name(const fs::path& wanted) {
  fs::path candidate = wanted;
  for (int i = 2; fs::exists(candidate) || fs::exists(candidate.string() + ".new"); ++i) {
    candidate = wanted.string() + "-" + std::to_string(i);
  }
  return candidate;
}

}  // namespace

RunFolder RunFolder::create(const Experiment& experiment, const fs::path& given) {
  RunFolder folder;
  if (!given.empty() && fs::exists(given)) throw Error(given.string() + ": already exists", ExitCode::usage);
  folder.published_ =
      given.empty() ? free_name(experiment.runs / experiment.name / time_text("%Y-%m-%d_%H-%M-%S")) : given;
  folder.path_ = folder.published_.string() + ".new";
  std::error_code failure;
  fs::create_directories(folder.path_, failure);
  if (failure) throw Error(folder.path_.string() + ": can't create the run folder: " + failure.message());
  append(folder.path_ / "metrics.csv", kCsvHeader);
  append(folder.path_ / "metrics.jsonl", "");
  return folder;
}

RunFolder RunFolder::open(const fs::path& path) {
  if (!fs::is_directory(path)) {
    throw Error(path.string() + ": no such run folder; `gpunn run` makes one under runs/", ExitCode::missing);
  }
  RunFolder folder;
  folder.path_ = path;
  if (!fs::exists(folder.last())) {
    throw Error(path.string() + ": holds no last.h5, so there is nothing to resume", ExitCode::missing);
  }
  return folder;
}

void RunFolder::write_experiment(const Experiment& experiment) const {
  write_atomically(path_ / "experiment.yaml", experiment.text);
  write_atomically(path_ / "resolved.yaml", resolved_yaml(experiment));
}

void RunFolder::write_environment(const std::string& text) const {
  write_atomically(path_ / "environment.json", text + "\n");
}

void RunFolder::publish() {
  std::error_code failure;
  fs::rename(path_, published_, failure);
  if (failure) throw Error(published_.string() + ": can't create the run folder: " + failure.message());
  path_ = published_;
  published_.clear();
}

void RunFolder::rewind(int64_t global_step) const {
  std::istringstream records(read_text(path_ / "metrics.jsonl"));
  std::string kept;
  for (std::string line; std::getline(records, line);) {
    // A line that was cut short by a kill does not parse; it goes too.
    const json record = json::parse(line, nullptr, false);
    if (record.is_object() && record.value("global_step", int64_t{-1}) <= global_step) kept += line + "\n";
  }
  write_atomically(path_ / "metrics.jsonl", kept);

  std::istringstream rows(read_text(path_ / "metrics.csv"));
  std::string header, table = kCsvHeader;
  std::getline(rows, header);
  for (std::string row; std::getline(rows, row);) {
    std::istringstream cells(row);
    std::string epoch, step;
    const bool whole = std::getline(cells, epoch, ',') && std::getline(cells, step, ',') && !step.empty() &&
                       step.find_first_not_of("0123456789") == std::string::npos && step.size() < 18;
    if (whole && std::stoll(step) <= global_step) table += row + "\n";
  }
  write_atomically(path_ / "metrics.csv", table);
}

void RunFolder::log(const std::string& text) const {
  append(path_ / "log.txt", time_text("%Y-%m-%d %H:%M:%S ") + text + "\n");
}

void RunFolder::record_step(const StepReport& r) const {
  const json record{{"kind", "step"},
                    {"epoch", r.epoch},
                    {"global_step", r.global_step},
                    {"loss", r.loss},
                    {"accuracy", r.accuracy},
                    {"learning_rate", r.learning_rate},
                    {"images_per_second", r.images_per_second}};
  append(path_ / "metrics.jsonl", record.dump() + "\n");
}

void RunFolder::record_epoch(const EpochReport& r) const {
  const json record{{"kind", "epoch"},
                    {"epoch", r.epoch},
                    {"global_step", r.global_step},
                    {"train_loss", r.train_loss},
                    {"train_accuracy", r.train_accuracy},
                    {"test_loss", r.test.loss},
                    {"test_accuracy", r.test.accuracy},
                    {"test_top5_accuracy", r.test.top5_accuracy},
                    {"learning_rate", r.learning_rate},
                    {"train_seconds", r.train_seconds},
                    {"images_per_second", r.images_per_second},
                    {"best", r.best}};
  append(path_ / "metrics.jsonl", record.dump() + "\n");
  std::ostringstream row;
  row.precision(9);
  row << r.epoch << ',' << r.global_step << ',' << r.train_loss << ',' << r.train_accuracy << ',' << r.test.loss << ','
      << r.test.accuracy << ',' << r.test.top5_accuracy << ',' << r.learning_rate << ',' << r.train_seconds << ','
      << r.images_per_second << ',' << (r.best ? 1 : 0) << '\n';
  append(path_ / "metrics.csv", row.str());
}

}  // namespace gpunn::training
