#include "cli/command.hpp"

#include <gpunn/version.hpp>

namespace gpunn::cli {

CommandLine::CommandLine()
    : app(make_program(
          "gpunn", "gpunn trains neural networks from YAML experiments, through backend plugins.", version(),
          "Example:\n  gpunn run experiments/lenet_mnist.yaml --backend cpu\n\n'gpunn VERB --help' tells more.")),
      program(app.get()) {
  program.require_verb();
}

void add_all(CommandLine& line) {
  add_run(line);
  add_resume(line);
  add_eval(line);
  add_predict(line);
  add_report(line);
  add_export(line);
  add_diagnose(line);
  add_plugins(line);
  add_plan(line);
  add_summary(line);
  add_check(line);
  add_bench(line);
  add_race(line);
  add_data(line);
  add_completion(line);
}

void add_json_flag(Verb verb, CommandLine& line) { verb.add_flag("--json", line.json, "Print JSON instead of text"); }

}  // namespace gpunn::cli
