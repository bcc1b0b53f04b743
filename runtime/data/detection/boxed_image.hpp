#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/detection/annotations.hpp"
#include "data/folders/damaged_files.hpp"
#include "data/images/image.hpp"
#include "fields/box.hpp"

namespace gpunn::data {

// An image and the objects that it shows, in its own pixels.
struct BoxedImage {
  std::string name;
  Image image;
  std::vector<fields::TrueBox> objects = {};
  double scale = 1;  // its pixels for each pixel of the file
  // What its file has: its size, and its boxes as they are written, in pixels of the file. None: what is above.
  struct Original {
    int64_t height = 0, width = 0;
    std::vector<fields::TrueBox> objects;
    int64_t order = 0;  // AnnotatedImage's
    std::string id;     // likewise
  };
  std::optional<Original> original = {};
};

// What was found wrong with boxes and put right, or left out.
struct BoxRepairs {
  int64_t boxes = 0;  // all that were read
  int64_t swapped = 0, clipped = 0, outside = 0, no_area = 0, not_finite = 0, twice = 0;
  int64_t without_boxes = 0, turned = 0, other_size = 0, from_16_bits = 0;  // images
  std::vector<std::string> examples;                                        // places of the first ones left out

  void add(const BoxRepairs& other);
  std::vector<std::string> notes() const;  // a sentence for each kind that there is
};

// The boxes of an image of this size that can be learnt: corners in order, clipped to the image, none without area,
// none twice. `classes` are sorted by their numbers. Throws Error where a box has a class that is not among them.
std::vector<fields::TrueBox> checked_boxes(const AnnotatedImage& annotated, int64_t height, int64_t width,
                                           const std::vector<std::string>& classes, BoxRepairs& repairs);

// The boxes that an evaluation counts: all finite ones as the file has them, in pixels of an image of this size. They
// are neither clipped nor left out, as COCO's and VOC's evaluators do neither.
std::vector<fields::TrueBox> counted_boxes(const AnnotatedImage& annotated, int64_t height, int64_t width,
                                           const std::vector<std::string>& classes);

// The classes of all boxes, sorted by name, where the file does not list any.
std::vector<std::string> classes_of(const Annotations& annotations);

// The form that images are read in.
struct ImageForm {
  int64_t channels = 3;
  int64_t most_side = 0;   // the longer side of a larger image becomes this
  bool is_sample = false;  // instead: the image becomes a sample of these rows and columns, as predictions make it
  int64_t rows = 0, columns = 0;
};

// Reads the images of the annotations in this form, without damaged ones that are left out. A photograph that is stored
// lying and marked as upright (EXIF) is turned as its annotation's size says; without that size it is turned as viewers
// do.
std::vector<BoxedImage> read_boxed_images(const Annotations& annotations, const std::vector<std::string>& classes,
                                          const ImageForm& form, BoxRepairs& repairs, DamagedFiles& damaged);

// One of them. Nothing: it is damaged and left out.
std::optional<BoxedImage> boxed_image(const AnnotatedImage& annotated, const std::vector<std::string>& classes,
                                      const ImageForm& form, BoxRepairs& repairs, DamagedFiles& damaged);

// An estimate of what they take in memory.
uint64_t boxed_image_bytes(const Annotations& annotations, const ImageForm& form);

}  // namespace gpunn::data
