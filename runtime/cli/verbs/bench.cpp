#include <gpunn/bench.hpp>
#include <gpunn/bench_inference.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/options/image_size.hpp"
#include "cli/options/profile.hpp"
#include "cli/reports/bench_report.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/status_line.hpp"
#include "cli/terminal/table.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

void print_report(const BenchReport& report) {
  put("{} on {}, median of {}\n", report.what, report.backend, report.repeats);
  Table table({{"  MEDIAN", Align::right},
               {"MIN", Align::right},
               {"MAX", Align::right},
               {"GFLOP/s", Align::right},
               {"SAMPLES/s", Align::right},
               {"PEAK", Align::right}});
  table.add({duration_text(report.median_seconds), duration_text(report.min_seconds), duration_text(report.max_seconds),
             fmt::format("{:.1f}", report.gflops), rate_text(report.samples_per_second),
             bytes_text(report.peak_bytes)});
  put("{}", table.text());
  put("memory    {} arena, {} parameters and states, {} data\n", bytes_text(report.arena_bytes),
      bytes_text(report.persistent_bytes), bytes_text(report.data_bytes));
  put("steps     {}; {} allocations, {} waits of the host in the timed ones\n",
      report.captured ? "launches of a captured graph" : "op by op: " + report.eager_reason, report.allocations,
      report.synchronizations);
}

void print_report(const InferenceBenchReport& report) {
  put("{} on {} ({}), loaded in {}\n", printable(report.model), report.backend, report.device,
      duration_text(report.load_seconds));
  Table table({{"  ROWS", Align::right},
               {"P50", Align::right},
               {"P99", Align::right},
               {"LEAST", Align::right},
               {"DEVICE", Align::right},
               {"ROWS/s", Align::right},
               {"MEMORY", Align::right},
               {"CALLS", Align::right}});
  for (const InferenceBenchRow& row : report.rows) {
    table.add({std::to_string(row.rows), duration_text(row.p50_seconds), duration_text(row.p99_seconds),
               duration_text(row.least_seconds), duration_text(row.device_seconds), rate_text(row.rows_per_second),
               bytes_text(row.memory_bytes), std::to_string(row.calls)});
  }
  put("{}", table.text());
  for (const InferenceBenchRow& row : report.rows) {
    if (!row.profile) continue;
    put("\nops of a call with {} rows\n{}", row.rows, profile_text(*row.profile, terminal_of(STDOUT_FILENO).colour));
  }
}

struct BenchArguments {
  std::vector<std::string> what;
  std::vector<std::string> settings;
  BenchOptions step;
  OpBenchOptions ops;
  std::string backends = "auto", precisions, preset, data;
  std::string batches = "1,8,64", size;
  bool no_ceilings = false, verbose = false;
  ReportFormat format = ReportFormat::text;
  std::filesystem::path chart;
  ProfileArguments profile;
};

