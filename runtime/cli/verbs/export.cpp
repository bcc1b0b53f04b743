#include <gpunn/engine.hpp>
#include <gpunn/error.hpp>
#include <gpunn/onnx_export.hpp>
#include <gpunn/training.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

// Of an engine alone.
struct EngineArguments {
  std::string backend, precision, batches;
  std::optional<int64_t> threads;
  std::vector<std::filesystem::path> plugins;
  bool operator==(const EngineArguments&) const = default;
};

void write_weights(const CommandLine& line, const std::filesystem::path& model, const std::filesystem::path& file,
                   const std::filesystem::path& names, const std::vector<Override>& overrides) {
  const ExportReport report = export_weights(model, file, names, overrides);
  if (line.json) {
    print_json({{"file", report.file.string()},
                {"tensors", report.tensors},
                {"numbers", report.numbers},
                {"unnamed", report.unnamed}});
    return;
  }
  put("weights   {} tensors, {} numbers, in {}\n", report.tensors, report.numbers, report.file.string());
  for (const std::string& name : report.unnamed) put("no row    {} keeps its name\n", printable(name));
}

void write_onnx(const CommandLine& line, const std::filesystem::path& model, const std::filesystem::path& file,
                const OnnxExportOptions& options, const std::vector<Override>& overrides) {
  const OnnxExportReport report = export_onnx(model, file, options, overrides);
  if (line.json) {
    print_json({{"file", report.file.string()},
                {"data", report.data.string()},
                {"opset", report.opset},
                {"ir_version", report.ir_version},
                {"nodes", report.nodes},
                {"tensors", report.tensors},
                {"numbers", report.numbers},
                {"warnings", report.warnings}});
    return;
  }
  for (const std::string& warning : report.warnings) put("{}\n", printable(warning));
  put("ONNX      {} nodes, {} tensors, {} numbers, opset {} (IR {}), in {}\n", report.nodes, report.tensors,
      report.numbers, report.opset, report.ir_version, report.file.string());
  if (!report.data.empty()) put("data      in {}, which belongs beside it\n", report.data.string());
}

void write_engine(const CommandLine& line, const std::filesystem::path& model, const std::filesystem::path& file,
                  const EngineArguments& arguments, const std::vector<Override>& overrides) {
  ModelOptions options{.backend = arguments.backend, .threads = arguments.threads, .plugins = arguments.plugins};
  options.overrides = overrides;
  if (!arguments.precision.empty()) options.overrides.push_back({"training.precision", arguments.precision});
  const EngineExportReport report =
      export_engine(model, file, batch_sizes(arguments.batches.empty() ? "1" : arguments.batches), options);
  if (line.json) {
    print_json({{"file", report.file.string()},
                {"backend", report.backend},
                {"device", report.device},
                {"batches", report.batches},
                {"ops", report.ops},
                {"constants", report.constants},
                {"file_bytes", report.file_bytes}});
    return;
  }
  put("engine    {} ops, {} constants, {}, for {} rows, in {}\n", report.ops, report.constants,
      bytes_text(report.file_bytes), fmt::join(report.batches, ", "), report.file.string());
  put("runs on   {}, {}\n", printable(report.backend), printable(report.device));
}

}  // namespace

void add_export(CommandLine& line) {
  struct Options {
    std::filesystem::path model, file, names;
    OnnxExportOptions onnx;
    EngineArguments engine;
    std::vector<std::string> settings;  // "key=value"
  };
  auto options = std::make_shared<Options>();
  Verb verb = line.program.add_verb(
      "export", "Write a trained model for other programs: its weights, or the whole model as ONNX or as an engine",
      {"gpunn export runs/lenet_mnist/2025-01-02T03-04-05Z --to lenet.safetensors",
       "gpunn export runs/resnet18_cifar10/2025-01-02T03-04-05Z --to resnet18.safetensors "
       "--names models/resnet.names.yaml",
       "gpunn export runs/lenet_mnist/2025-01-02T03-04-05Z --to lenet.onnx --raw-input",
       "gpunn export resnet50.onnx --to resnet50.engine --backend cpu --batch 1,8"});
  verb.add_option("model", options->model, "A run folder (its best checkpoint), a checkpoint or an ONNX file")
      .required()
      .type_name("RUN|CHECKPOINT|ONNX");
  verb.add_option("--to", options->file, "The file to write: NAME.safetensors, NAME.onnx, or NAME.engine")
      .required()
      .type_name("FILE");
  verb.add_option("--names", options->names,
                  "Table of names, as for init_from.names: write the names on its left, for PyTorch's load_state_dict")
      .type_name("TABLE");
  verb.add_option("--opset", options->onnx.opset, "ONNX: operator set, 13 to 21 (default 18)").type_name("N");
  verb.add_flag("--raw-input", options->onnx.raw_input,
                "ONNX: the graph takes raw samples, as uint8 images, and normalises them");
  verb.add_flag("--with-preprocessing", options->onnx.with_preprocessing,
                "ONNX: the graph takes one picture of any size, uint8 [height, width, channels], and prepares it as "
                "gpunn predict does");
  verb.add_flag("--fold-batch-norm", options->onnx.fold_batch_norm,
                "ONNX: fold each batch norm into the layer before it");
  verb.add_flag("--external-data", options->onnx.external_data,
                "ONNX: write the weights to FILE.data beside it; always done above 2 GB");
  verb.add_option("--backend", options->engine.backend, "Engine: the backend (default: the experiment's)")
      .type_name("BACKEND");
  verb.add_option("--precision", options->engine.precision,
                  "Engine: precision of products (default: that of the training)")
      .type_name("fp32|tf32|bf16|f16");
  verb.add_option(
          "--batch", options->engine.batches,
          "Engine: numbers of rows in a call, a program for each (default: 1); other calls take the next larger")
      .type_name("N,...");
  verb.add_option("--threads", options->engine.threads, "Engine: host threads of the backend; 0: its choice")
      .range(0, 4096)
      .type_name("N");
  add_plugin_option(verb, options->engine.plugins);
  add_input_shape_option(verb, options->settings);
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      const std::vector<Override> overrides = parse_settings(options->settings);
      const bool is_engine = options->file.extension() == ".engine";
      if (!is_engine && options->engine != EngineArguments()) {
        throw Error("--backend, --precision, --batch, --threads and --plugin are for NAME.engine", ExitCode::usage);
      }
      if (is_engine) {
        if (!options->names.empty() || options->onnx != OnnxExportOptions()) {
          throw Error("--names and the options of ONNX files are not for NAME.engine", ExitCode::usage);
        }
        write_engine(line, options->model, options->file, options->engine, overrides);
      } else if (options->file.extension() == ".onnx") {
        if (!options->names.empty()) {
          throw Error("--names is for NAME.safetensors; tensors in an ONNX file have the model's names",
                      ExitCode::usage);
        }
        write_onnx(line, options->model, options->file, options->onnx, overrides);
      } else {
        if (options->onnx != OnnxExportOptions()) {
          throw Error(
              "--opset, --raw-input, --with-preprocessing, --fold-batch-norm and --external-data are for NAME.onnx",
              ExitCode::usage);
        }
        write_weights(line, options->model, options->file, options->names, overrides);
      }
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
