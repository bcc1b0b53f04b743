#include <gpunn/model.hpp>

#include <utility>

#include <nlohmann/json.hpp>

#include "serving/api/image_body.hpp"
#include "serving/api/pending.hpp"

namespace gpunn::serving {

namespace {

using OrderedJson = nlohmann::ordered_json;

struct Classification : ImageCall {
  int64_t top = 5;
};

Response classified(const Classification& work) {
  const Decoded decoded = decoded_answer(work, {.top = work.top});
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
  require_address(*model, "classify");
  auto work = std::make_shared<Classification>();
  work->exchange = exchange;
  work->model = model;
  work->top = top;
  submit_image(work, classified, options, pool);
}

}  // namespace gpunn::serving
