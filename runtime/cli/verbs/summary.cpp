#include <gpunn/summary.hpp>

#include <charconv>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/status_line.hpp"
#include "cli/terminal/table.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

struct SummaryArguments {
  ExperimentOptions experiment;
  std::string input;
  std::optional<int64_t> batch;
};

// "3,224,224", also with 'x' between.
Shape input_shape_of(const std::string& text) {
  Shape shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int64_t size = 0;
    const auto [stop, error] = std::from_chars(at, end, size);
    const bool last = stop == end;
    if (error != std::errc() || size < 1 || (!last && *stop != ',' && *stop != 'x')) {
      throw Error("--input: expected the shape of a sample, as 3,224,224 or 784, found '" + text + "'",
                  ExitCode::usage);
    }
    shape.push_back(size);
    if (last) return shape;
    at = stop + 1;
  }
}

std::string megaflops(double flops) { return flops > 0 ? fmt::format("{:.3f}", flops / 1e6) : "-"; }
std::string count_or_dash(int64_t count) { return count > 0 ? count_text(count) : "-"; }

void print_summary_layers(const SummaryReport& report, bool colour) {
  Table table({{"LAYER"},
               {"TYPE"},
               {"OUTPUT"},
               {"PARAMETERS", Align::right},
               {"TRAINABLE", Align::right},
               {"MFLOP FORWARD", Align::right},
               {"MFLOP A STEP", Align::right}});
  for (const SummaryLayer& layer : report.layers) {
    table.add({printable(layer.name), layer.type, to_string(layer.output), count_or_dash(layer.parameters),
               layer.parameters > 0 ? count_text(layer.trainable) : "-", megaflops(layer.forward_flops),
               megaflops(layer.step_flops)});
  }
  put("{}\n", table.text(colour));
}

void print_summary_totals(const SummaryReport& report) {
  const auto count = [](const char* what, int64_t number, const char* note = "") {
    put("{:<12}{:>16}{}\n", what, count_text(number), note);
  };
  count("parameters", report.parameters);
  count("trainable", report.trainable);
  count("frozen", report.parameters - report.trainable);
  if (report.buffers > 0) count("buffers", report.buffers, "  running statistics, which are no parameters");
  put("{:<12}{:>16.3f} GFLOP a batch of {}, {:.3f} MFLOP a sample\n", "forward", report.forward_flops / 1e9,
      report.batch_size, report.forward_flops / 1e6 / static_cast<double>(report.batch_size));
  if (report.step_flops > 0) {
    put("{:<12}{:>16.3f} GFLOP for {} samples: forward, gradients, update\n", "step", report.step_flops / 1e9,
        report.samples_per_step);
  }
  put("\n");
  const auto memory = [](const char* what, uint64_t bytes, const char* note = "") {
    put("{:<12}{:>16} bytes  {:>10}{}\n", what, count_text(static_cast<int64_t>(bytes)), bytes_text(bytes), note);
  };
  memory("parameters", report.parameter_bytes, report.buffers > 0 ? ", with the buffers" : "");
  memory("gradients", report.gradient_bytes);
  memory("optimizer", report.optimizer_bytes);
  memory("activations", report.activation_bytes);
  memory("total", report.total_bytes, ", without a backend's workspaces and the data set");
}

void print_summary_report(const SummaryReport& report) {
  put("{}, a batch of {} samples {}\n", printable(report.model), report.batch_size, to_string(report.sample));
  put("data  {}\n", printable(report.data));
  if (!report.start.empty()) put("{}\n", printable(report.start));
  put("\n");
  print_summary_layers(report, terminal_of(STDOUT_FILENO).colour);
  print_summary_totals(report);
}

}  // namespace

void add_summary(CommandLine& line) {
  auto options = std::make_shared<SummaryArguments>();
  Verb verb = line.program.add_verb(
      "summary", "Show a model's layers, and the work and memory of training it",
      {"gpunn summary experiments/resnet18_cifar10.yaml", "gpunn summary models/resnet50.yaml --input 3,224,224"});
  add_experiment_options(verb, options->experiment);
  verb.add_option("--input", options->input,
                  "Shape of a sample instead of the data set's, as 3,224,224; EXPERIMENT may then be a model's file")
      .type_name("C,H,W");
  add_input_shape_option(verb, options->experiment.settings);
  verb.add_option("--batch-size", options->batch, "Batch size, instead of data.batch_size").type_name("N");
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      SummaryRequest request{
          .file = options->experiment.file, .overrides = options->experiment.overrides(), .input = {}};
      if (options->batch) request.overrides.push_back({"data.batch_size", std::to_string(*options->batch)});
      if (!options->input.empty()) request.input = input_shape_of(options->input);
      const SummaryReport report = summarize(request);
      if (!report.notice.empty()) StatusLine::of_stderr().print(printable(report.notice));
      if (line.json) {
        print_json(to_json(report));
      } else {
        print_summary_report(report);
      }
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
