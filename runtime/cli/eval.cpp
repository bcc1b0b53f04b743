#include <gpunn/training.hpp>

#include <memory>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/experiment_options.hpp"
#include "cli/json.hpp"
#include "cli/progress.hpp"
#include "cli/units.hpp"

namespace gpunn::cli {

void add_eval(CommandLine& line) {
  struct Options {
    std::filesystem::path model;
    std::string backend;
    std::vector<std::string> settings;
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(line.app, "eval", "Measure a trained model on its test data",
                            {"gpunn eval runs/lenet_mnist/20250102-030405",
                             "gpunn eval runs/lenet_mnist/20250102-030405/last.h5 --backend cpu --json"});
  verb->add_option("model", options->model, "A run folder (its best checkpoint) or a checkpoint file")
      ->required()
      ->type_name("RUN_OR_CHECKPOINT");
  add_backend_option(*verb, options->backend);
  add_set_option(*verb, options->settings);
  add_json_flag(*verb, line);
  verb->callback([&line, options] {
    line.action = [&line, options] {
      TrainedModel model{options->model, parse_settings(options->settings)};
      if (!options->backend.empty()) model.overrides.push_back({"backend", options->backend});
      Quiet announcements;
      const EvalReport report = evaluate(model, &announcements);
      if (line.json) {
        print_json(to_json(report));
        return ExitCode::done;
      }
      fmt::print("rows      {}\n", count_text(report.rows));
      fmt::print("loss      {:.6f}\n", report.loss);
      fmt::print("accuracy  {}\n", percent_text(report.accuracy));
      fmt::print("top 5     {}\n", percent_text(report.top5_accuracy));
      fmt::print("time      {}\n", duration_text(report.seconds));
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
