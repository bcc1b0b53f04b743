#pragma once

#include <gpunn/serving.hpp>

#include <cstdint>
#include <vector>

#include "inference/image_sample.hpp"
#include "serving/api/pending.hpp"

namespace gpunn::serving {

// Decodes the JPEG or PNG that is the body of a request, or the only file of a form, as a sample of the model. Throws
// ServiceError if there is none, or if it is damaged or too large.
inference::ImageSample image_of_body(Pending& work, const ServingOptions& options);
inline std::vector<uint8_t> sample_of_body(Pending& work, const ServingOptions& options) {
  return image_of_body(work, options).values;
}

}  // namespace gpunn::serving