std::vector<std::string> parted(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

const std::map<std::string, Precision>& precision_names() {
  static const std::map<std::string, Precision> names{
      {"fp32", Precision::fp32}, {"tf32", Precision::tf32}, {"bf16", Precision::bf16}};
  return names;
}

// The ops that `op NAME SHAPE...`, `op --preset NAME` or `kernels` ask for.
std::vector<OpShape> wanted_ops(const BenchArguments& arguments) {
  const std::vector<std::string>& what = arguments.what;
  if (what[0] == "kernels" && what.size() == 1)
    return bench_preset(arguments.preset.empty() ? "all" : arguments.preset);
  if (what.size() == 1 && !arguments.preset.empty()) return bench_preset(arguments.preset);
  if (what.size() < 3 || !arguments.preset.empty()) {
    throw Error(
        "bench needs 'op NAME SHAPE...', as in gpunn bench op matmul 512x512x512, 'op --preset NAME' or "
        "'kernels', or one experiment's file",
        ExitCode::usage);
  }
  std::vector<OpShape> ops;
  for (std::size_t i = 2; i < what.size(); ++i) ops.push_back({what[1], what[i]});
  return ops;
}

ExitCode run_ops(BenchArguments& arguments, bool as_json) {
  if (!arguments.settings.empty()) throw Error("--set changes an experiment, and an op has none", ExitCode::usage);
  if (!arguments.data.empty()) throw Error("--data is for an experiment, and an op has none", ExitCode::usage);
  OpBenchOptions& options = arguments.ops;
  options.what = wanted_ops(arguments);
  options.backends = parted(arguments.backends);
  if (!arguments.precisions.empty()) options.precisions.clear();
  for (const std::string& name : parted(arguments.precisions)) {
    const auto found = precision_names().find(name);
    if (found == precision_names().end()) {
      throw Error("--precision: expected fp32, tf32 or bf16, got '" + name + "'", ExitCode::usage);
    }
    if (std::ranges::find(options.precisions, found->second) != options.precisions.end()) {
      throw Error("--precision: '" + name + "' is named twice", ExitCode::usage);
    }
    options.precisions.push_back(found->second);
  }
  options.plugins = arguments.step.plugins;
  options.kernels = arguments.step.kernels;
  options.repeats = arguments.step.repeats;
  options.warmup = arguments.step.warmup;
  options.threads = arguments.step.threads;
  options.ceilings = !arguments.no_ceilings;
  options.chart = arguments.chart;
  if (arguments.verbose) {
    options.on_row = [](const OpBenchRow& row) {
      StatusLine::of_stderr().print(
          fmt::format("{} {} {} {} {}: {}", row.op, row.shape, name_of(row.precision), row.backend, row.kernel,
                      row.failure.empty() ? duration_text(row.median_seconds) : printable(row.failure)));
    };
  }
  const OpBenchReport report = bench_ops(options);
  if (as_json) {
    print_json(to_json(report));
  } else {
    put("{}", bench_report(report, arguments.format, terminal_of(STDOUT_FILENO).colour));
    if (!arguments.chart.empty()) put("chart  {}\n", arguments.chart.string());
  }
  return report.ok() ? ExitCode::done : ExitCode::failed;
}

ExitCode run_inference(const BenchArguments& arguments, bool as_json) {
  if (arguments.what.size() != 2) {
    throw Error("bench infer needs one model: gpunn bench infer RUN|CHECKPOINT|ONNX", ExitCode::usage);
  }
  ModelOptions options{.backend = arguments.backends,
                       .plugins = arguments.step.plugins,
                       .overrides = parse_settings(arguments.settings),
                       .image_size = {}};
  if (arguments.step.threads > 0) options.threads = arguments.step.threads;
  if (!arguments.size.empty()) {
    const FrameSize size = image_size("--size", arguments.size);
    options.image_size = {size.height, size.width};
  }
  if (!arguments.precisions.empty()) options.overrides.push_back({"training.precision", arguments.precisions});
  if (!arguments.step.kernels.empty()) {
    options.overrides.push_back({"kernels", fmt::format("[{}]", fmt::join(arguments.step.kernels, ", "))});
  }
  const InferenceBenchReport report = bench_inference(
      arguments.what[1],
      {.batches = batch_sizes(arguments.batches), .warmup = arguments.step.warmup, .profile = arguments.profile.get()},
      options);
  if (as_json) {
    print_json(to_json(report));
  } else {
    print_report(report);
  }
  return ExitCode::done;
}

constexpr double kLoaderSeconds = 5;

ExitCode run_loader(const BenchArguments& arguments, bool as_json) {
  if (arguments.what.size() != 2) {
    throw Error("bench data needs one experiment: gpunn bench data EXPERIMENT", ExitCode::usage);
  }
  std::vector<Override> settings;
  if (!arguments.data.empty()) settings = data_settings(arguments.data);
  std::ranges::move(parse_settings(arguments.settings), std::back_inserter(settings));
  const LoaderBench bench = bench_loader(load_experiment(arguments.what[1], settings), kLoaderSeconds);
  if (as_json) {
    print_json({{"source", bench.source},
                {"samples", bench.samples},
                {"seconds", bench.seconds},
                {"threads", bench.threads},
                {"samples_per_second", bench.samples_per_second()}});
  } else {
    put("batches of {}, as training has them\n{} samples in {} on {} threads: {} samples/s\n", printable(bench.source),
        bench.samples, duration_text(bench.seconds), bench.threads, rate_text(bench.samples_per_second()));
  }
  return ExitCode::done;
}

// The experiment around an ONNX file, on samples that the program makes unless the settings name data.
Experiment measured_experiment(const std::filesystem::path& file, const std::vector<Override>& settings) {
  if (file.extension() != ".onnx") return load_experiment(file, settings);
  std::string quoted;
  for (const char c : std::filesystem::absolute(file).string()) quoted += c == '\'' ? "''" : std::string(1, c);
  return parse_experiment("model: '" + quoted + "'\ndata: {dataset: arrays, batch_size: 32}\n", file.string(),
                          settings);
}

ExitCode run_step(BenchArguments& arguments, bool as_json) {
  if (arguments.what.size() != 1) {
    throw Error("bench needs 'op NAME SHAPE...', 'kernels', or one experiment's file", ExitCode::usage);
  }
  for (const auto& [given, option] :
       {std::pair{!arguments.chart.empty(), "--chart"}, std::pair{!arguments.preset.empty(), "--preset"},
        std::pair{arguments.ops.cold, "--cold"}, std::pair{arguments.ops.dtype != DType::f32, "--dtype"},
        std::pair{arguments.ops.layout != Layout::packed, "--layout"},
        std::pair{arguments.no_ceilings, "--no-ceilings"}, std::pair{arguments.verbose, "--verbose"},
        std::pair{arguments.format != ReportFormat::text, "--format"}}) {
    if (given) throw Error(std::string(option) + " is for 'bench op'", ExitCode::usage);
  }
  std::vector<Override> settings;
  if (!arguments.data.empty()) settings = data_settings(arguments.data);
  std::ranges::move(parse_settings(arguments.settings), std::back_inserter(settings));
  if (!arguments.precisions.empty()) settings.push_back({"training.precision", arguments.precisions});
  arguments.step.backend = arguments.backends;
  const BenchReport report = bench_experiment(measured_experiment(arguments.what[0], settings), arguments.step);
  if (!report.notice.empty()) StatusLine::of_stderr().print(printable(report.notice));
  if (as_json) {
    print_json(to_json(report));
  } else {
    print_report(report);
  }
  return ExitCode::done;
}

}  // namespace

