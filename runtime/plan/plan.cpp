#include <gpunn/plan.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "compiler/recompute.hpp"
#include "config/checked_backends.hpp"
#include "config/layer_names.hpp"
#include "feed/evaluation_part.hpp"
#include "feed/model_samples.hpp"
#include "feed/residency.hpp"
#include "plan/program_report.hpp"
#include "plan/ranks_report.hpp"
#include "runs/transfer.hpp"
#include "session/notices.hpp"
#include "session/session.hpp"

namespace gpunn {

namespace {

using graph::Node;

// Of each block or layer, in the order of the step, the ops that compute its activations again.
std::vector<PlannedRecomputation> recomputations(const execution::CompiledProgram& program,
                                                 const std::vector<std::string>& patterns) {
  std::vector<PlannedRecomputation> result;
  for (const Node& node : program.graph.nodes()) {
    if (!node.name.ends_with(compiler::kRecomputedSuffix)) continue;
    const std::string layer = node.name.substr(0, node.name.size() - compiler::kRecomputedSuffix.size());
    const std::string_view name = config::outermost_match(patterns, layer);
    if (name.empty()) continue;
    const auto found = std::ranges::find(result, name, &PlannedRecomputation::name);
    if (found == result.end()) {
      result.push_back({.name = std::string(name), .ops = 1});
    } else {
      ++found->ops;
    }
  }
  return result;
}

}  // namespace

PlanReport plan(const Experiment& experiment, int devices) {
  config::require_one_backend(experiment.backend, "a plan");
  Dataset dataset = training::sizes_for_training(experiment.data);
  const std::string data = training::data_text(dataset);
  const std::optional<training::Start> start = training::find_start(experiment, training::model_samples(dataset));
  training::Session session = devices > 1 ? training::Session::open_planned(experiment, std::move(dataset), devices)
                                          : training::Session::open(experiment, std::move(dataset));
  const execution::CompiledProgram& program = session.training();
  PlanReport report;
  report.data = data;
  if (start) report.start = start->report.text();
  for (const std::string& notice :
       {session.notice(), training::schedule_notice(session.schedule()),
        training::moving_statistics_notice(experiment, session.layout(), session.buffers())}) {
    report.notice = training::joined(report.notice, notice);
  }
  report.backend = session.backend().name();
  report.chain = session.backend().chain();
  training::describe_program(program, session.backend(), report);
  report.parameters = session.layout().count();
  report.trainable = session.layout().trained_count();
  report.arena_bytes = session.arena_bytes();
  report.recomputed = recomputations(program, experiment.recompute);
  report.kept_arena_bytes = report.arena_bytes;
  if (!report.recomputed.empty()) {
    Experiment keeping = experiment;
    keeping.recompute.clear();
    report.kept_arena_bytes = session.arena_bytes_of(keeping);
  }
  report.persistent_bytes = session.persistent_bytes();
  report.data_bytes = session.data_bytes();
  report.residency = training::name_of(session.data().residency());
  report.peak_bytes = report.arena_bytes + report.persistent_bytes;
  report.ranks = training::describe_ranks(program, session.data().division());
  return report;
}

}  // namespace gpunn
