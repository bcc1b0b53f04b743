#include <gpunn/engine.hpp>
#include <gpunn/error.hpp>

#include <utility>

#include "inference/engine/engine.hpp"
#include "inference/engine_file/saved_engine.hpp"
#include "inference/open_model.hpp"
#include "plan/program_report.hpp"
#include "plugins/plugin.hpp"

namespace gpunn {

PlanReport plan_inference(const std::filesystem::path& model, int64_t rows, const ModelOptions& options) {
  if (rows < 1) throw Error("a call brings at least one row, found " + std::to_string(rows), ExitCode::usage);
  ModelOptions for_rows = options;
  for_rows.max_batch = rows;
  const inference::OpenedModel opened = inference::open_model(model, for_rows);
  inference::require_planned(opened.model, rows);
  const inference::EngineProgram engine = inference::build_engine(opened.model, rows, *opened.backend);
  PlanReport report;
  report.backend = opened.backend->name();
  report.chain = opened.backend->chain();
  const std::vector<EnginePass>& names = engine_passes();
  for (const inference::PassResult& pass : engine.passes) {
    report.passes.push_back({.name = names[static_cast<std::size_t>(pass.pass)].name,
                             .on = pass.on,
                             .changes = pass.changes,
                             .details = pass.details});
  }
  training::describe_program(engine.program, *opened.backend, report);
  for (const PlannedTensor& tensor : report.tensors) {
    if (tensor.storage == name_of(graph::Storage::data)) {
      report.data_bytes += tensor.bytes;
    } else if (tensor.storage != name_of(graph::Storage::arena)) {
      report.persistent_bytes += tensor.bytes;
    }
  }
  report.parameters = opened.model.layout.count();
  report.arena_bytes = engine.program.plan.arena_bytes;
  report.kept_arena_bytes = report.arena_bytes;
  report.residency = "device";
  report.peak_bytes = report.arena_bytes + report.persistent_bytes;
  return report;
}

}  // namespace gpunn
