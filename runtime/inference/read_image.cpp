#include <gpunn/error.hpp>
#include <gpunn/model.hpp>

namespace gpunn {

namespace {

const Shape& image_shape(const InputInfo& input) {
  if (input.sample.shape.size() != 3 || input.sample.dtype != DType::u8) {
    throw Error("the model takes rows of " + to_string(input.sample) + ", not images", ExitCode::usage);
  }
  return input.sample.shape;
}

}  // namespace

std::vector<uint8_t> read_image(const std::filesystem::path& file, const InputInfo& input) {
  const Shape& shape = image_shape(input);
  // Where the samples are light on dark, as MNIST is, a scan or a drawing is most often dark on light.
  return read_image(file, shape[0], shape[1], shape[2], input.light_on_dark, input.fit);
}

std::vector<uint8_t> read_image(std::span<const uint8_t> bytes, const std::string& name, const InputInfo& input,
                                int64_t most_pixels) {
  const Shape& shape = image_shape(input);
  return read_image(bytes, name, shape[0], shape[1], shape[2], input.light_on_dark, input.fit, most_pixels);
}

}  // namespace gpunn
