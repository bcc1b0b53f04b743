// The colours that a picture's numbers stand for, as its file says: a profile, or tags of a PNG.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpunn::data {

// Chunks of a PNG, which a PNG of the same colours takes as they are.
struct PngChunk {
  std::string type;   // "iCCP"
  std::string bytes;  // without length and check sum
};

struct ColourTags {
  std::vector<PngChunk> chunks = {};
  bool for_grey = false;  // else for red, green and blue
  std::string note = {};  // of a profile that a PNG can't hold; else empty

  // Those that a PNG can hold, which is grey or not. A profile for other colours becomes a note.
  ColourTags for_picture(bool grey) const;
};

// Of a PNG: iCCP, sRGB, gAMA, cHRM, cICP, mDCV and cLLI, and eXIf, which says how the picture is turned. Of a JPEG: its
// ICC profile, from all of its segments. Other files have none. Damaged tags are left out.
ColourTags colour_tags_of(std::span<const uint8_t> file);

}  // namespace gpunn::data
