// Damaged image files among many.
#pragma once

#include <gpunn/export.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace gpunn {

// What becomes of damaged images among those that are read together. `error`: all images are read, then one error names
// the damaged ones. `skip`: the others are used. `repair`: the pixels that can be read are used, and a file without any
// is left out.
enum class Damaged { error, skip, repair };

// By its name in experiments. Throws Error(usage) if there is none.
GPUNN_API Damaged damaged_named(const std::string& name);

// A damaged image that was read among others.
struct DamagedImage {
  std::filesystem::path file;
  std::string reason;     // with the name of the file in front
  bool repaired = false;  // used in part; else left out
  bool missing = false;   // the file can't be opened
};

// Hears of a damaged image. A request with one leaves damaged images out of its answers and does not throw for them.
using DamagedListener = std::function<void(const DamagedImage& image)>;

// Throws Error: "2 of 1000 images in PLACE are damaged:", a line for each of the first ten, and the advice. Throws
// nothing if there are none. Of a single image that was read, the error is its own.
GPUNN_API void refuse_damaged(const std::vector<DamagedImage>& images, std::size_t all, const std::string& place,
                              const std::string& advice);
// "2 of 1000 images in PLACE are damaged and left out: ...", and likewise for those that are used in part.
GPUNN_API std::vector<std::string> damage_notes(const std::vector<DamagedImage>& images, std::size_t all,
                                                const std::string& place);

}  // namespace gpunn
