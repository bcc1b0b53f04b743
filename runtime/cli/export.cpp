#include <gpunn/training.hpp>

#include <memory>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"

namespace gpunn::cli {

void add_export(CommandLine& line) {
  struct Options {
    std::filesystem::path model, file, names;
  };
  auto options = std::make_shared<Options>();
  Verb verb =
      line.program.add_verb("export", "Write a trained model's weights for other programs",
                            {"gpunn export runs/lenet_mnist/2025-01-02T03-04-05Z --to lenet.safetensors",
                             "gpunn export runs/resnet18_cifar10/2025-01-02T03-04-05Z --to resnet18.safetensors "
                             "--names models/resnet.names.yaml"});
  verb.add_option("model", options->model, "A run folder (its best checkpoint) or a checkpoint file")
      .required()
      .type_name("RUN|CHECKPOINT");
  verb.add_option("--to", options->file, "The file to write: NAME.safetensors")
      .required()
      .type_name("FILE.safetensors");
  verb.add_option("--names", options->names,
                  "A table of names, as init_from.names takes it: write the names on its left, for PyTorch's "
                  "load_state_dict")
      .type_name("TABLE");
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      const ExportReport report = export_weights(options->model, options->file, options->names);
      if (line.json) {
        print_json({{"file", report.file.string()},
                    {"tensors", report.tensors},
                    {"numbers", report.numbers},
                    {"unnamed", report.unnamed}});
      } else {
        put("weights   {} tensors, {} numbers, in {}\n", report.tensors, report.numbers, report.file.string());
        for (const std::string& name : report.unnamed) {
          put("no row    {} keeps its name\n", printable(name));
        }
      }
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
