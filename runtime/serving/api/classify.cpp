#include <gpunn/error.hpp>
#include <gpunn/model.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "inference/number_outputs.hpp"
#include "serving/api/image_body.hpp"
#include "serving/api/pending.hpp"
#include "serving/protocol/service_error.hpp"
#include "tasks/task.hpp"

namespace gpunn::serving {

namespace {

using OrderedJson = nlohmann::ordered_json;

struct Classification : ImageCall {
  int64_t top = 5;
};

Decoded decoded_output(const Classification& work, const ModelInfo& info) {
  const SharedBytes& output = work.result.outputs.front();
  if (work.model->model.outputs().back().row.dtype != DType::f64) {
    return tasks::find(info.task).decode(floats_of(output), info.fields.target().names, work.top);
  }
  std::vector<double> values(output.bytes.size() / sizeof(double));
  std::memcpy(values.data(), output.bytes.data(), values.size() * sizeof(double));
  return inference::named_values(info, values).front();
}

Response classified(const Classification& work) {
  const ModelInfo& info = work.model->model.info();
  const Decoded decoded = decoded_output(work, info);
  // Under the keys of `gpunn predict --json`.
  OrderedJson document = {{"model", work.model->name}, {"version", work.model->version}};
  if (!decoded.classes.empty() || decoded.values.empty()) {
    OrderedJson classes = OrderedJson::array();
    for (const ClassProbability& one : decoded.classes) {
      classes.push_back({{"class", one.index}, {"name", one.name}, {"probability", one.probability}});
    }
    document["classes"] = std::move(classes);
  }
  if (!decoded.values.empty()) {
    OrderedJson values = OrderedJson::object();
    for (const NamedValue& one : decoded.values) values[one.name] = one.value;
    document["values"] = std::move(values);
  }
  Response response;
  response.body = document.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  return response;
}

}  // namespace

void classify(const ExchangePtr& exchange, const ServedModelPtr& model, int64_t top, const ServingOptions& options,
              WorkerPool& pool) {
  if (model->model.info().fields.target().names.empty()) {
    throw ServiceError(400, "model '" + model->name +
                                "' has no task that says what its outputs mean; call /v2/models/" + model->name +
                                "/infer");
  }
  if (tasks::find(model->model.info().task).target_kind() == "boxes") {
    throw ServiceError(400, "model '" + model->name + "' finds boxes in images; call /v1/detect");
  }
  auto work = std::make_shared<Classification>();
  work->exchange = exchange;
  work->model = model;
  work->top = top;
  submit_image(work, classified, options, pool);
}

}  // namespace gpunn::serving
