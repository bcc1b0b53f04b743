#pragma once

#include <gpunn/serving.hpp>

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "inference/results/decoded_rows.hpp"
#include "inference/samples/image_sample.hpp"
#include "serving/api/pending.hpp"
#include "serving/api/worker_pool.hpp"

namespace gpunn::serving {

// Decodes the JPEG or PNG that is the body of a request, or the only file of a form, as a sample of the model. Throws
// ServiceError if there is none, or if it is damaged or too large.
inference::ImageSample image_of_body(Pending& work, const ServingOptions& options);

// A request whose body is an image, one row of the model's input.
struct ImageCall : Pending {
  inference::ImageSample image;
};

// Throws ServiceError, with the address to call, if the model's answers are not those of /v1/`address`.
void require_address(const ServedModel& model, std::string_view address);

// The answer for the image of a call that is done.
Decoded decoded_answer(const ImageCall& call, const inference::DecodeOptions& options);

// Whether the client asks for a PNG file instead of JSON.
bool wants_png(const RequestHead& head);
Response png_response(std::string file);

// Decodes the image on a worker and gives it to the model. `answer` makes the response, and `answers` is where, as
// those of job_of().
template <class Call>
void submit_image(const std::shared_ptr<Call>& call, Response (*answer)(const Call&), const ServingOptions& options,
                  WorkerPool& pool, WorkerPool* answers = nullptr) {
  pool.run([call, answer, &options, answers] {
    try {
      if (call->exchange->abandoned()) return;
      call->image = image_of_body(*call, options);
      Job job = job_of(call, answer, answers);
      job.rows = 1;
      job.inputs = {{call->image.values.data()}};
      job.outputs = {call->model->model.outputs().size() - 1};  // the predictions
      call->model->batcher.submit(std::move(job));
    } catch (const std::exception& failure) {
      fail(*call, failure);
    }
  });
}

}  // namespace gpunn::serving
