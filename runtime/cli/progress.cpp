#include "cli/progress.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/json.hpp"
#include "cli/units.hpp"

namespace gpunn::cli {

namespace {

constexpr std::string_view kEraseLine = "\r\x1b[2K";
constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainLines = std::chrono::seconds(1);

double share_done(const StepReport& report) {
  if (report.steps <= 0) return 0;
  return std::clamp(static_cast<double>(report.step) / static_cast<double>(report.steps), 0.0, 1.0);
}

std::string bar(double share, std::size_t width, bool utf8) {
  std::string result;
  if (!utf8) {
    const auto full = static_cast<std::size_t>(share * static_cast<double>(width));
    return std::string(full, '#') + std::string(width - full, '.');
  }
  constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const auto eighths = static_cast<std::size_t>(std::lround(share * static_cast<double>(8 * width)));
  for (std::size_t i = 0; i < eighths / 8; ++i) result += "█";
  std::size_t used = eighths / 8;
  if (eighths % 8 != 0) {
    result += kEighths[eighths % 8];
    ++used;
  }
  return result + std::string(width - used, ' ');
}

std::string metrics_text(const StepReport& report) {
  return fmt::format("loss {:.4f}  acc {:.2f} %  lr {:.3g}  {} images/s", report.loss, 100 * report.accuracy,
                     report.learning_rate, rate_text(report.images_per_second));
}

}  // namespace

std::string progress_line(const StepReport& report, std::size_t width, bool utf8) {
  constexpr std::size_t kNarrowestBar = 8, kWidestBar = 30;
  const std::string epochs = std::to_string(report.epochs);
  const std::string head = fmt::format("epoch {:>{}}/{} ", report.epoch, epochs.size(), epochs);
  const std::string percent = fmt::format(" {:3.0f}%", std::floor(100 * share_done(report)));
  // The most important first.
  const std::vector<std::string> parts = {
      fmt::format("  loss {:.4f}", report.loss), fmt::format("  acc {:.2f}%", 100 * report.accuracy),
      fmt::format("  {} left", clock_text(report.seconds_left)),
      fmt::format("  {} img/s", rate_text(report.images_per_second)), fmt::format("  lr {:.3g}", report.learning_rate)};
  std::size_t used = head.size() + percent.size();
  std::array<bool, 5> shown{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (used + parts[i].size() + kNarrowestBar + 2 > width) break;
    used += parts[i].size();
    shown[i] = true;
  }
  std::string line = head;
  if (used + kNarrowestBar + 2 <= width) {
    const std::size_t room = std::min(kWidestBar, width - used - 2);
    line += utf8 ? "▕" + bar(share_done(report), room, true) + "▏" : "[" + bar(share_done(report), room, false) + "]";
  }
  line += percent;
  for (const std::size_t i : {0U, 1U, 4U, 3U, 2U}) {
    if (shown[i]) line += parts[i];
  }
  return line.size() > width && display_width(line) > width ? line.substr(0, width) : line;
}

void Progress::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "{}", kEraseLine);
  std::fflush(stderr);
  drawn_ = false;
}

void Progress::print_line(const std::string& line) {
  clear();
  fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
}

std::string Progress::stamp() const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  return terminal_.interactive ? "" : fmt::format("[{:>7.1f} s] ", seconds);
}

void Progress::on_message(const std::string& text) {
  print_line(stamp() + coloured(printable(text), Colour::yellow, terminal_.colour));
}

void Progress::on_start(const Experiment& experiment, const std::filesystem::path& run) {
  start_ = last_drawn_ = Clock::now();
  epochs_ = experiment.epochs;
  print_line(stamp() + fmt::format("{} on {}, in {}", printable(experiment.name), experiment.backend, run.string()));
}

void Progress::on_step(const StepReport& report) {
  if (terminal_.interactive) {
    const auto now = Clock::now();
    if (drawn_ && now - last_drawn_ < kRedraw) return;
    // One column is left free: some terminals wrap when the last one is written to.
    const std::string line =
        progress_line(report, std::max<std::size_t>(columns_of(STDERR_FILENO), 2) - 1, terminal_.utf8);
    fmt::print(stderr, "{}{}", kEraseLine, line);
    std::fflush(stderr);
    last_drawn_ = now;
    drawn_ = true;
    return;
  }
  const auto tenth = static_cast<int64_t>(10 * share_done(report));
  if (report.epoch == line_epoch_ && tenth == line_tenth_) return;
  line_epoch_ = report.epoch;
  line_tenth_ = tenth;
  const auto now = Clock::now();
  if (tenth == 0 || now - last_drawn_ < kPlainLines) return;
  last_drawn_ = now;
  print_line(stamp() + fmt::format("epoch {}/{} step {}/{}  {}  {} left", report.epoch, report.epochs, report.step,
                                   report.steps, metrics_text(report), clock_text(report.seconds_left)));
}

void Progress::on_epoch(const EpochReport& report) {
  const std::string epochs = std::to_string(epochs_);
  std::string line = stamp() + fmt::format("epoch {:>{}}/{}  train loss {:.4f}  acc {:.2f} %", report.epoch,
                                           epochs.size(), epochs, report.train_loss, 100 * report.train_accuracy);
  if (report.test.rows > 0) {
    line += fmt::format("  test loss {:.4f}  acc ", report.test.loss) +
            coloured(percent_text(report.test.accuracy), Colour::bold, terminal_.colour);
  }
  line += fmt::format("  lr {:.3g}  {} images/s  {}", report.learning_rate, rate_text(report.images_per_second),
                      duration_text(report.train_seconds));
  if (report.best) line += coloured("  best", Colour::green, terminal_.colour);
  print_line(line);
}

void Quiet::on_message(const std::string& text) { fmt::print(stderr, "{}\n", printable(text)); }

void JsonLines::on_message(const std::string& text) {
  print_json_line({{"event", "message"}, {"text", text}});
  next_.on_message(text);
}

void JsonLines::on_start(const Experiment& experiment, const std::filesystem::path& run) {
  print_json_line({{"event", "start"},
                   {"name", experiment.name},
                   {"backend", experiment.backend},
                   {"epochs", experiment.epochs},
                   {"seed", experiment.seed},
                   {"run", run.string()}});
  next_.on_start(experiment, run);
}

void JsonLines::on_step(const StepReport& report) {
  Json line = {{"event", "step"}};
  line.update(to_json(report));
  print_json_line(line);
  next_.on_step(report);
}

void JsonLines::on_epoch(const EpochReport& report) {
  Json line = {{"event", "epoch"}};
  line.update(to_json(report));
  print_json_line(line);
  next_.on_epoch(report);
}

}  // namespace gpunn::cli
