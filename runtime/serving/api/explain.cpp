#include <gpunn/error.hpp>
#include <gpunn/explain.hpp>
#include <gpunn/model.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "chart/raster.hpp"
#include "serving/api/image_body.hpp"
#include "serving/api/pending.hpp"

namespace gpunn::serving {

namespace {

using OrderedJson = nlohmann::ordered_json;

Response explained(Pending& work, const ExplainQuery& query, const ServingOptions& options) {
  const Model& model = work.model->model;
  const std::vector<uint8_t> sample = image_of_body(work, options).values;
  const Field& input = model.info().fields.input();
  ExplainOptions how{.layer = query.layer};
  if (!query.method.empty()) how.method = explain_method_named(query.method);
  if (!query.class_text.empty()) how.class_index = find_class(model.info(), query.class_text);
  const Shape shape = batch_shape(input.type.shape, 1);
  const Explanation one =
      model.explain({.name = input.name, .dtype = DType::u8, .shape = shape, .data = sample.data()}, how).front();
  const std::string overlay = overlay_png(one, sample);
  if (wants_png(*work.exchange)) return png_response(overlay);
  // Under the keys of `gpunn explain --json`.
  const OrderedJson document = {{"model", work.model->name},
                                {"version", work.model->version},
                                {"class", one.class_index},
                                {"name", one.class_name},
                                {"score", one.score},
                                {"layer", one.layer},
                                {"overlay", chart::base64(overlay)}};
  Response response;
  response.body = document.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  return response;
}

}  // namespace

void explain_image(const ExchangePtr& exchange, const ServedModelPtr& model, const ExplainQuery& query,
                   const ServingOptions& options, WorkerPool& pool) {
  auto work = std::make_shared<Pending>();
  work->exchange = exchange;
  work->model = model;
  const std::function<void()> answer =
      answer_task(exchange, [work, query, &options] { return explained(*work, query, options); });
  pool.run([exchange, answer] {
    if (!exchange->abandoned()) answer();
  });
}

}  // namespace gpunn::serving
