#include "cli/command.hpp"

#include <gpunn/version.hpp>

namespace gpunn::cli {

void add_all(CommandLine& line) {
  line.app.name("gpunn");
  line.app.description("gpunn trains neural networks from YAML experiments, through backend plugins.");
  line.app.set_version_flag("--version", version());
  line.app.require_subcommand(1);
  line.app.footer(
      "Example:\n  gpunn run experiments/lenet_mnist.yaml --backend cpu\n\n'gpunn VERB --help' tells more.");
  add_run(line);
  add_resume(line);
  add_eval(line);
  add_predict(line);
  add_report(line);
  add_export(line);
  add_diagnose(line);
  add_plugins(line);
  add_plan(line);
  add_check(line);
  add_bench(line);
  add_race(line);
  add_data(line);
  add_completion(line);
}

CLI::App* add_verb(CLI::App& parent, const std::string& name, const std::string& description,
                   const std::vector<std::string>& examples) {
  CLI::App* verb = parent.add_subcommand(name, description);
  std::string footer = examples.size() == 1 ? "Example:" : "Examples:";
  for (const std::string& example : examples) footer += "\n  " + example;
  verb->footer(footer);
  return verb;
}

CLI::Validator svg_file() {
  const auto complaint = [](const std::string& name) {
    return name.ends_with(".svg") ? std::string() : "expected a file that ends in .svg, found '" + name + "'";
  };
  return {complaint, "", "SVG"};
}

void add_json_flag(CLI::App& verb, CommandLine& line) {
  verb.add_flag("--json", line.json, "Print JSON instead of text");
}

}  // namespace gpunn::cli
