#include "training/run_folder.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "common/files.hpp"
#include "training/event_file.hpp"

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

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// A name that TensorBoard takes, and reads after those that are there.
fs::path new_event_file(const fs::path& folder) {
  auto seconds = static_cast<int64_t>(seconds_since_1970());
  const auto name = [&] { return folder / ("events.out.tfevents." + std::to_string(seconds) + ".gpunn"); };
  while (fs::exists(name())) ++seconds;
  return name().filename();
}

// Records may be missing: a checkpoint alone is enough to go on from.
std::string text_if_there(const fs::path& file) { return fs::exists(file) ? read_text(file) : std::string(); }

fs::path unpublished(const fs::path& folder) { return folder.string() + ".new"; }

// Makes the folder, and tells whether it was not there before.
bool make_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder.parent_path().empty() ? fs::path(".") : folder.parent_path(), failure);
  const bool made = !failure && fs::create_directory(folder, failure);
  if (failure) throw Error(folder.string() + ": can't create the run folder: " + failure.message());
  return made;
}

// Makes the unpublished folder of a name that is free: a second run in the same second gets a number.
fs::path claim_name(const fs::path& wanted) {
  fs::path candidate = wanted;
  for (int i = 2; fs::exists(candidate) || !make_folder(unpublished(candidate)); ++i) {
    candidate = wanted.string() + "-" + std::to_string(i);
  }
  return candidate;
}

// Held as long as the run goes on; the system lets go of it when the process ends, however it ends.
std::shared_ptr<int> lock(const fs::path& folder) {
  const int file = ::open((folder / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) throw Error(folder.string() + ": can't write to the run folder: " + std::strerror(errno));
  std::shared_ptr<int> held(new int(file), [](const int* descriptor) {
    ::close(*descriptor);
    delete descriptor;
  });
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    throw Error(folder.string() + ": another process is training in this run folder; wait for it, or stop it",
                ExitCode::usage);
  }
  return held;
}

}  // namespace

RunFolder RunFolder::create(const Experiment& experiment, const fs::path& given) {
  RunFolder folder;
  if (!given.empty() && fs::exists(given)) throw Error(given.string() + ": already exists", ExitCode::usage);
  if (given.empty()) {
    folder.published_ = claim_name(experiment.runs / experiment.name / time_text("%Y-%m-%d_%H-%M-%S"));
  } else {
    folder.published_ = given;
    fs::remove_all(unpublished(given));  // of a run that was killed before it had a checkpoint
    make_folder(unpublished(given));
  }
  folder.path_ = unpublished(folder.published_);
  folder.lock_ = lock(folder.path_);
  append(folder.path_ / "metrics.csv", kCsvHeader);
  append(folder.path_ / "metrics.jsonl", "");
  folder.begin_events();
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
  folder.lock_ = lock(path);
  return folder;
}

void RunFolder::write_given(const Experiment& experiment) const {
  write_atomically(path_ / "experiment.yaml", experiment.text);
}

void RunFolder::write_resolved(const Experiment& experiment) const {
  write_atomically(path_ / "resolved.yaml", resolved_yaml(experiment));
}

void RunFolder::write_environment(const std::string& text, const std::string& name) const {
  write_atomically(path_ / name, text + "\n");
}

void RunFolder::publish() {
  std::error_code failure;
  fs::rename(path_, published_, failure);
  if (failure) throw Error(published_.string() + ": can't create the run folder: " + failure.message());
  path_ = published_;
  published_.clear();
}

void RunFolder::begin_events() {
  events_ = new_event_file(path_);
  append(path_ / events_, event_file::version_record(seconds_since_1970()));
}

void RunFolder::rewind(int64_t global_step) {
  begin_events();
  append(path_ / events_, event_file::start_record(seconds_since_1970(), global_step + 1));

  std::istringstream records(text_if_there(path_ / "metrics.jsonl"));
  std::string kept;
  for (std::string line; std::getline(records, line);) {
    // A line that was cut short by a kill does not parse; it goes too.
    const json record = json::parse(line, nullptr, false);
    const bool whole =
        record.is_object() && record.contains("global_step") && record["global_step"].is_number_integer();
    if (whole && record["global_step"].get<int64_t>() <= global_step) kept += line + "\n";
  }
  write_atomically(path_ / "metrics.jsonl", kept);

  std::istringstream rows(text_if_there(path_ / "metrics.csv"));
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
  json record{{"kind", "step"},
              {"epoch", r.epoch},
              {"global_step", r.global_step},
              {"loss", r.loss},
              {"accuracy", r.accuracy},
              {"learning_rate", r.learning_rate},
              {"images_per_second", r.images_per_second}};
  std::vector<event_file::Scalar> scalars{{"loss/train", r.loss},
                                          {"accuracy/train", r.accuracy},
                                          {"learning_rate", r.learning_rate},
                                          {"images_per_second", r.images_per_second}};
  if (r.gradient_norm) {
    record["gradient_norm"] = *r.gradient_norm;
    scalars.push_back({"gradient_norm", *r.gradient_norm});
  }
  append(path_ / "metrics.jsonl", record.dump() + "\n");
  append(path_ / events_, event_file::scalar_record(seconds_since_1970(), r.global_step, scalars));
}

void RunFolder::record_epoch(const EpochReport& r) const {
  const std::optional<double> top5 = r.test.top5_accuracy;
  const json record{{"kind", "epoch"},
                    {"epoch", r.epoch},
                    {"global_step", r.global_step},
                    {"train_loss", r.train_loss},
                    {"train_accuracy", r.train_accuracy},
                    {"test_loss", r.test.loss},
                    {"test_accuracy", r.test.accuracy},
                    {"test_top5_accuracy", top5 ? json(*top5) : json()},
                    {"learning_rate", r.learning_rate},
                    {"train_seconds", r.train_seconds},
                    {"images_per_second", r.images_per_second},
                    {"best", r.best}};
  append(path_ / "metrics.jsonl", record.dump() + "\n");
  std::ostringstream row;
  row.precision(9);
  row << r.epoch << ',' << r.global_step << ',' << r.train_loss << ',' << r.train_accuracy << ',' << r.test.loss << ','
      << r.test.accuracy << ',';
  if (top5) row << *top5;  // else an empty cell: the columns of all runs are the same
  row << ',' << r.learning_rate << ',' << r.train_seconds << ',' << r.images_per_second << ',' << (r.best ? 1 : 0)
      << '\n';
  append(path_ / "metrics.csv", row.str());
  std::vector<event_file::Scalar> scalars{
      {"loss/train", r.train_loss},         {"loss/test", r.test.loss},
      {"accuracy/train", r.train_accuracy}, {"accuracy/test", r.test.accuracy},
      {"learning_rate", r.learning_rate},   {"images_per_second", r.images_per_second}};
  if (top5) scalars.push_back({"top5_accuracy/test", *top5});
  append(path_ / events_, event_file::scalar_record(seconds_since_1970(), r.global_step, scalars));
}

}  // namespace gpunn::training
