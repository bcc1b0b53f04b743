#include <gpunn/engine.hpp>
#include <gpunn/plan.hpp>

#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/ranks/ranks_plan.hpp"
#include "cli/reports/arena_map.hpp"
#include "cli/reports/json.hpp"
#include "cli/reports/schedule_plan.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/status_line.hpp"
#include "cli/terminal/table.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

namespace gpunn::cli {

namespace {

std::string flops_text(double flops) { return flops > 0 ? fmt::format("{:.3f}", flops / 1e6) : "-"; }

void print_ops(const PlanReport& report, bool colour) {
  Table table({{"#", Align::right},
               {"OP"},
               {"NAME"},
               {"BACKEND"},
               {"MFLOP", Align::right},
               {"WORKSPACE", Align::right},
               {"OUTPUTS"}});
  for (std::size_t i = 0; i < report.ops.size(); ++i) {
    const PlannedOp& op = report.ops[i];
    std::string outputs;
    for (const std::string& output : op.outputs) outputs += (outputs.empty() ? "" : ", ") + output;
    const std::string runner = op.kernel.empty() ? op.backend : op.backend + " " + op.kernel;
    table.add({std::to_string(i), op.op, op.name, runner, flops_text(op.flops),
               op.workspace_bytes == 0 ? "-" : bytes_text(op.workspace_bytes), outputs});
  }
  put("{}", table.text(colour));
}

// Why the top plugin of the chain does not run some ops: each reason once, with its ops.
void print_refusals(const PlanReport& report) {
  std::map<std::string, std::map<std::string, int>> ops_of;
  for (const PlannedOp& op : report.ops) {
    if (!op.refusal.empty()) ++ops_of[op.refusal][op.op];
  }
  for (const auto& [refusal, ops] : ops_of) {
    std::string names;
    for (const auto& [op, count] : ops) {
      names += (names.empty() ? "" : ", ") + op + (count > 1 ? fmt::format(" ({} times)", count) : "");
    }
    fmt::print("{}not served: {}: {}\n", &refusal == &ops_of.begin()->first ? "\n" : "", names, printable(refusal));
  }
}

// The fused subgraphs, and the reasons of plugins that could have fused more.
void print_subgraphs(const PlanReport& report, bool colour) {
  if (!report.subgraphs.empty()) {
    Table table({{"SUBGRAPH"}, {"OPS"}, {"BACKEND"}, {"WORKSPACE", Align::right}});
    for (const PlannedSubgraph& subgraph : report.subgraphs) {
      table.add({printable(subgraph.name), fmt::format("{}-{}", subgraph.first_op, subgraph.last_op), subgraph.backend,
                 subgraph.workspace_bytes == 0 ? "-" : bytes_text(subgraph.workspace_bytes)});
    }
    put("\n{}", table.text(colour));
  }
  constexpr std::size_t kShown = 5;
  for (std::size_t i = 0; i < std::min(kShown, report.not_fused.size()); ++i) {
    put("{}not fused: {}\n", i == 0 ? "\n" : "", printable(report.not_fused[i]));
  }
  if (report.not_fused.size() > kShown) put("and {} more\n", report.not_fused.size() - kShown);
}

void print_recomputations(const PlanReport& report) {
  if (report.recomputed.empty()) return;
  std::string stages;
  for (const PlannedRecomputation& stage : report.recomputed) {
    stages += fmt::format("{}{} ({} {})", stages.empty() ? "" : ", ", printable(stage.name), stage.ops,
                          stage.ops == 1 ? "op" : "ops");
  }
  put("\nrecomputed: {}\narena {}, without recomputation {}\n", stages, bytes_text(report.arena_bytes),
      bytes_text(report.kept_arena_bytes));
}

void print_totals(const PlanReport& report, bool colour) {
  std::map<std::string, std::pair<int64_t, uint64_t>> storages;
  for (const PlannedTensor& tensor : report.tensors) {
    auto& [count, bytes] = storages[tensor.storage];
    ++count;
    bytes += tensor.bytes;
  }
  Table table({{"STORAGE"}, {"TENSORS", Align::right}, {"BYTES", Align::right}, {"", Align::right}});
  for (const auto& [storage, total] : storages) {
    table.add(
        {storage, count_text(total.first), count_text(static_cast<int64_t>(total.second)), bytes_text(total.second)});
  }
  put("{}\n", table.text(colour));

  double flops = 0;
  for (const PlannedOp& op : report.ops) flops += op.flops;
  const auto line = [](const char* what, uint64_t bytes, const char* note = "") {
    put("{:<12}{:>14} bytes  {:>10}{}\n", what, count_text(static_cast<int64_t>(bytes)), bytes_text(bytes), note);
  };
  put("{:<12}{:>14}\n", "parameters", count_text(report.parameters));
  put("{:<12}{:>14}\n", "trainable", count_text(report.trainable));
  put("{:<12}{:>14}\n", "frozen", count_text(report.parameters - report.trainable));
  put("{:<12}{:>14.3f} GFLOP a step\n", "work", flops / 1e9);
  line("arena", report.arena_bytes);
  line("persistent", report.persistent_bytes);
  line("peak", report.peak_bytes);
  line("data", report.data_bytes,
       report.residency == "stream" ? ", rings of batches; the data set stays on the host" : "");
}

void print_report(const PlanReport& report, const RanksPlanOptions& ranks, bool why) {
  const bool colour = terminal_of(STDOUT_FILENO).colour;
  std::string chain;
  for (const std::string& name : report.chain) chain += (chain.empty() ? "" : " over ") + name;
  put("{} ops of one training step on {}\n", report.ops.size(), chain.empty() ? report.backend : chain);
  put("data  {}\n", printable(report.data));
  if (!report.start.empty()) put("{}\n", printable(report.start));
  put("\n");
  print_ops(report, colour);
  if (why) print_refusals(report);
  print_subgraphs(report, colour);
  print_recomputations(report);
  print_ranks(report, ranks, colour);
  put("\narena, {}\n{}\n", bytes_text(report.arena_bytes),
      arena_map(report, std::min<std::size_t>(columns_of(STDOUT_FILENO), 120)));
  print_totals(report, colour);
}

// The changes of each pass, and the program after the last pass.
void print_inference(const PlanReport& report, int64_t rows, bool why) {
  const bool colour = terminal_of(STDOUT_FILENO).colour;
  put("{} ops of a call with {} {} on {}\n\n", report.ops.size(), rows, rows == 1 ? "row" : "rows",
      fmt::join(report.chain, " over "));
  Table passes({{"PASS"}, {"CHANGES", Align::right}, {"WHAT"}});
  constexpr std::size_t kShownChanges = 3;
  for (const PlannedPass& pass : report.passes) {
    std::string what;
    for (std::size_t i = 0; i < std::min(kShownChanges, pass.details.size()); ++i) {
      what += (i == 0 ? "" : ", ") + printable(pass.details[i]);
    }
    if (pass.details.size() > kShownChanges) what += fmt::format(" and {} more", pass.details.size() - kShownChanges);
    passes.add({pass.name, pass.on ? std::to_string(pass.changes) : "off", what});
  }
  put("{}\n", passes.text(colour));
  Table table({{"#", Align::right},
               {"OP"},
               {"NAME"},
               {"KERNEL"},
               {"LAYOUT"},
               {"MFLOP", Align::right},
               {"ARENA", Align::right},
               {"OUTPUTS"}});
  for (std::size_t i = 0; i < report.ops.size(); ++i) {
    const PlannedOp& op = report.ops[i];
    table.add({std::to_string(i), op.op, printable(op.name),
               op.kernel.empty() ? op.backend : op.backend + " " + op.kernel, op.layout, flops_text(op.flops),
               bytes_text(op.arena_bytes), fmt::format("{}", fmt::join(op.outputs, ", "))});
  }
  put("{}", table.text(colour));
  if (why) print_refusals(report);
  print_subgraphs(report, colour);
  put("\narena, {}\n{}\n", bytes_text(report.arena_bytes),
      arena_map(report, std::min<std::size_t>(columns_of(STDOUT_FILENO), 120)));
}

struct PlanArguments {
  ExperimentOptions experiment;
  Argument schedule;
  std::filesystem::path chart;  // of the schedule
  bool why = false;
  bool inference = false;
  int64_t rows = 1;                  // of a call
  std::vector<std::string> without;  // passes
  RanksPlanOptions ranks;
};

ExitCode show_inference(const PlanArguments& arguments, bool as_json) {
  ModelOptions options{.backend = arguments.experiment.backend,
                       .threads = arguments.experiment.threads,
                       .plugins = arguments.experiment.plugins,
                       .overrides = parse_settings(arguments.experiment.settings),
                       .image_size = {},
                       .without_passes = arguments.without};
  const PlanReport report = plan_inference(arguments.experiment.file, arguments.rows, options);
  if (as_json) {
    print_json(to_json(report));
  } else {
    print_inference(report, arguments.rows, arguments.why);
  }
  return ExitCode::done;
}

ExitCode show_schedule(const PlanArguments& arguments, bool as_json) {
  // An experiment named after the option would be taken for the chart's file, and overwritten.
  if (!arguments.chart.empty() && arguments.chart.extension() != ".svg") {
    throw Error("--schedule: expected a file that ends in .svg, found '" + arguments.chart.string() +
                    "'; an experiment goes in front: gpunn plan EXPERIMENT --schedule",
                ExitCode::usage);
  }
  const ScheduleReport report = plan_schedule(arguments.experiment.load());
  if (!report.notice.empty()) StatusLine::of_stderr().print(printable(report.notice));
  if (!arguments.chart.empty()) write_chart(report, arguments.chart);
  if (as_json) {
    print_json(to_json(report));
  } else {
    const Terminal terminal = terminal_of(STDOUT_FILENO);
    put("{}",
        schedule_text(report, std::min<std::size_t>(columns_of(STDOUT_FILENO), 100), terminal.utf8, terminal.colour));
    if (!arguments.chart.empty()) put("\nchart  {}\n", arguments.chart.string());
  }
  return ExitCode::done;
}

}  // namespace

void add_plan(CommandLine& line) {
  auto options = std::make_shared<PlanArguments>();
  Verb verb = line.program.add_verb("plan", "Show a training step's ops, the plugin of each, and its memory",
                                    {"gpunn plan experiments/lenet_mnist.yaml --backend cpu",
                                     "gpunn plan experiments/lenet_mnist.yaml --schedule curve.svg",
                                     "gpunn plan experiments/resnet18_cifar10.yaml --devices 8 --step-time 14",
                                     "gpunn plan --inference resnet50.onnx --rows 8"});
  add_experiment_options(verb, options->experiment);
  options->schedule =
      verb.add_option("--schedule", options->chart,
                      "Draw the learning rate over the training instead; with FILE.svg, write it there as well")
          .expected(0, 1)
          .type_name("[FILE.svg]");
  add_ranks_plan_options(verb, options->ranks);
  verb.add_flag("--inference", options->inference,
                "Show the inference program of a trained model instead: a run folder, a checkpoint or an ONNX file");
  verb.add_option("--rows", options->rows, "With --inference: the rows of a call")
      .capture_default_str()
      .range(1, 1 << 20)
      .type_name("N");
  std::vector<std::string> passes;
  for (const EnginePass& pass : engine_passes()) passes.push_back(pass.name);
  verb.add_option("--without", options->without, "With --inference: leave out these passes")
      .one_of(passes)
      .expected(1, 100);
  verb.add_flag("--why", options->why, "Say why a base runs an op, and not the plugin above it");
  add_json_flag(verb, line);
  verb.callback([&line, options] {
    line.action = [&line, options] {
      if (options->inference) return show_inference(*options, line.json);
      if (options->rows != 1 || !options->without.empty()) {
        throw Error("--rows and --without are for 'plan --inference'", ExitCode::usage);
      }
      if (options->schedule.given()) return show_schedule(*options, line.json);
      options->ranks.check();
      const PlanReport report = plan(options->experiment.load(), static_cast<int>(options->ranks.devices));
      if (!report.notice.empty()) StatusLine::of_stderr().print(printable(report.notice));
      if (line.json) {
        Json json = to_json(report);
        json["estimates"] = estimates_json(report, options->ranks);
        print_json(json);
      } else {
        print_report(report, options->ranks, options->why);
      }
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
