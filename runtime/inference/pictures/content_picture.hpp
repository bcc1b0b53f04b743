// The picture whose content is painted in a style, and the form that its result has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/images/picture.hpp"
#include "data/images/planes.hpp"

namespace gpunn::inference {

struct ContentPicture {
  data::Planes colours;            // red, green and blue
  data::Picture like;              // without values: the bits and tags of the result
  std::vector<std::string> notes;  // of what the result does not have
};

// A file's picture, its longer side scaled to `longer_side`; 0 means as it is. Transparent pixels lie on white. 16 bits
// a channel stay unless the picture is scaled.
// `damage`: as in read_picture().
ContentPicture read_content(const std::filesystem::path& file, int64_t longer_side, std::string* damage = nullptr);

}  // namespace gpunn::inference
