#include <gpunn/error.hpp>
#include <gpunn/evaluation.hpp>
#include <gpunn/segmentation.hpp>

#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/reports/class_report.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

// The report is printed before: its figures are those of the rows that are numbers.
void require_finite(const EvalReport& report) {
  if (!report.non_finite) return;
  const NonFiniteRows& found = *report.non_finite;
  throw Error(fmt::format("the outputs or the loss of {} of {} {} rows are NaN or infinite, first of row {}: {}",
                          found.rows, report.rows, name_of(report.part), found.first, found.cause));
}

}  // namespace

void add_eval(CommandLine& line) {
  struct Options {
    std::filesystem::path model;
    std::string backend, data;
    std::vector<std::string> settings;
    bool confusion = false, full_size = false;
    FullSize tiles;
  };
  auto options = std::make_shared<Options>();
  Verb verb =
      line.program.add_verb("eval", "Evaluate a trained model on its test data, class by class or target by target",
                            {"gpunn eval runs/lenet_mnist/2025-01-02T03-04-05Z",
                             "gpunn eval runs/lenet_mnist/2025-01-02T03-04-05Z --confusion",
                             "gpunn eval runs/lenet_mnist/2025-01-02T03-04-05Z/last.h5 --backend cpu --json",
                             "gpunn eval lenet.onnx --data experiments/lenet_mnist.yaml",
                             "gpunn eval runs/unet_camvid/2025-01-02T03-04-05Z --full-size"});
  verb.add_option("model", options->model, "A run folder (its best checkpoint), a checkpoint or an ONNX file")
      .required()
      .type_name("RUN|CHECKPOINT|ONNX");
  verb.add_flag("--confusion", options->confusion,
                "Also print the confusion matrix: rows by their class and the predicted class");
  add_full_size_options(verb, options->full_size, options->tiles.overlap,
                        "Evaluate label maps in the size of their files: the model gets each picture in tiles");
  add_data_option(verb, options->data);
  add_backend_option(verb, options->backend);
  add_model_settings(verb, options->settings);
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      const TrainedModel model{options->model, model_overrides(options->settings, options->backend, options->data)};
      Quiet announcements;
      const ClassEvalReport report = options->full_size ? evaluate_full_size(model, options->tiles, &announcements)
                                                        : evaluate_classes(model, 0, &announcements);
      const EvalReport& total = report.total;
      if (line.json) {
        print_json(to_json(report, options->confusion));
        return total.non_finite ? ExitCode::failed : ExitCode::done;  // the document says why
      }
      put("rows      {} {} rows\n", count_text(total.rows), name_of(total.part));
      if (!std::isnan(total.loss)) {
        put("loss      {:.6f}\n", total.loss);
      } else if (total.non_finite) {
        put("loss      NaN\n");
      }
      for (const Score& score : total.scores) {
        if (score.applies) put("{:<8}  {}\n", score.metric.title, score_text(score));
      }
      put("time      {}\n", duration_text(total.seconds));
      const bool colour = terminal_of(STDOUT_FILENO).colour;
      const std::string table = class_table(report, colour);
      if (!table.empty()) put("\n{}", table);
      if (options->confusion) put("\n{}", confusion_table(report, colour));
      require_finite(total);
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
