#include <gpunn/error.hpp>
#include <gpunn/model.hpp>

#include <algorithm>
#include <utility>

#include "data/images/fitted_sample.hpp"
#include "inference/samples/image_sample.hpp"

namespace gpunn {

namespace {

const Shape& image_shape(const Field& input) {
  if (input.type.shape.size() != 3 || input.type.dtype != DType::u8) {
    throw Error("the model takes rows of " + to_string(input.type) + ", not images", ExitCode::usage);
  }
  return input.type.shape;
}

// Where the samples are light on dark, as MNIST is, a scan or a drawing is most often dark on light.
inference::ImageSample sample_of_image(data::Image image, const Field& input) {
  const Shape& shape = image_shape(input);
  inference::ImageSample sample{.values = {}, .height = image.height, .width = image.width};
  sample.values = data::fitted_sample(std::move(image), shape[0], shape[1], shape[2], input.light_on_dark, input.fit);
  return sample;
}

}  // namespace

std::vector<uint8_t> read_image(const std::filesystem::path& file, const Field& input) {
  const Shape& shape = image_shape(input);
  return read_image(file, shape[0], shape[1], shape[2], input.light_on_dark, input.fit);
}

std::vector<uint8_t> read_image(std::span<const uint8_t> bytes, const std::string& name, const Field& input,
                                int64_t most_pixels) {
  return inference::image_sample(bytes, name, input, most_pixels).values;
}

inference::ImageSample inference::image_sample(std::span<const uint8_t> bytes, const std::string& name,
                                               const Field& input, int64_t most_pixels) {
  image_shape(input);
  return sample_of_image(data::decode_image(bytes, name, most_pixels), input);
}

inference::ImageSample inference::image_sample(const std::filesystem::path& file, const Field& input,
                                               std::string* damage) {
  image_shape(input);
  return sample_of_image(data::read_image_file(file, damage), input);
}

std::vector<DetectedBox> inference::boxes_on_image(std::vector<DetectedBox> boxes, int64_t height, int64_t width,
                                                   const Field& input) {
  if (!input.fit.inside) return boxes;
  const data::Image image{height, width, 1, {}};
  const double scale = data::fit_inside_scale(image, input.type.shape[1], input.type.shape[2]);
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  for (DetectedBox& box : boxes) {
    box.left = std::clamp(box.left / scale, 0.0, w);
    box.right = std::clamp(box.right / scale, 0.0, w);
    box.top = std::clamp(box.top / scale, 0.0, h);
    box.bottom = std::clamp(box.bottom / scale, 0.0, h);
  }
  return boxes;
}

}  // namespace gpunn
