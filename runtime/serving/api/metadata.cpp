#include <gpunn/version.hpp>

#include <nlohmann/json.hpp>

#include "serving/api/api.hpp"
#include "serving/protocol/datatype.hpp"

namespace gpunn::serving {

namespace {

using Document = nlohmann::ordered_json;

std::string text_of(const Document& document) {
  return document.dump(-1, ' ', false, Document::error_handler_t::replace);
}

// Of a row, with -1 for the number of rows.
Document tensor_metadata(const ModelTensor& tensor) {
  return {
      {"name", tensor.name}, {"datatype", datatype_of(tensor.row.dtype)}, {"shape", batch_shape(tensor.row.shape, -1)}};
}

Document tensor_config(const ModelTensor& tensor) {
  Shape dims = tensor.row.shape;
  if (dims.empty()) dims = {1};
  return {{"name", tensor.name}, {"data_type", config_type_of(tensor.row.dtype)}, {"dims", dims}};
}

Document spent(const Spent& spent) { return {{"count", spent.count}, {"ns", spent.time.count()}}; }

Document statistics_of(const ServedModel& model) {
  const StatisticsReport report = model.statistics.report();
  const Document none = {{"count", 0}, {"ns", 0}};
  Document batches = Document::array();
  for (const auto& [rows, batch] : report.batches) {
    batches.push_back({{"batch_size", rows},
                       {"compute_input", spent(batch.input)},
                       {"compute_infer", spent(batch.infer)},
                       {"compute_output", spent(batch.output)}});
  }
  return {{"name", model.name},
          {"version", model.version},
          {"last_inference", report.last_inference.count()},
          {"inference_count", report.inferences},
          {"execution_count", report.executions},
          {"inference_stats",
           {{"success", spent(report.success)},
            {"fail", spent(report.fail)},
            {"queue", spent(report.queue)},
            {"compute_input", spent(report.input)},
            {"compute_infer", spent(report.infer)},
            {"compute_output", spent(report.output)},
            {"cache_hit", none},
            {"cache_miss", none}}},
          {"response_stats", Document::object()},
          {"batch_stats", batches},
          {"memory_usage", Document::array()}};
}

}  // namespace

std::string server_metadata() {
  return text_of({{"name", "gpunn"},
                  {"version", version()},
                  {"extensions",
                   {"classification", "model_repository", "model_repository(unload_dependents)", "model_configuration",
                    "parameters", "binary_tensor_data", "statistics"}}});
}

std::string model_metadata(const ModelRepository& repository, const ServedModel& model) {
  Document versions = Document::array(), inputs = Document::array(), outputs = Document::array();
  for (const ServedModelPtr& one : repository.all()) {
    if (one->name == model.name) versions.push_back(one->version);
  }
  for (const ModelTensor& input : model.model.inputs()) inputs.push_back(tensor_metadata(input));
  for (const ModelTensor& output : model.model.outputs()) outputs.push_back(tensor_metadata(output));
  return text_of(
      {{"name", model.name}, {"versions", versions}, {"platform", "gpunn"}, {"inputs", inputs}, {"outputs", outputs}});
}

std::string model_config(const ServedModel& model) {
  Document inputs = Document::array(), outputs = Document::array();
  for (const ModelTensor& input : model.model.inputs()) {
    Document one = tensor_config(input);
    one["format"] = "FORMAT_NONE";
    inputs.push_back(std::move(one));
  }
  for (const ModelTensor& output : model.model.outputs()) outputs.push_back(tensor_config(output));
  return text_of(
      {{"name", model.name},
       {"platform", "gpunn"},
       {"backend", "gpunn"},
       {"version_policy", {{"all", Document::object()}}},
       {"max_batch_size", model.model.max_batch()},
       {"input", inputs},
       {"output", outputs},
       {"instance_group",
        {{{"name", model.name},
          {"kind", "KIND_MODEL"},
          {"count", model.batch.instances},
          {"gpus", Document::array()}}}},
       {"dynamic_batching",
        {{"preferred_batch_size", {model.model.max_batch()}},
         {"max_queue_delay_microseconds", model.batch.delay.count()},
         {"default_queue_policy", {{"max_queue_size", model.batch.queue}}}}},
       {"parameters",
        {{"backend", {{"string_value", model.model.backend()}}}, {"device", {{"string_value", model.model.device()}}}}},
       {"model_transaction_policy", {{"decoupled", false}}}});
}

std::string model_statistics(const std::vector<ServedModelPtr>& models) {
  Document list = Document::array();
  for (const ServedModelPtr& model : models) list.push_back(statistics_of(*model));
  return text_of({{"model_stats", list}});
}

std::string repository_index(const ModelRepository& repository, bool ready_alone) {
  Document list = Document::array();
  for (const ModelState& state : repository.index()) {
    if (ready_alone && state.state != "READY") continue;
    list.push_back(
        {{"name", state.name}, {"version", state.version}, {"state", state.state}, {"reason", state.reason}});
  }
  return text_of(list);
}

}  // namespace gpunn::serving
