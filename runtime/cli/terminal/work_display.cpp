#include "cli/terminal/work_display.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <signal.h>

#include "cli/terminal/progress_bar.hpp"
#include "cli/terminal/status_line.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

constexpr double kShownAfter = 0.3;  // seconds; on a terminal
constexpr double kLoggedAfter = 5, kLoggedEvery = 10;
constexpr auto kLookEvery = std::chrono::milliseconds(100);

double share_of_work(const WorkReport& work) {
  return std::clamp(static_cast<double>(work.done) / static_cast<double>(std::max<uint64_t>(work.total, 1)), 0.0, 1.0);
}

std::string amount_text(const WorkReport& work, uint64_t amount) {
  return work.unit == WorkUnit::bytes ? bytes_text(amount) : count_text(static_cast<int64_t>(amount));
}

// "12 of 24"; without a total "12", without anything counted nothing.
std::string counts_text(const WorkReport& work, const std::string& between) {
  if (work.total > 0) return amount_text(work, work.done) + between + amount_text(work, work.total);
  return work.done > 0 ? amount_text(work, work.done) : "";
}

// Empty where it is not known.
std::string left_text(const WorkReport& work) {
  if (work.total == 0 || work.done == 0 || work.done >= work.total || work.seconds < 1) return "";
  const double share = share_of_work(work);
  return clock_text(work.seconds * (1 - share) / share) + " left";
}

// SIGINT and SIGTERM go to the thread that works.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

std::string work_line(const WorkReport& work, std::size_t width, bool utf8) {
  const std::string left = left_text(work);
  ProgressLine line{.head = printable(work.what) + (work.total > 0 ? " " : ""), .share = {}, .parts = {}};
  if (work.total > 0) line.share = share_of_work(work);
  for (const std::string& part :
       {counts_text(work, "/"), left.empty() ? clock_text(work.seconds) : left, printable(work.detail)}) {
    if (!part.empty()) line.parts.push_back("  " + part);
  }
  return line.text(width, utf8);
}

std::string work_text(const WorkReport& work) {
  std::string text = printable(work.what);
  std::string between = ": ";
  for (const std::string& part : {counts_text(work, " of "), printable(work.detail), left_text(work)}) {
    if (part.empty()) continue;
    text += between + part;
    between = ", ";
  }
  return text;
}

std::optional<std::string> WorkLog::next(const std::vector<WorkReport>& works) {
  if (told_) {
    const auto same = std::ranges::find(works, told_->id, &WorkReport::id);
    if (same == works.end()) {
      const WorkReport ended = *std::exchange(told_, std::nullopt);
      return printable(ended.what) + ": done";
    }
    if (same->seconds < told_->seconds + kLoggedEvery) return std::nullopt;
    told_ = *same;
    return work_text(*same);
  }
  if (works.empty() || works.front().seconds < kLoggedAfter) return std::nullopt;
  told_ = works.front();
  return work_text(*told_);
}

WorkDisplay::WorkDisplay(bool by_thread) {
  when_work_ends([this](uint64_t id) { ended(id); });
  if (!by_thread) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    block_signals();
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      show();
      wake_.wait_for(lock, stop, kLookEvery, [] { return false; });
    }
  });
}

WorkDisplay::~WorkDisplay() {
  when_work_ends({});
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  show();  // the end of what was told
  StatusLine::of_stderr().clear(this);
}

void WorkDisplay::look() {
  const std::lock_guard lock(mutex_);
  show();
}

void WorkDisplay::show() {
  StatusLine& line = StatusLine::of_stderr();
  const std::vector<WorkReport> works = long_work();
  if (!line.terminal().interactive) {
    if (const auto text = log_.next(works)) line.print_stamped(*text);
  } else if (!works.empty() && works.front().seconds >= kShownAfter) {
    line.draw(this, work_line(works.front(), line.width(), line.terminal().utf8));
    drawn_ = works.front().id;
  }
}

// The work's own thread may print next.
void WorkDisplay::ended(uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (id != drawn_) return;
  StatusLine::of_stderr().clear(this);
  drawn_ = 0;
}

}  // namespace gpunn::cli
