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

// How far a piece of work is, on a line of at most `width` columns; what matters least is left out first:
// "preparing kernels [####....]  50%  12/24  0:07 left  CONV2D 'conv1'".
std::string work_line(const WorkReport& work, std::size_t width, bool utf8);

// The same as a line of a log: "preparing kernels: 12 of 24, CONV2D 'conv1', 0:07 left".
std::string work_text(const WorkReport& work);

// Which lines a log gets of work that goes on and on: the oldest piece, once it has taken five seconds, then every ten,
// and one when it has ended.
class WorkLog {
 public:
  // The line that is due, if any, with what goes on now.
  std::optional<std::string> next(const std::vector<WorkReport>& works);

 private:
  std::optional<WorkReport> told_;  // as it was told last
};

// While one lives, long work of the process is shown on stderr: on a terminal as a line that is drawn anew, once the
// work has taken a third of a second; elsewhere as the lines of a WorkLog.
class WorkDisplay {
 public:
  // With `by_thread` a thread looks ten times a second, so that a line goes on counting during one long op. Without,
  // look() is called by hand, in a process that forks.
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
