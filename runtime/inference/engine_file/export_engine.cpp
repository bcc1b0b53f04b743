#include <gpunn/engine.hpp>
#include <gpunn/error.hpp>

#include <algorithm>
#include <set>
#include <utility>

#include "common/files.hpp"
#include "inference/context.hpp"
#include "inference/engine_file/saved_engine.hpp"
#include "inference/open_model.hpp"
#include "runs/own_files.hpp"
#include "runs/trained_model.hpp"

namespace gpunn {

namespace {

using inference::EngineProgram;

// The results of the ops on weights, which the context has made.
void add_constants(const EngineProgram& engine, const execution::Variables& variables, std::set<std::string>& names,
                   std::vector<storage::StoredTensor>& constants) {
  for (const graph::Node& node : engine.constants.graph.nodes()) {
    for (const graph::ValueId id : node.outputs) {
      const graph::Value& value = engine.program.graph.value(id);
      if (value.storage == graph::Storage::arena || !names.insert(value.name).second) continue;
      constants.push_back({value.name, value.type, variables.read(value.name)});
    }
  }
}

}  // namespace

EngineExportReport export_engine(const std::filesystem::path& model, const std::filesystem::path& file,
                                 std::vector<int64_t> batches, const ModelOptions& options) {
  if (!inference::is_engine(file)) {
    throw Error(file.string() + ": an engine is written to NAME.engine", ExitCode::usage);
  }
  if (inference::is_engine(model)) {
    throw Error(model.string() + ": an engine is made of a model, not of another engine", ExitCode::usage);
  }
  std::ranges::sort(batches);
  if (batches.empty() || batches.front() < 1 || std::ranges::adjacent_find(batches) != batches.end()) {
    throw Error("an engine is for numbers of rows above 0, each once", ExitCode::usage);
  }
  training::require_output(file);
  require_writable(file, {model});

  ModelOptions for_batches = options;
  for_batches.max_batch = batches.back();
  inference::check_options(for_batches);
  training::TrainedFile trained = training::read_trained(model, options.overrides);
  inference::OpenedModel opened =
      inference::open_model(trained.checkpoint, trained.file,
                            inference::with_options(std::move(trained.experiment), for_batches), for_batches);
  inference::SavedEngine saved;
  saved.weights = inference::forward_weights(opened.model, inference::forward_program(opened.model, 1),
                                             trained.checkpoint, trained.file);
  saved.target = inference::target_of(*opened.backend);
  saved.info = opened.model.info;
  Experiment experiment = opened.model.experiment;
  experiment.backend = opened.backend->name();
  saved.experiment = resolved_yaml(experiment);

  inference::Context context(opened.model, std::move(opened.backend), saved.weights, nullptr);
  EngineExportReport report;
  report.file = file;
  report.backend = experiment.backend;
  report.device = context.backend().info().name;
  report.batches = batches;
  std::set<std::string> names;
  for (const int64_t rows : batches) {
    // Kernels that are tuned are tuned here, so that their plugin knows the fastest when the engine is opened.
    context.prepare(rows);
    EngineProgram engine = inference::build_engine(opened.model, rows, context.backend());
    add_constants(engine, context.variables(), names, saved.weights.constants);
    report.ops = std::ssize(engine.program.graph.nodes());
    saved.programs.emplace(rows, std::move(engine.program));
  }
  report.constants = std::ssize(saved.weights.constants);
  inference::save_engine(file, saved);
  report.file_bytes = std::filesystem::file_size(file);
  return report;
}

}  // namespace gpunn
