#include <gpunn/model.hpp>

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "inference/samples/image_sample.hpp"
#include "serving/api/image_body.hpp"
#include "serving/api/pending.hpp"

namespace gpunn::serving {

namespace {

using OrderedJson = nlohmann::ordered_json;

struct DetectionCall : ImageCall {
  double least_score = 0;
};

Response detected(const DetectionCall& work) {
  const ModelInfo& info = work.model->model.info();
  Decoded decoded = decoded_answer(work, {.top = std::numeric_limits<int64_t>::max()});
  const std::vector<DetectedBox> found =
      inference::boxes_on_image(std::move(decoded.boxes), work.image.height, work.image.width, info.fields.input());
  // Under the keys of `gpunn predict --json`.
  OrderedJson boxes = OrderedJson::array();
  for (const DetectedBox& one : found) {
    if (one.score < work.least_score) continue;
    boxes.push_back({{"class", one.index},
                     {"name", one.name},
                     {"score", one.score},
                     {"box", {one.left, one.top, one.right, one.bottom}}});
  }
  const OrderedJson document = {{"model", work.model->name},
                                {"version", work.model->version},
                                {"width", work.image.width},
                                {"height", work.image.height},
                                {"boxes", std::move(boxes)}};
  Response response;
  response.body = document.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  return response;
}

}  // namespace

void detect(const ExchangePtr& exchange, const ServedModelPtr& model, double least_score, const ServingOptions& options,
            WorkerPool& pool) {
  require_address(*model, "detect");
  auto work = std::make_shared<DetectionCall>();
  work->exchange = exchange;
  work->model = model;
  work->least_score = least_score;
  submit_image(work, detected, options, pool);
}

}  // namespace gpunn::serving
