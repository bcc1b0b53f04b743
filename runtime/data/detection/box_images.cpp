#include "data/detection/box_images.hpp"

#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>

#include <array>
#include <optional>
#include <utility>

#include <zlib.h>

#include "common/host_memory.hpp"
#include "common/parallel.hpp"

namespace gpunn::data {

namespace {

uLong crc_with(uLong crc, const void* bytes, std::size_t count) {
  return crc32_z(crc, static_cast<const Bytef*>(bytes), count);
}

uLong crc_with_boxes(uLong crc, const BoxedImage& image) {
  for (const fields::TrueBox& object : image.objects) {
    const std::array<double, 5> values = {object.box.left, object.box.top, object.box.right, object.box.bottom,
                                          static_cast<double>(object.category)};
    crc = crc_with(crc, values.data(), sizeof(values));
  }
  return crc;
}

class ImagesInMemory : public BoxImages {
 public:
  explicit ImagesInMemory(std::vector<BoxedImage> images)
      : images_(std::make_shared<const std::vector<BoxedImage>>(std::move(images))) {
    uLong crc = 0;
    for (const BoxedImage& image : *images_) {
      crc = crc_with(crc, image.image.values.data(), image.image.values.size());
      crc = crc_with_boxes(crc, image);
    }
    digest_ = static_cast<uint32_t>(crc);
  }

  int64_t count() const override { return std::ssize(*images_); }
  std::shared_ptr<const BoxedImage> image(int64_t number) const override { return {images_, &outline(number)}; }
  const BoxedImage& outline(int64_t number) const override { return (*images_)[static_cast<std::size_t>(number)]; }
  bool in_memory() const override { return true; }
  uint32_t digest() const override { return digest_; }

 private:
  std::shared_ptr<const std::vector<BoxedImage>> images_;
  uint32_t digest_ = 0;
};

// How an image of a file is read.
struct Reading {
  std::vector<std::string> classes;
  ImageForm form;
  Damaged damaged = Damaged::error;
};

class ImagesInFiles : public BoxImages {
 public:
  ImagesInFiles(std::vector<AnnotatedImage> listed, Reading reading, BoxRepairs& repairs, DamagedFiles& damaged)
      : listed_(std::move(listed)), reading_(std::move(reading)), outlines_(listed_.size()) {
    std::vector<uint8_t> sound(listed_.size());  // not bits, which threads would share
    std::vector<BoxRepairs> of_image(listed_.size());
    LongWork work("checking the images", listed_.size());
    for_row_stretches(count(), 1, [&](int64_t first, int64_t last) {
      for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i, work.advance()) {
        std::optional<BoxedImage> image = read(i, of_image[i], damaged);
        if (!image) continue;
        sound[i] = 1;
        outlines_[i] = std::move(*image);
        outlines_[i].image.values = {};
      }
    });
    leave_out(sound);
    for (std::size_t i = 0; i < sound.size(); ++i) repairs.add(of_image[i]);
    uLong crc = 0;
    for (std::size_t i = 0; i < listed_.size(); ++i) {
      crc = crc_with(crc, outlines_[i].name.data(), outlines_[i].name.size());
      crc = crc_with_boxes(crc, outlines_[i]);
    }
    digest_ = static_cast<uint32_t>(crc);
  }

  int64_t count() const override { return std::ssize(listed_); }
  std::shared_ptr<const BoxedImage> image(int64_t number) const override {
    const auto place = static_cast<std::size_t>(number);
    BoxRepairs known;
    DamagedFiles damaged(reading_.damaged);
    std::optional<BoxedImage> found = read(place, known, damaged);
    if (!found) throw Error(damaged.found().front().reason);
    auto image = std::make_shared<const BoxedImage>(std::move(*found));
    const BoxedImage::Original &now = *image->original, &before = *outlines_[place].original;
    if (now.height != before.height || now.width != before.width) {
      throw Error(listed_[place].file.string() +
                  ": has another size than when the data set was opened. Leave the folder as it is while it is read; "
                  "`gpunn resume` goes on from the last checkpoint");
    }
    return image;
  }
  const BoxedImage& outline(int64_t number) const override { return outlines_[static_cast<std::size_t>(number)]; }
  bool in_memory() const override { return false; }
  uint32_t digest() const override { return digest_; }

 private:
  std::optional<BoxedImage> read(std::size_t place, BoxRepairs& repairs, DamagedFiles& damaged) const {
    return boxed_image(listed_[place], reading_.classes, reading_.form, repairs, damaged);
  }
  void leave_out(const std::vector<uint8_t>& sound) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < sound.size(); ++i) {
      if (sound[i] == 0) continue;
      if (kept != i) {
        listed_[kept] = std::move(listed_[i]);
        outlines_[kept] = std::move(outlines_[i]);
      }
      ++kept;
    }
    listed_.resize(kept);
    outlines_.resize(kept);
  }

  std::vector<AnnotatedImage> listed_;
  Reading reading_;
  std::vector<BoxedImage> outlines_;
  uint32_t digest_ = 0;
};

}  // namespace

std::shared_ptr<const BoxImages> images_in_memory(std::vector<BoxedImage> images) {
  return std::make_shared<ImagesInMemory>(std::move(images));
}

std::shared_ptr<const BoxImages> box_images(const Annotations& annotations, const std::vector<std::string>& classes,
                                            const ImageForm& form, BoxRepairs& repairs, DamagedFiles& damaged,
                                            Keeping keeping) {
  if (keeping == Keeping::automatic) {
    constexpr uint64_t kShareOfMemory = 2;
    const uint64_t free = free_host_memory();
    const bool fits = free == 0 || boxed_image_bytes(annotations, form) <= free / kShareOfMemory;
    keeping = fits ? Keeping::memory : Keeping::files;
  }
  if (keeping == Keeping::memory) {
    return images_in_memory(read_boxed_images(annotations, classes, form, repairs, damaged));
  }
  return std::make_shared<ImagesInFiles>(annotations.images, Reading{classes, form, damaged.policy()}, repairs,
                                         damaged);
}

}  // namespace gpunn::data
