#include <gpunn/model.hpp>
#include <gpunn/segmentation.hpp>

#include <limits>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "data/segmentation/draw_map.hpp"
#include "inference/samples/image_sample.hpp"
#include "serving/api/image_body.hpp"
#include "serving/api/pending.hpp"

namespace gpunn::serving {

namespace {

using OrderedJson = nlohmann::ordered_json;

Response segmented(const ImageCall& work) {
  Decoded decoded = decoded_answer(work, {.top = std::numeric_limits<int64_t>::max()});
  const int64_t height = work.image.height, width = work.image.width;
  LabelMap map =
      inference::map_on_image(*std::move(decoded.map), height, width, work.model->model.info().fields.input());
  if (wants_png(*work.exchange)) return png_response(data::encode_label_map({height, width, std::move(map.classes)}));
  OrderedJson classes = OrderedJson::array();
  for (const ClassProbability& one : decoded.classes) {
    classes.push_back(
        {{"class", one.index},
         {"name", one.name},
         {"share", one.probability},
         {"rle", {{"size", {height, width}}, {"counts", run_lengths_of(map, static_cast<uint8_t>(one.index))}}}});
  }
  const OrderedJson document = {{"model", work.model->name},
                                {"version", work.model->version},
                                {"width", width},
                                {"height", height},
                                {"classes", std::move(classes)}};
  Response response;
  response.body = document.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  return response;
}

}  // namespace

void segment(const ExchangePtr& exchange, const ServedModelPtr& model, const ServingOptions& options,
             WorkerPool& pool) {
  require_address(*model, "segment");
  auto work = std::make_shared<ImageCall>();
  work->exchange = exchange;
  work->model = model;
  submit_image(work, segmented, options, pool, &pool);
}

}  // namespace gpunn::serving
