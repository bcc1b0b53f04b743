#pragma once

#include <gpunn/progress.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace gpunn::cli {

// The progress of long work as a line of at most `width` columns: "preparing kernels [####....]  50%  12/24  0:07 left
// CONV2D 'conv1'". Drops the least important parts first.
std::string work_line(const WorkReport& work, std::size_t width, bool utf8);

// The same as a log line: "preparing kernels: 12 of 24, CONV2D 'conv1', 0:07 left".
std::string work_text(const WorkReport& work);

// Chooses the log lines about long work: the oldest piece after five seconds, then every ten seconds, and once at its
// end.
class WorkLog {
 public:
  // The line that is due, if any, for the present work.
  std::optional<std::string> next(const std::vector<WorkReport>& works);

 private:
  std::optional<WorkReport> told_;  // as last reported
};

// Shows long work of the process on stderr while it lives: on a terminal as a line that is redrawn, once the work has
// taken a third of a second; elsewhere as the lines of a WorkLog.
class WorkDisplay {
 public:
  // With `by_thread`, a thread redraws ten times a second, so that the time goes on during one long op. Without it, the
  // caller calls look(), in a process that forks.
  explicit WorkDisplay(bool by_thread);
  ~WorkDisplay();
  WorkDisplay(const WorkDisplay&) = delete;
  WorkDisplay& operator=(const WorkDisplay&) = delete;

  void look();

 private:
  void show();
  void ended(uint64_t id);

  WorkLog log_;
  std::mutex mutex_;
  uint64_t drawn_ = 0;  // the work that is on the terminal; 0: none
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace gpunn::cli
