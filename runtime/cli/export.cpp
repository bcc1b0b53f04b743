#include <gpunn/training.hpp>

#include <memory>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/json.hpp"

namespace gpunn::cli {

void add_export(CommandLine& line) {
  struct Options {
    std::filesystem::path model, file;
  };
  auto options = std::make_shared<Options>();
  Verb verb = line.program.add_verb("export", "Write a trained model's weights for other programs",
                                    {"gpunn export runs/lenet_mnist/20250102-030405 --to lenet.safetensors"});
  verb.add_option("model", options->model, "A run folder (its best checkpoint) or a checkpoint file")
      .required()
      .type_name("RUN|CHECKPOINT");
  verb.add_option("--to", options->file, "The file to write: NAME.safetensors")
      .required()
      .type_name("FILE.safetensors");
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      const ExportReport report = export_weights(options->model, options->file);
      if (line.json) {
        print_json({{"file", report.file.string()}, {"tensors", report.tensors}, {"numbers", report.numbers}});
      } else {
        fmt::print("weights   {} tensors, {} numbers, in {}\n", report.tensors, report.numbers, report.file.string());
      }
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