void add_bench(CommandLine& line) {
  auto options = std::make_shared<BenchArguments>();
  Verb verb = line.program.add_verb(
      "bench", "Time ops at shapes by several backends and kernels, or an experiment's training step",
      {"gpunn bench op matmul 1024x1024x1024 --backend cpu",
       "gpunn bench op matmul 512..8192 --backend cpu,mine --kernel all --chart roof.svg",
       "gpunn bench op conv2d 128,6,14,14,16,5,5", "gpunn bench kernels --backend cpu,mine",
       "gpunn bench infer resnet50.onnx --batch 1,8,64", "gpunn bench data photos.yaml",
       "gpunn bench experiments/lenet_mnist.yaml --repeats 100", "gpunn bench resnet18.onnx --set data.batch_size=64"});
  verb.add_option("what", options->what,
                  "What to time. 'op NAME SHAPE...' or 'op --preset NAME': ops. 'kernels': the ops of every preset. "
                  "'infer' and a trained model: its calls. 'data' and an experiment: its batches, made on the host. An "
                  "experiment's file: its training step. An ONNX file: a training step on random samples")
      .required()
      .expected(1, 1000)
      .type_name("(op OP SHAPE... | kernels | infer RUN | data FILE | EXPERIMENT | ONNX)");
  verb.add_option("--batch", options->batches, "With 'infer': numbers of rows in a call")
      .capture_default_str()
      .type_name("N,...");
  verb.add_option("--size", options->size, "With 'infer' and a model that takes images of any size: their pixels")
      .type_name("WIDTHxHEIGHT");
  add_profile_options(verb, options->profile, "the ops of a call, with 'infer',",
                      "and print their times; without FILE, no timeline");
  add_data_option(verb, options->data);
  verb.add_option("--backend", options->backends, "Backend to time; several for ops, as cpu,mine")
      .capture_default_str()
      .type_name("BACKEND,...");
  add_kernel_option(verb, options->step.kernels);
  verb.add_option("--precision", options->precisions,
                  "Precision of the factors of products; several for ops, as fp32,tf32")
      .type_name("fp32|tf32|bf16,...");
  const std::vector<std::pair<std::string, DType>> dtypes{
      {"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}};
  verb.add_choice("--dtype", options->ops.dtype, dtypes, "Dtype of an op's tensors, if it accepts others than f32");
  const std::vector<std::pair<std::string, Layout>> layouts{{"packed", Layout::packed},
                                                            {"channels_last", Layout::channels_last}};
  verb.add_choice("--layout", options->ops.layout, layouts, "Memory layout of an op's images");
  verb.add_option("--preset", options->preset, "Time a prepared list of ops and shapes").one_of(bench_presets());
  verb.add_option("--repeats", options->step.repeats, "Timed repeats; the median counts. Slow ops get fewer")
      .capture_default_str()
      .range(1, 1'000'000)
      .type_name("N");
  verb.add_option("--warmup", options->step.warmup, "Repeats before the first timed one")
      .capture_default_str()
      .range(0, 1'000'000)
      .type_name("N");
  verb.add_option("--threads", options->step.threads, "Host threads of the backend; 0: its choice, the default")
      .range(0, 1024)
      .type_name("N");
  verb.add_flag("--cold", options->ops.cold, "Give each run other data, so that no cache holds it");
  verb.add_flag("--no-ceilings", options->no_ceilings, "Skip the measurement of the device's highest rates");
  verb.add_option("--chart", options->chart, "Draw the roofline of the ops into this file")
      .svg_file()
      .type_name("FILE.svg");
  const std::vector<std::pair<std::string, ReportFormat>> formats{{"text", ReportFormat::text},
                                                                  {"markdown", ReportFormat::markdown}};
  verb.add_choice("--format", options->format, formats, "Format of the table of ops");
  verb.add_flag("--verbose", options->verbose, "Print each op as soon as it is measured");
  add_model_settings(verb, options->settings);
  add_plugin_option(verb, options->step.plugins);
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      const std::string& first = options->what.front();
      if (first != "infer" && options->profile.get()) throw Error("--profile is for 'bench infer'", ExitCode::usage);
      if (first != "infer" && !options->size.empty()) throw Error("--size is for 'bench infer'", ExitCode::usage);
      if (first == "data") return run_loader(*options, line.json);
      if (first == "infer") return run_inference(*options, line.json);
      return first == "op" || first == "kernels" ? run_ops(*options, line.json) : run_step(*options, line.json);
    };
  });
}

}  // namespace gpunn::cli
