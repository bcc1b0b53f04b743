#pragma once

#include <gpunn/training.hpp>

#include <chrono>
#include <string>

#include "cli/terminal/status_line.hpp"

namespace gpunn::cli {

// A line about the progress of a training, in at most `width` columns. Drops the least important parts first.
std::string progress_line(const StepReport& report, std::size_t width, bool utf8);

// Shows a training on stderr. On a terminal it redraws one line at most ten times a second. Elsewhere it prints plain
// lines with the seconds since the program began: at most ten for each epoch and one a second, and one at the end of
// each epoch.
class Progress : public TrainingListener {
 public:
  void on_message(const std::string& text) override;
  void on_start(const RunStart& start) override;
  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;
  // Removes an unfinished line, before other output.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  StatusLine& line_ = StatusLine::of_stderr();
  Clock::time_point last_drawn_;  // a line, of either kind
  int64_t epochs_ = 0;
  int64_t line_epoch_ = 0, line_tenth_ = 0;  // of the last plain line
};

// Only announcements.
class Quiet : public TrainingListener {
 public:
  void on_start(const RunStart& start) override;
  void on_message(const std::string& text) override;
};

// Prints each event as a JSON document on a line of stdout, and passes everything on to `next`.
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
