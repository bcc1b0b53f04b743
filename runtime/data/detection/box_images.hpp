#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/detection/boxed_image.hpp"

namespace gpunn::data {

// The images of a part, in memory or read anew each time. Any number of threads may ask.
class BoxImages {
 public:
  BoxImages() = default;
  BoxImages(const BoxImages&) = delete;
  BoxImages& operator=(const BoxImages&) = delete;
  virtual ~BoxImages() = default;

  virtual int64_t count() const = 0;
  // Throws Error if the file is not as it was when the data set was opened.
  virtual std::shared_ptr<const BoxedImage> image(int64_t number) const = 0;
  // The same, perhaps without pixels.
  virtual const BoxedImage& outline(int64_t number) const = 0;
  virtual bool in_memory() const = 0;
  // A resumed training notices other images by it.
  virtual uint32_t digest() const = 0;
};

std::shared_ptr<const BoxImages> images_in_memory(std::vector<BoxedImage> images);

// `automatic`: files if the images may take more than half of the free memory.
enum class Keeping { automatic, memory, files };

// As read_boxed_images(). All images are decoded once, to check them and their boxes. `damaged` gets the damaged ones.
std::shared_ptr<const BoxImages> box_images(const Annotations& annotations, const std::vector<std::string>& classes,
                                            const ImageForm& form, BoxRepairs& repairs, DamagedFiles& damaged,
                                            Keeping keeping = Keeping::automatic);

}  // namespace gpunn::data
