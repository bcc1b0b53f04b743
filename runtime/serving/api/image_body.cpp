#include "serving/api/image_body.hpp"

#include <gpunn/error.hpp>
#include <gpunn/model.hpp>

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "serving/protocol/multipart.hpp"
#include "serving/protocol/service_error.hpp"
#include "tasks/task.hpp"

namespace gpunn::serving {

namespace {

struct ImageBytes {
  std::string name;  // for messages
  std::string_view bytes;
};

// The body itself, or the only file of a form.
ImageBytes image_of(std::string_view body, const std::string& boundary) {
  if (boundary.empty()) return {"the image", body};
  std::vector<FormPart> parts = parse_multipart(body, boundary);
  std::erase_if(parts, [](const FormPart& part) {
    return part.file.empty() && !part.content_type.starts_with("image/") && part.name != "image";
  });
  if (parts.size() != 1) {
    throw ServiceError(400, "the form holds " + std::to_string(parts.size()) + " images; expected one");
  }
  return {parts.front().file.empty() ? "the image" : parts.front().file, parts.front().content};
}

}  // namespace

inference::ImageSample image_of_body(Pending& work, const ServingOptions& options) {
  if (const std::size_t inputs = work.model->model.inputs().size(); inputs > 1) {
    throw ServiceError(400, "model '" + work.model->name + "' takes " + std::to_string(inputs) +
                                " inputs, not an image alone; call /v2/models/" + work.model->name + "/infer");
  }
  const std::string_view body = plain_body(work, options.body_bytes);
  const ImageBytes image = image_of(body, multipart_boundary(work.exchange->header("Content-Type")));
  if (image.bytes.empty()) {
    throw ServiceError(400, image.name + " has no bytes; expected those of a JPEG or PNG file");
  }
  try {
    return inference::image_sample({reinterpret_cast<const uint8_t*>(image.bytes.data()), image.bytes.size()},
                                   image.name, work.model->model.info().fields.input(), options.image_pixels);
  } catch (const Error& failure) {  // of a damaged image, which is the client's
    throw ServiceError(400, failure.what());
  }
}

void require_address(const ServedModel& model, std::string_view address) {
  const std::string of_model = "model '" + model.name + "' ", call_infer = "; call /v2/models/" + model.name + "/infer";
  if (model.model.outputs().size() < 2) {
    throw ServiceError(400, of_model + "has no task that says what its outputs mean" + call_infer);
  }
  const tasks::Answers answers = tasks::find(model.model.info().task).answers();
  if (answers.address == address) return;
  throw ServiceError(400, of_model + "answers with " + std::string(answers.what) +
                              (answers.address.empty() ? call_infer : "; call /v1/" + std::string(answers.address)));
}

bool wants_png(const RequestHead& head) { return head.header("Accept").find("image/png") != std::string_view::npos; }

Response png_response(std::string file) {
  Response response;
  response.content_type = "image/png";
  response.body = std::move(file);
  return response;
}

Decoded decoded_answer(const ImageCall& call, const inference::DecodeOptions& options) {
  const Model& model = call.model->model;
  const std::string_view bytes = call.result.outputs.front().bytes;
  return inference::decoded_rows(model.info(), model.outputs().back().row, std::as_bytes(std::span(bytes)), options)
      .front();
}

}  // namespace gpunn::serving
