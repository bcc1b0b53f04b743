#pragma once

#include <gpunn/batch_source.hpp>
#include <gpunn/data_config.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/detection/box_images.hpp"
#include "data/synthetic/philox_source.hpp"

namespace gpunn::data {

// Where an image goes on a canvas. Its rows and columns are exchanged where `transpose` is set, it is mirrored, then
// scaled by `scale`, in width `stretch` times and in height 1 / `stretch` times that, then moved.
struct Placement {
  double scale = 1, stretch = 1, x = 0, y = 0;
  bool flip = false, vertical_flip = false, transpose = false;

  // The sides of an image of this size, on the canvas.
  double height_of(const Image& image) const;
  double width_of(const Image& image) const;
  // Of a box of an image.
  fields::Box of(const fields::Box& box, const Image& image) const;
};

// The part of a canvas that is drawn on.
struct Region {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
};

// A sample in the making: grey, then images drawn on it, and the boxes that are left of theirs.
class Canvas {
 public:
  Canvas(int64_t height, int64_t width, int64_t channels);
  // Pixels between those of the image are their bilinear means. Boxes of which less than a quarter, or fewer than two
  // pixels in a direction, is left within the region are not taken over.
  void draw(const BoxedImage& image, const Placement& placement, const Region& region);
  Region whole() const { return {0, 0, image_.height, image_.width}; }
  Image& image() { return image_; }
  const Image& image() const { return image_; }
  const std::vector<fields::TrueBox>& objects() const { return objects_; }

 private:
  Image image_;
  std::vector<fields::TrueBox> objects_;
};

// Writes boxes as the kind "boxes" has them; room.size() / kBoxNumbers of them at most, the first ones.
void write_boxes(std::span<const fields::TrueBox> objects, std::span<float> room);

// Varied samples of some images for training. All that is random is a function of the step and the row.
class BoxSource : public BatchSource {
 public:
  BoxSource(std::shared_ptr<const BoxImages> images, BoxSet settings, uint64_t seed, bool shuffle);

  int64_t read(int64_t step, const BatchRoom& room) override;
  bool always_full() const override { return true; }
  uint32_t digest() const override { return images_->digest(); }

 private:
  std::shared_ptr<const BoxedImage> image_of(uint64_t sample) const;
  Canvas sample_of(uint64_t number, bool mosaics) const;
  // What is drawn for an image, so that it fits into the sample, times `scale`.
  Placement placement_of(const Image& image, double scale, PhiloxSource& random) const;

  std::shared_ptr<const BoxImages> images_;
  BoxSet settings_;
  uint64_t seed_;
  bool shuffle_;
};

}  // namespace gpunn::data
