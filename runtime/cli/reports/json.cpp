#include "cli/reports/json.hpp"

#include <gpunn/segmentation.hpp>

#include <fmt/format.h>

#include "cli/terminal/output.hpp"
#include "common/metric_json.hpp"

namespace gpunn::cli {

namespace {

void print(const Json& document, int indent) {
  put("{}\n", document.dump(indent, ' ', false, Json::error_handler_t::replace));
  flush_stdout();
}

template <typename T>
Json array_of(const std::vector<T>& values) {
  Json result = Json::array();
  for (const T& value : values) result.push_back(to_json(value));
  return result;
}

Json number_of(double metric) { return metric_json<Json>(metric); }

// A member for each metric.
void add_scores(Json& json, const Scores& scores, const std::string& before = "") {
  for (const Score& score : scores) json[before + score.metric.name] = number_of(score.value);
}

}  // namespace

Json to_json(const PlannedTensor& tensor) {
  return {{"name", tensor.name},      {"type", to_string(tensor.type)}, {"storage", tensor.storage},
          {"offset", tensor.offset},  {"bytes", tensor.bytes},          {"first_op", tensor.first_op},
          {"last_op", tensor.last_op}};
}

Json to_json(const PlannedOp& op) {
  return {{"op", op.op},
          {"name", op.name},
          {"backend", op.backend},
          {"kernel", op.kernel},
          {"refusal", op.refusal},
          {"attributes", op.attributes},
          {"inputs", op.inputs},
          {"outputs", op.outputs},
          {"layout", op.layout},
          {"workspace_bytes", op.workspace_bytes},
          {"arena_bytes", op.arena_bytes},
          {"flops", op.flops},
          {"subgraph", op.subgraph < 0 ? Json() : Json(op.subgraph)}};
}

Json to_json(const PlannedSubgraph& subgraph) {
  return {{"name", subgraph.name},
          {"backend", subgraph.backend},
          {"first_op", subgraph.first_op},
          {"last_op", subgraph.last_op},
          {"workspace_bytes", subgraph.workspace_bytes}};
}

Json to_json(const PlannedRecomputation& stage) { return {{"name", stage.name}, {"ops", stage.ops}}; }

Json to_json(const QuantizedLayer& layer) {
  return {{"name", layer.name}, {"scale", layer.scale}, {"zero_point", layer.zero_point}, {"decibels", layer.decibels}};
}

Json to_json(const QuantizeReport& report) {
  const auto share = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  return {{"file", report.file.string()},
          {"images", report.images},
          {"from_cache", report.from_cache},
          {"layers", array_of(report.layers)},
          {"convolutions", report.convolutions},
          {"dense", report.dense},
          {"rows", report.rows},
          {"metric", report.metric ? Json(report.metric->name) : Json()},
          {"before", share(report.before)},
          {"after", share(report.after)},
          {"lost", share(report.lost)},
          {"not_measured", report.not_measured},
          {"accuracy_before", share(report.accuracy_before)},
          {"accuracy_after", share(report.accuracy_after)}};
}

Json to_json(const InferenceBenchRow& row) {
  Json json = {{"rows", row.rows},
               {"calls", row.calls},
               {"least_seconds", row.least_seconds},
               {"p50_seconds", row.p50_seconds},
               {"p99_seconds", row.p99_seconds},
               {"device_seconds", row.device_seconds},
               {"rows_per_second", row.rows_per_second},
               {"memory_bytes", row.memory_bytes}};
  if (row.profile) json["profile"] = to_json(*row.profile);
  return json;
}

Json to_json(const InferenceBenchReport& report) {
  return {{"model", report.model},
          {"backend", report.backend},
          {"device", report.device},
          {"load_seconds", report.load_seconds},
          {"rows", array_of(report.rows)}};
}

Json to_json(const PlannedPass& pass) {
  return {{"name", pass.name}, {"on", pass.on}, {"changes", pass.changes}, {"details", pass.details}};
}

Json to_json(const PluginReport& report) {
  return {{"path", report.path.string()}, {"status", name_of(report.status)},
          {"detail", report.detail},      {"name", report.name},
          {"version", report.version},    {"build", report.build},
          {"base", report.base},          {"abi", fmt::format("{}.{}", report.abi_major, report.abi_minor)},
          {"priority", report.priority},  {"devices", report.devices}};
}

Json to_json(const PlannedCollective& one) {
  return {{"op", one.op},
          {"name", one.name},
          {"index", one.index},
          {"starts_after", one.starts_after},
          {"bytes", one.bytes},
          {"sent_bytes", one.sent_bytes},
          {"fused", one.fused},
          {"begins_at", one.begins_at},
          {"needed_at", one.needed_at}};
}

Json to_json(const PlannedRanks& ranks) {
  return {{"devices", ranks.devices},
          {"rows", ranks.rows},
          {"sent_bytes", ranks.sent_bytes},
          {"collectives", array_of(ranks.collectives)}};
}

Json to_json(const PlanReport& report) {
  return {{"notice", report.notice},
          {"data", report.data},
          {"start", report.start},
          {"backend", report.backend},
          {"chain", report.chain},
          {"parameters", report.parameters},
          {"trainable", report.trainable},
          {"arena_bytes", report.arena_bytes},
          {"kept_arena_bytes", report.kept_arena_bytes},
          {"persistent_bytes", report.persistent_bytes},
          {"data_bytes", report.data_bytes},
          {"residency", report.residency},
          {"peak_bytes", report.peak_bytes},
          {"passes", array_of(report.passes)},
          {"ops", array_of(report.ops)},
          {"subgraphs", array_of(report.subgraphs)},
          {"not_fused", report.not_fused},
          {"recomputed", array_of(report.recomputed)},
          {"tensors", array_of(report.tensors)},
          {"ranks", to_json(report.ranks)}};
}

Json to_json(const SummaryLayer& layer) {
  return {{"name", layer.name},
          {"type", layer.type},
          {"output", layer.output},
          {"parameters", layer.parameters},
          {"trainable", layer.trainable},
          {"buffers", layer.buffers},
          {"forward_flops", layer.forward_flops},
          {"step_flops", layer.step_flops}};
}

Json to_json(const SummaryReport& report) {
  return {{"model", report.model},
          {"data", report.data},
          {"start", report.start},
          {"notice", report.notice},
          {"sample", report.sample},
          {"batch_size", report.batch_size},
          {"samples_per_step", report.samples_per_step},
          {"layers", array_of(report.layers)},
          {"parameters", report.parameters},
          {"trainable", report.trainable},
          {"buffers", report.buffers},
          {"forward_flops", report.forward_flops},
          {"step_flops", report.step_flops},
          {"parameter_bytes", report.parameter_bytes},
          {"gradient_bytes", report.gradient_bytes},
          {"optimizer_bytes", report.optimizer_bytes},
          {"activation_bytes", report.activation_bytes},
          {"total_bytes", report.total_bytes}};
}

Json to_json(const SchedulePoint& point) {
  return {{"step", point.step}, {"epoch", point.epoch}, {"learning_rate", point.learning_rate}, {"what", point.what}};
}

Json to_json(const ScheduleReport& report) {
  return {{"notice", report.notice},
          {"experiment", report.experiment},
          {"type", report.type},
          {"steps_per_epoch", report.steps_per_epoch},
          {"steps", report.steps},
          {"reacts", report.reacts},
          {"logarithmic", report.logarithmic},
          {"points", array_of(report.points)},
          {"learning_rates", report.learning_rates}};
}

Json to_json(const CheckCase& result) {
  return {{"backend", result.backend},   {"suite", result.suite},   {"op", result.op},
          {"name", result.name},         {"kernel", result.kernel}, {"plugin", result.plugin},
          {"refusal", result.refusal},   {"dtype", result.dtype},   {"verdict", name_of(result.verdict)},
          {"optional", result.optional}, {"error", result.error},   {"detail", result.detail},
          {"seconds", result.seconds},   {"gflops", result.gflops}, {"gigabytes", result.gigabytes}};
}

Json to_json(const CheckReport& report) {
  return {{"backend", report.backend},      {"device", report.device}, {"ok", report.ok()},
          {"passed", report.passed},        {"failed", report.failed}, {"skipped", report.skipped},
          {"cases", array_of(report.cases)}};
}

Json to_json(const BenchReport& report) {
  return {{"what", report.what},
          {"backend", report.backend},
          {"notice", report.notice},
          {"repeats", report.repeats},
          {"median_seconds", report.median_seconds},
          {"min_seconds", report.min_seconds},
          {"max_seconds", report.max_seconds},
          {"gflops", report.gflops},
          {"samples_per_second", report.samples_per_second},
          {"peak_bytes", report.peak_bytes},
          {"arena_bytes", report.arena_bytes},
          {"persistent_bytes", report.persistent_bytes},
          {"data_bytes", report.data_bytes},
          {"allocations", report.allocations},
          {"synchronizations", report.synchronizations},
          {"captured", report.captured},
          {"eager_reason", report.eager_reason},
          {"pool_requests", report.pool_requests},
          {"pool_hits", report.pool_hits},
          {"pool_hit_rate", report.pool_hit_rate},
          {"pool_peak_bytes", report.pool_peak_bytes}};
}

Json to_json(const OpBenchRow& row) {
  const auto known = [](double value) { return value < 0 ? Json(nullptr) : Json(value); };
  return {{"op", row.op},
          {"shape", row.shape},
          {"precision", name_of(row.precision)},
          {"backend", row.backend},
          {"served_by", row.served_by},
          {"kernel", row.kernel},
          {"failure", row.failure},
          {"repeats", row.repeats},
          {"runs", row.runs},
          {"captured", row.captured},
          {"buffer_sets", row.buffer_sets},
          {"median_seconds", row.median_seconds},
          {"min_seconds", row.min_seconds},
          {"max_seconds", row.max_seconds},
          {"flops", row.flops},
          {"bytes", row.bytes},
          {"teraflops", row.teraflops},
          {"gigabytes", row.gigabytes},
          {"speed_up", row.speed_up},
          {"ceiling_share", row.ceiling_share},
          {"workspace_bytes", row.workspace_bytes},
          {"error", known(row.error)},
          {"error_allowed", known(row.error_allowed)},
          {"checked", row.checked},
          {"wrong", row.wrong}};
}

Json to_json(const OpBenchReport& report) {
  Json rows = Json::array(), ceilings = Json::array();
  for (const OpBenchRow& row : report.rows) rows.push_back(to_json(row));
  for (const OpCeiling& ceiling : report.ceilings) {
    ceilings.push_back({{"memory_domain", ceiling.memory_domain},
                        {"precision", name_of(ceiling.precision)},
                        {"bytes_per_second", ceiling.bytes_per_second},
                        {"flops_per_second", ceiling.flops_per_second},
                        {"copy_by", ceiling.copy_by},
                        {"matmul_by", ceiling.matmul_by}});
  }
  return {{"ok", report.ok()}, {"ceilings", ceilings}, {"rows", rows}};
}

Json to_json(const ProfiledOp& op) {
  return {{"op", op.op},
          {"name", op.name},
          {"backend", op.backend},
          {"count", op.count},
          {"seconds", op.seconds},
          {"share", op.share},
          {"flops", op.flops},
          {"bytes", op.bytes},
          {"gflops", op.gflops},
          {"gigabytes", op.gigabytes},
          {"ceiling_share", op.ceiling_share}};
}

Json to_json(const ProfileReport& report) {
  return {{"file", report.file.string()},
          {"backend", report.backend},
          {"device", report.device},
          {"steps", report.steps},
          {"step_seconds", report.step_seconds},
          {"whole_step_seconds", report.whole_step_seconds},
          {"captured", report.captured},
          {"subgraphs", report.subgraphs},
          {"ceiling_gflops", report.ceiling_gflops},
          {"ceiling_gigabytes", report.ceiling_gigabytes},
          {"ops", array_of(report.ops)}};
}

Json to_json(const StepReport& report) {
  Json json = {{"epoch", report.epoch},
               {"epochs", report.epochs},
               {"step", report.step},
               {"steps", report.steps},
               {"global_step", report.global_step},
               {"loss", report.loss},
               {"learning_rate", report.learning_rate},
               {"samples_per_second", report.samples_per_second},
               {"seconds_left", report.seconds_left}};
  add_scores(json, report.scores);
  return json;
}

Json to_json(const EvalReport& report) {
  Json json = {
      {"part", name_of(report.part)}, {"loss", report.loss}, {"rows", report.rows}, {"seconds", report.seconds}};
  if (report.non_finite) {
    const NonFiniteRows& found = *report.non_finite;
    json["non_finite"] = {{"rows", found.rows}, {"first", found.first}, {"cause", found.cause}};
  }
  add_scores(json, report.scores);
  return json;
}

Json to_json(const ClassReport& report) {
  return {{"index", report.index},
          {"name", report.name},
          {"rows", report.rows},
          {"predicted", report.predicted},
          {"correct", report.correct},
          {"precision", number_of(report.precision)},
          {"recall", number_of(report.recall)},
          {"f1", number_of(report.f1)}};
}

Json outputs_of(const ClassEvalReport& report) {
  Json outputs = Json::array();
  for (const OutputReport& one : report.outputs) {
    Json json = {{"index", one.index}, {"name", one.name}};
    if (one.rows) json[report.counted] = *one.rows;
    add_scores(json, one.scores);
    outputs.push_back(std::move(json));
  }
  return outputs;
}

Json to_json(const ConfusionMatrix& matrix) {
  if (matrix.counts.empty()) return nullptr;
  Json rows = Json::array();
  for (std::size_t truth = 0; truth < matrix.side(); ++truth) {
    Json row = Json::array();
    for (std::size_t predicted = 0; predicted < matrix.side(); ++predicted) row.push_back(matrix.at(truth, predicted));
    rows.push_back(std::move(row));
  }
  return rows;
}

// The totals are members of the document itself. Data without classes has `outputs` instead of classes.
Json to_json(const ClassEvalReport& report, bool with_confusion) {
  Json json = to_json(report.total);
  if (with_confusion && !report.confusion.names.empty()) json["confusion"] = to_json(report.confusion);
  if (report.detection) {
    json["figures"] = Json::object();
    for (const auto& [name, value] : report.detection->figures) json["figures"][name] = number_of(value);
    json["classes"] = Json::array();
    for (const DetectedClass& one : report.detection->classes) {
      json["classes"].push_back({{"name", one.name},
                                 {"objects", one.objects},
                                 {"detections", one.detections},
                                 {"ap", number_of(one.ap)},
                                 {"coco_ap", number_of(one.coco_ap)}});
    }
    return json;
  }
  if (report.classes.empty()) {
    json["outputs"] = outputs_of(report);
    return json;
  }
  json["macro_precision"] = number_of(report.macro_precision);
  json["macro_recall"] = number_of(report.macro_recall);
  json["macro_f1"] = number_of(report.macro_f1);
  json["classes"] = array_of(report.classes);
  return json;
}

Json to_json(const EpochReport& report) {
  Json json = {{"epoch", report.epoch},
               {"global_step", report.global_step},
               {"train_loss", report.train_loss},
               {name_of(report.evaluation.part), to_json(report.evaluation)},
               {"learning_rate", report.learning_rate},
               {"train_seconds", report.train_seconds},
               {"samples_per_second", report.samples_per_second},
               {"best", report.best}};
  add_scores(json, report.train_scores, "train_");
  return json;
}

Json to_json(const BackendComparison& comparison) {
  return {{"trained", comparison.trained},
          {"checked", comparison.checked},
          {"steps", comparison.steps},
          {"op_error", comparison.op_error},
          {"op", comparison.op},
          {"parameter_difference", comparison.parameter_difference},
          {"parameter", comparison.parameter}};
}

Json to_json(const RunResult& result) {
  Json json = {{"run", result.run.string()},
               {"backend", result.backend},
               {"epochs", result.epochs.size()},
               {std::string("final_") + name_of(result.final_evaluation.part), to_json(result.final_evaluation)},
               {"monitor", result.monitor.name},
               {"best_metric", number_of(result.best_metric)},
               {"best_epoch", result.best_epoch},
               {"stopped_early", result.stopped_early},
               {"interrupted", result.interrupted},
               {"train_seconds", result.train_seconds},
               {"total_seconds", result.total_seconds},
               {"arena_bytes", result.arena_bytes},
               {"persistent_bytes", result.persistent_bytes},
               {"data_bytes", result.data_bytes}};
  if (result.profile) json["profile"] = to_json(*result.profile);
  if (result.comparison) json["comparison"] = to_json(*result.comparison);
  return json;
}

Json to_json(const FaultReport& report) {
  return {{"first_step", report.first_step},
          {"last_step", report.last_step},
          {"found", report.found},
          {"step", report.step},
          {"op", report.op},
          {"plugin", report.plugin},
          {"error", report.error},
          {"text", report.text()}};
}

Json to_json(const RaceEntry& entry) {
  return {{"backend", entry.backend},
          {"failure", entry.failure},
          {"finished", entry.finished()},
          {"steps", entry.steps},
          {"step_seconds", entry.step_seconds},
          {"samples_per_second", entry.samples_per_second},
          {"speed_up", entry.speed_up},
          {"peak_bytes", entry.peak_bytes()},
          {"epochs", array_of(entry.result.epochs)},
          {"losses", entry.losses},
          {"result", to_json(entry.result)}};
}

Json to_json(const RaceReport& report) {
  return {{"experiment", report.experiment},      {"ok", report.ok()},
          {"interrupted", report.interrupted},    {"folder", report.folder.string()},
          {"chart", report.chart.string()},       {"entries", array_of(report.entries)},
          {"left_out", array_of(report.left_out)}};
}

Json to_json(const Prediction& prediction) {
  Json top = Json::array();
  for (const ClassProbability& one : prediction.top) {
    top.push_back({{"class", one.index}, {"name", one.name}, {"probability", one.probability}});
  }
  Json result = {{"source", prediction.source}, {"top", top}, {"label", nullptr}};
  if (prediction.label) result["label"] = *prediction.label;
  if (!prediction.boxes.empty()) {
    result["boxes"] = Json::array();
    for (const DetectedBox& one : prediction.boxes) {
      result["boxes"].push_back({{"class", one.index},
                                 {"name", one.name},
                                 {"score", one.score},
                                 {"box", {one.left, one.top, one.right, one.bottom}}});
    }
  }
  if (prediction.map) {
    Json masks = Json::array();
    for (const ClassProbability& one : prediction.top) {
      masks.push_back({{"class", one.index},
                       {"name", one.name},
                       {"counts", run_lengths_of(*prediction.map, static_cast<uint8_t>(one.index))}});
    }
    result["map"] = {{"size", {prediction.map->height, prediction.map->width}}, {"masks", std::move(masks)}};
  }
  if (!prediction.values.empty()) {
    result["values"] = Json::object();
    for (const NamedValue& one : prediction.values) result["values"][one.name] = one.value;
  }
  return result;
}

Json to_json(const DatasetInfo& info) {
  Json searched = Json::array();
  for (const auto& path : info.searched) searched.push_back(path.string());
  return {{"name", info.name},           {"description", info.description}, {"synthetic", info.synthetic},
          {"users_own", info.users_own}, {"found", info.found.string()},    {"searched", searched}};
}

void print_json(const Json& document) { print(document, 2); }
void print_json_line(const Json& document) { print(document, -1); }

}  // namespace gpunn::cli
