#include <memory>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/options/profile.hpp"
#include "cli/ranks/rank_options.hpp"
#include "cli/verbs/training_verb.hpp"

namespace gpunn::cli {

void add_run(CommandLine& line) {
  struct Options {
    ExperimentOptions experiment;
    TrainingDisplay display;
    ProfileArguments profile;
    RankOptions ranks;
  };
  auto options = std::make_shared<Options>();
  Verb verb =
      line.program.add_verb("run", "Train an experiment in a new run folder",
                            {"gpunn run experiments/lenet_mnist.yaml",
                             "gpunn run experiments/lenet_mnist.yaml --backend cpu --set optimizer.learning_rate=0.05",
                             "gpunn run experiments/lenet_mnist.yaml --profile trace.json"});
  verb.alias("train");
  add_experiment_options(verb, options->experiment);
  verb.add_option("--runs", options->experiment.runs, "Folder for run folders instead of ./runs").type_name("DIR");
  add_display_flags(verb, line, options->display);
  add_profile_options(verb, options->profile);
  add_rank_options(verb, options->ranks);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      if (options->ranks.starts_others()) return options->ranks.start();
      const Experiment experiment = options->experiment.load();
      return show_training(line, options->display, options->ranks.place(), [&](RunOptions training) {
        training.profile = options->profile.get();
        return train(experiment, training);
      });
    };
  });
}

}  // namespace gpunn::cli
