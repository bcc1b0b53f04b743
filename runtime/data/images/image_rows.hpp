#pragma once

#include <gpunn/damaged.hpp>
#include <gpunn/sample_source.hpp>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "data/images/image.hpp"

namespace gpunn::data {

// How images of any size become samples.
struct SampleForm {
  int64_t height = 0, width = 0;
  int64_t channels = 3;      // 1 or 3; 0: as the image
  int64_t shorter_side = 0;  // as ImageFit has it
  bool scaled = true;        // else an image of another size is refused, as that of `like` has this one
  std::filesystem::path like = {};
};

// The sample that an evaluation sees of an image. Throws Error if it has another size and may not be scaled.
Image sample_image(Image image, const std::filesystem::path& file, const SampleForm& form);

// Images that are read and decoded each time they are needed. Throws Error if one has changed since the source was
// made. With Damaged::error, the first damaged image ends the work, and the error names all that there are.
class ImageRows : public SampleSource {
 public:
  ImageRows(std::vector<std::filesystem::path> files, SampleForm form, Damaged damaged);

  void read(int64_t row, SampleDraw* draw, std::span<std::byte> sample) const override;
  // A digest of the files' names and sizes.
  uint32_t digest(std::span<const int64_t> rows) const override;

 private:
  Image decoded(std::span<const uint8_t> bytes, std::size_t row, SampleDraw* draw) const;
  [[noreturn]] void refuse_all_damaged() const;

  const std::vector<std::filesystem::path> files_;
  std::vector<uint64_t> bytes_;
  const SampleForm form_;
  const Damaged damaged_;
  mutable std::once_flag searched_;
  mutable std::string all_damaged_;  // the error, once all files are searched
};

}  // namespace gpunn::data
