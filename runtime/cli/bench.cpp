#include <gpunn/bench.hpp>

#include <memory>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/experiment_options.hpp"
#include "cli/json.hpp"
#include "cli/table.hpp"
#include "cli/units.hpp"

namespace gpunn::cli {

namespace {

void print_report(const BenchReport& report) {
  fmt::print("{} on {}, median of {}\n", report.what, report.backend, report.repeats);
  Table table({{"  MEDIAN", Align::right},
               {"MIN", Align::right},
               {"MAX", Align::right},
               {"GFLOP/s", Align::right},
               {"GB/s", Align::right},
               {"IMAGES/s", Align::right},
               {"PEAK", Align::right}});
  const auto number = [](double value) { return value > 0 ? fmt::format("{:.1f}", value) : "-"; };
  table.add({duration_text(report.median_seconds), duration_text(report.min_seconds), duration_text(report.max_seconds),
             number(report.gflops), number(report.gigabytes),
             report.images_per_second > 0 ? rate_text(report.images_per_second) : "-", bytes_text(report.peak_bytes)});
  fmt::print("{}", table.text());
  if (report.persistent_bytes == 0) return;
  fmt::print("memory    {} arena, {} parameters and states, {} data\n", bytes_text(report.arena_bytes),
             bytes_text(report.persistent_bytes), bytes_text(report.data_bytes));
  fmt::print("steps     {}; {} allocations, {} waits of the host in the timed ones\n",
             report.captured ? "launches of a captured graph" : "op by op: " + report.eager_reason, report.allocations,
             report.synchronizations);
}

}  // namespace

void add_bench(CommandLine& line) {
  struct Options {
    std::vector<std::string> what;
    std::vector<std::string> settings;
    BenchOptions bench;
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      add_verb(line.app, "bench", "Time an op at a shape, or an experiment's training step",
               {"gpunn bench op matmul 1024x1024x1024 --backend cpu", "gpunn bench op conv2d 128,6,14,14,16,5,5",
                "gpunn bench experiments/lenet_mnist.yaml --repeats 100"});
  verb->add_option("what", options->what, "'op NAME SHAPE', or the experiment's YAML file")
      ->required()
      ->expected(1, 3)
      ->type_name("(op NAME SHAPE | EXPERIMENT)");
  verb->add_option("--backend", options->bench.backend, "Backend plugin to use")
      ->capture_default_str()
      ->type_name("NAME");
  verb->add_option("--repeats", options->bench.repeats, "Timed repeats, of which the median counts")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->type_name("N");
  verb->add_option("--warmup", options->bench.warmup, "Repeats before the first timed one")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}))
      ->type_name("N");
  verb->add_option("--threads", options->bench.threads, "Host threads of the backend; 0: its choice")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  add_set_option(*verb, options->settings);
  add_plugin_option(*verb, options->bench.plugins);
  add_json_flag(*verb, line);
  verb->callback([&line, options] {
    line.action = [&line, options] {
      const std::vector<std::string>& what = options->what;
      const bool op = what.size() == 3 && what[0] == "op";
      if (!op && what.size() != 1) {
        throw Error("bench wants 'op NAME SHAPE', as in gpunn bench op matmul 512x512x512, or one experiment's file",
                    ExitCode::usage);
      }
      if (op && !options->settings.empty())
        throw Error("--set changes an experiment, and an op has none", ExitCode::usage);
      const BenchReport report =
          op ? bench_op(what[1], what[2], options->bench)
             : bench_experiment(load_experiment(what[0], parse_settings(options->settings)), options->bench);
      if (!report.notice.empty()) fmt::print(stderr, "{}\n", report.notice);
      if (line.json) {
        print_json(to_json(report));
      } else {
        print_report(report);
      }
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
