#include "cli/terminal/progress.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/reports/json.hpp"
#include "cli/signals/interrupt.hpp"
#include "cli/terminal/progress_bar.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainLines = std::chrono::seconds(1);

double share_done(const StepReport& report) {
  if (report.steps <= 0) return 0;
  return std::clamp(static_cast<double>(report.step) / static_cast<double>(report.steps), 0.0, 1.0);
}

// The field's short word for what is on every line.
std::string short_title(const Metric& metric) { return metric.name == "accuracy" ? "acc" : metric.title; }

std::string scores_text(const Scores& scores) {
  std::string text;
  for (const Score& score : scores) {
    text += "  " + short_title(score.metric) + " " + score_text(score);
  }
  return text;
}

std::string metrics_text(const StepReport& report) {
  return fmt::format("loss {:.4f}{}  lr {:.3g}  {} samples/s", report.loss, scores_text(report.scores),
                     report.learning_rate, rate_text(report.samples_per_second));
}

}  // namespace

std::string progress_line(const StepReport& report, std::size_t width, bool utf8) {
  const std::string epochs = std::to_string(report.epochs);
  const ProgressLine line{.head = fmt::format("epoch {:>{}}/{} ", report.epoch, epochs.size(), epochs),
                          .share = share_done(report),
                          .parts = {fmt::format("  loss {:.4f}", report.loss), scores_text(report.scores),
                                    fmt::format("  {} left", clock_text(report.seconds_left)),
                                    fmt::format("  {} samples/s", rate_text(report.samples_per_second)),
                                    fmt::format("  lr {:.3g}", report.learning_rate)},
                          .order = {0, 1, 4, 3, 2}};
  return line.text(width, utf8);
}

void Progress::clear() { line_.clear(this); }

void Progress::on_message(const std::string& text) {
  line_.print_stamped(coloured(printable(text), Colour::yellow, line_.terminal().colour));
}

void Progress::on_start(const RunStart& start) {
  InterruptGuard::begin();
  last_drawn_ = line_.terminal().interactive ? Clock::time_point() : Clock::now();
  epochs_ = start.experiment.epochs;
  line_.print_stamped(fmt::format("{} on {}, {}, in {}", printable(start.experiment.name), printable(start.backend),
                                  printable(start.device), start.run.string()));
}

void Progress::on_step(const StepReport& report) {
  const auto now = Clock::now();
  if (line_.terminal().interactive) {
    if (now - last_drawn_ < kRedraw) return;
    line_.draw(this, progress_line(report, line_.width(), line_.terminal().utf8));
    last_drawn_ = now;
    return;
  }
  const auto tenth = static_cast<int64_t>(10 * share_done(report));
  if (report.epoch == line_epoch_ && tenth == line_tenth_) return;
  line_epoch_ = report.epoch;
  line_tenth_ = tenth;
  if (tenth == 0 || now - last_drawn_ < kPlainLines) return;
  last_drawn_ = now;
  line_.print_stamped(fmt::format("epoch {}/{} step {}/{}  {}  {} left", report.epoch, report.epochs, report.step,
                                  report.steps, metrics_text(report), clock_text(report.seconds_left)));
}

void Progress::on_epoch(const EpochReport& report) {
  const bool colour = line_.terminal().colour;
  const std::string epochs = std::to_string(epochs_);
  std::string line = fmt::format("epoch {:>{}}/{}  train loss {:.4f}{}", report.epoch, epochs.size(), epochs,
                                 report.train_loss, scores_text(report.train_scores));
  const EvalReport& evaluation = report.evaluation;
  if (evaluation.rows > 0) {
    line += fmt::format("  {} loss {:.4f}", name_of(evaluation.part), evaluation.loss);
    if (!evaluation.scores.empty()) {
      const Score& telling = evaluation.scores.front();
      line += "  " + short_title(telling.metric) + " " + coloured(score_text(telling), Colour::bold, colour);
    }
  }
  line += fmt::format("  lr {:.3g}  {} samples/s  {}", report.learning_rate, rate_text(report.samples_per_second),
                      duration_text(report.train_seconds));
  if (report.best) line += coloured("  best", Colour::green, colour);
  line_.print_stamped(line);
  if (line_.terminal().interactive) last_drawn_ = {};
}

void Quiet::on_start(const RunStart& /*start*/) { InterruptGuard::begin(); }

void Quiet::on_message(const std::string& text) { StatusLine::of_stderr().print(printable(text)); }

void JsonLines::on_message(const std::string& text) {
  print_json_line({{"event", "message"}, {"text", text}});
  next_.on_message(text);
}

void JsonLines::on_start(const RunStart& start) {
  print_json_line({{"event", "start"},
                   {"name", start.experiment.name},
                   {"backend", start.backend},
                   {"device", start.device},
                   {"epochs", start.experiment.epochs},
                   {"seed", start.experiment.seed},
                   {"run", start.run.string()}});
  next_.on_start(start);
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
