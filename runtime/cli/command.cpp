#include "cli/command.hpp"

#include <gpunn/version.hpp>

namespace gpunn::cli {

// A file each.
void add_run(CommandLine& line);
void add_resume(CommandLine& line);
void add_eval(CommandLine& line);
void add_predict(CommandLine& line);
void add_upscale(CommandLine& line);
void add_explain(CommandLine& line);
void add_stylize(CommandLine& line);
void add_serve(CommandLine& line);
void add_report(CommandLine& line);
void add_export(CommandLine& line);
void add_quantize(CommandLine& line);
void add_plugins(CommandLine& line);
void add_plan(CommandLine& line);
void add_summary(CommandLine& line);
void add_diagnose(CommandLine& line);
void add_check(CommandLine& line);
void add_bench(CommandLine& line);
void add_race(CommandLine& line);
void add_data(CommandLine& line);
void add_completion(CommandLine& line);
void add_help(CommandLine& line);
void add_manual(CommandLine& line);

CommandLine::CommandLine()
    : app(make_app("gpunn", "gpunn trains neural networks from YAML experiments, through backend plugins.", version(),
                   "Example:\n  gpunn run experiments/lenet_mnist.yaml --backend cpu\n\n"
                   "'gpunn help VERB' tells more of a verb. 'gpunn help keys' lists what an experiment may\n"
                   "say, 'gpunn help layers' what a model is made of, 'gpunn help ops' what a backend runs.")),
      program(app.get()) {
  program.require_verb();
}

void add_all(CommandLine& line) {
  line.program.begin_group("Train");
  add_run(line);
  add_resume(line);
  add_plan(line);
  add_summary(line);
  line.program.begin_group("Use a trained model");
  add_eval(line);
  add_predict(line);
  add_explain(line);
  add_upscale(line);
  add_stylize(line);
  add_serve(line);
  add_report(line);
  add_export(line);
  add_quantize(line);
  line.program.begin_group("Data");
  add_data(line);
  line.program.begin_group("Backends");
  add_plugins(line);
  add_check(line);
  add_bench(line);
  add_race(line);
  add_diagnose(line);
  line.program.begin_group("Help");
  add_help(line);
  add_completion(line);
  add_manual(line);
}

void add_json_flag(Verb verb, CommandLine& line) { verb.add_flag("--json", line.json, "Print JSON instead of text"); }

void add_quiet_flag(Verb verb, CommandLine& line) { verb.add_flag("--quiet", line.quiet, "No progress"); }

}  // namespace gpunn::cli
