#pragma once

#include <gpunn/training.hpp>

#include <chrono>
#include <string>

#include "cli/status_line.hpp"

namespace gpunn::cli {

// One line that tells how far a training is, in at most `width` columns; what matters least is left out first.
std::string progress_line(const StepReport& report, std::size_t width, bool utf8);

// Shows a training on stderr: on a terminal a line that is drawn anew at most ten times a second, elsewhere plain lines
// with the seconds since the program began: at most ten an epoch and one a second, and one for the epoch's end.
class Progress : public TrainingListener {
 public:
  void on_message(const std::string& text) override;
  void on_start(const RunStart& start) override;
  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;
  // Removes an unfinished line, in front of other output.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  StatusLine& line_ = StatusLine::of_stderr();
  Clock::time_point last_drawn_;  // a line, of either kind
  int64_t epochs_ = 0;
  int64_t line_epoch_ = 0, line_tenth_ = 0;  // of the last plain line
};

// Announcements only.
class Quiet : public TrainingListener {
 public:
  void on_start(const RunStart& start) override;
  void on_message(const std::string& text) override;
};

// A JSON document a line on stdout for each event, and everything else as `next` does it.
class JsonLines : public TrainingListener {
 public:
  explicit JsonLines(TrainingListener& next) : next_(next) {}
  void on_message(const std::string& text) override;
  void on_start(const RunStart& start) override;
  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;

 private:
  TrainingListener& next_;
};

}  // namespace gpunn::cli
