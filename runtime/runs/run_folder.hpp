#pragma once

#include <gpunn/training.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "runs/hidden_folder.hpp"
#include "tasks/task.hpp"

namespace gpunn::training {

// The folder of one run and the files that a person or a script reads:
//
//   experiment.yaml   as given, its paths absolute
//   resolved.yaml     every key, the model inline
//   environment.json  machine, versions, backend, data; one more with each resume
//   metrics.jsonl     a line a record   metrics.csv    a row an epoch
//   events.out.tfevents.*   the same for TensorBoard; one more with each resume
//   log.txt           what was said     last.h5, best.h5
//   initial.safetensors   the weights that a model of an ONNX file began with
class RunFolder {
 public:
  // <runs>/<name>/<time>, or `given`. publish() gives it that name once it is complete with its first checkpoint, so
  // that every run folder can be resumed. Until then it is hidden, and it is removed if the training fails.
  static RunFolder create(const Experiment& experiment, const std::filesystem::path& given);
  // No folder: nothing is written, and path() is empty.
  static RunFolder none() { return {}; }
  // An existing run folder. Throws Error(missing) if it is none, Error(usage) if another process trains in it for
  // several more seconds; `waiting` is called at once.
  static RunFolder open(const std::filesystem::path& folder,
                        const std::function<void(const std::string&)>& waiting = {});

  const std::filesystem::path& path() const { return path_; }
  bool is_none() const { return path_.empty(); }
  bool is_new() const { return hidden_ != nullptr && events_.empty(); }  // and not yet published
  std::filesystem::path last() const { return path_ / "last.h5"; }
  std::filesystem::path best() const { return path_ / "best.h5"; }

  // "note: ..." if the file system has no locks; else empty.
  std::string lock_notice() const;

  void write_given(const Experiment& experiment) const;
  void write_resolved(const Experiment& experiment) const;
  void write_environment(const std::string& json, const std::string& name) const;
  // `part` is what epochs are evaluated on: records name it.
  void publish(const tasks::Task& task, EvaluationPart part);
  // Drops the records after this step, because a killed run continues from an older checkpoint. Where the run continues
  // `inside` an epoch, the record of its first part goes too.
  void rewind(int64_t global_step, bool inside, const tasks::Task& task, EvaluationPart part);

  void log(const std::string& text) const;
  void record_step(const StepReport& report) const;
  void record_epoch(const EpochReport& report) const;

 private:
  void begin_events();

  std::filesystem::path path_;
  std::filesystem::path events_;  // the event file in use, within path_
  std::string part_;              // "test" or "validation"
  // The folder of a new run, or the lock of a resumed one: one process at a time trains in it.
  std::shared_ptr<HiddenFolder> hidden_;
  std::shared_ptr<const FileLock> lock_;
};

}  // namespace gpunn::training
