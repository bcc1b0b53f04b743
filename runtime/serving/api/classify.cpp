#include <gpunn/error.hpp>
#include <gpunn/model.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "serving/api/image_body.hpp"
#include "serving/api/pending.hpp"
#include "serving/protocol/service_error.hpp"
#include "tasks/task.hpp"

namespace gpunn::serving {

namespace {

using OrderedJson = nlohmann::ordered_json;

struct Classification : Pending {
  int64_t top = 5;
  std::vector<uint8_t> sample;
};

Response classified(const Classification& work) {
  const ModelInfo& info = work.model->model.info();
  const std::string& bytes = work.result.outputs.front();
  std::vector<float> predictions(bytes.size() / sizeof(float));
  std::memcpy(predictions.data(), bytes.data(), predictions.size() * sizeof(float));
  const Decoded decoded = tasks::find(info.task).decode(predictions, info.outputs, work.top);
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

void read_and_submit(const std::shared_ptr<Classification>& work, const ServingOptions& options) {
  ServedModel& model = *work->model;
  if (work->exchange->abandoned()) return;
  work->sample = sample_of_body(*work, options);
  Job job = job_of(work, classified);
  job.rows = 1;
  job.input = work->sample.data();
  job.outputs = {1};
  model.batcher.submit(std::move(job));
}

}  // namespace

void classify(const ExchangePtr& exchange, const ServedModelPtr& model, int64_t top, const ServingOptions& options,
              WorkerPool& pool) {
  if (model->model.outputs().size() < 2) {
    throw ServiceError(400, "model '" + model->name +
                                "' has no task that says what its outputs mean; call /v2/models/" + model->name +
                                "/infer");
  }
  if (tasks::find(model->model.info().task).target_kind() == TargetKind::boxes) {
    throw ServiceError(400, "model '" + model->name + "' finds boxes in images; call /v1/detect");
  }
  auto work = std::make_shared<Classification>();
  work->exchange = exchange;
  work->model = model;
  work->top = top;
  pool.run([work, &options] {
    try {
      read_and_submit(work, options);
    } catch (const std::exception& failure) {
      fail(*work, failure);
    }
  });
}

}  // namespace gpunn::serving
