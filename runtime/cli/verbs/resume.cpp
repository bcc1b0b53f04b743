#include <memory>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/ranks/rank_options.hpp"
#include "cli/verbs/training_verb.hpp"

namespace gpunn::cli {

void add_resume(CommandLine& line) {
  struct Options {
    std::filesystem::path run;
    std::string backend;
    std::vector<std::string> settings;
    std::optional<int64_t> epochs;
    bool keep_schedule = false;
    TrainingDisplay display;
    RankOptions ranks;
  };
  auto options = std::make_shared<Options>();
  Verb verb = line.program.add_verb("resume", "Continue an interrupted run, in its folder",
                                    {"gpunn resume runs/lenet_mnist/2025-01-02T03-04-05Z",
                                     "gpunn resume runs/lenet_mnist/2025-01-02T03-04-05Z --epochs 20"});
  verb.add_option("run", options->run, "The run folder").required().type_name("RUN");
  add_backend_option(verb, options->backend);
  add_set_option(verb, options->settings);
  verb.add_option("--epochs", options->epochs, "Epochs in total, including those already done").type_name("N");
  verb.add_flag("--keep-schedule", options->keep_schedule,
                "Keep the length that the schedule has had; without it, a schedule extends over all epochs");
  add_display_flags(verb, line, options->display);
  add_rank_options(verb, options->ranks);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      if (options->ranks.starts_others()) return options->ranks.start();
      std::vector<Override> overrides = model_overrides(options->settings, options->backend);
      if (options->epochs) overrides.push_back({"training.epochs", std::to_string(*options->epochs)});
      return show_training(line, options->display, options->ranks.place(), [&](RunOptions training) {
        training.keep_schedule = options->keep_schedule;
        return resume(options->run, overrides, training);
      });
    };
  });
}

}  // namespace gpunn::cli
