#include "data/images/colour_tags.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string_view>

#include <zlib.h>

namespace gpunn::data {

namespace {

using namespace std::string_view_literals;

constexpr std::array kKept = {"iCCP"sv, "sRGB"sv, "gAMA"sv, "cHRM"sv, "cICP"sv, "mDCV"sv, "cLLI"sv, "eXIf"sv};
constexpr std::size_t kMostProfileBytes = std::size_t{64} << 20;

// A number of `size` bytes, the highest first. The caller knows that they are there.
uint32_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  uint32_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value = value << 8U | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

uint32_t checksum_of(std::string_view bytes) {
  return static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

ColourTags tags_of_png(std::string_view bytes) {
  constexpr std::size_t kSignature = 8, kName = 4, kAround = 12;  // length, name and check sum of a chunk
  constexpr std::size_t kColourType = 25;                         // in the first chunk; bit 1: colours
  ColourTags tags;
  tags.for_grey = bytes.size() > kColourType && (static_cast<uint8_t>(bytes[kColourType]) & 2U) == 0;
  for (std::size_t at = kSignature; at + kAround <= bytes.size();) {
    const std::size_t length = number_at(bytes, at, kName);
    const std::string_view type = bytes.substr(at + kName, kName);
    if (length > bytes.size() - at - kAround || type == "IDAT" || type == "IEND") break;
    const bool known = std::ranges::find(kKept, type) != kKept.end();
    const bool sound =
        number_at(bytes, at + 2 * kName + length, kName) == checksum_of(bytes.substr(at + kName, kName + length));
    if (known && sound) {
      tags.chunks.push_back({std::string(type), std::string(bytes.substr(at + 2 * kName, length))});
    }
    at += length + kAround;
  }
  return tags;
}

// The profile of a JPEG lies in segments, each with its number from 1 on and their count.
std::string profile_of_jpeg(std::string_view bytes) {
  constexpr std::string_view kHead = "ICC_PROFILE\0"sv;
  constexpr uint32_t kSegment = 0xE2, kScan = 0xDA;
  std::map<uint32_t, std::string_view> parts;
  uint32_t count = 0;
  for (std::size_t at = 2; at + 4 <= bytes.size() && bytes[at] == '\xff';) {
    const uint32_t marker = number_at(bytes, at + 1, 1);
    if (marker == 0xFF) {  // padding
      ++at;
      continue;
    }
    const uint32_t length = number_at(bytes, at + 2, 2);
    if (marker == kScan || length < 2 || length > bytes.size() - at - 2) break;
    const std::string_view content = bytes.substr(at + 4, length - 2);
    if (marker == kSegment && content.starts_with(kHead) && content.size() > kHead.size() + 2) {
      count = number_at(content, kHead.size() + 1, 1);
      parts.emplace(number_at(content, kHead.size(), 1), content.substr(kHead.size() + 2));
    }
    at += 2 + length;
  }
  std::string profile;
  for (uint32_t i = 1; i <= count; ++i) {
    const auto part = parts.find(i);
    if (part == parts.end()) return "";
    profile += part->second;
  }
  return profile;
}

ColourTags tags_of_jpeg(std::string_view bytes) {
  constexpr std::size_t kHeader = 128, kColours = 16;  // of a profile; the colours that it is for
  const std::string profile = profile_of_jpeg(bytes);
  if (profile.size() < kHeader || profile.size() > kMostProfileBytes) return {};
  const std::string_view colours = std::string_view(profile).substr(kColours, 4);
  if (colours != "RGB " && colours != "GRAY") {
    return {.note = "its colour profile is for " + std::string(colours) +
                    " and is left out: the result is in red, green and blue without a profile"};
  }
  uLongf size = compressBound(static_cast<uLong>(profile.size()));
  std::string packed(size, '\0');
  if (compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(profile.data()),
               static_cast<uLong>(profile.size())) != Z_OK) {
    return {};
  }
  packed.resize(size);
  return {.chunks = {{"iCCP", std::string("ICC profile\0\0"sv) + packed}}, .for_grey = colours == "GRAY"};
}

}  // namespace

ColourTags ColourTags::for_picture(bool grey) const {
  ColourTags kept = *this;
  if (grey == for_grey) return kept;
  const auto profiles = std::erase_if(kept.chunks, [](const PngChunk& chunk) { return chunk.type == "iCCP"; });
  if (profiles > 0) {
    kept.note = std::string("its colour profile is for ") + (for_grey ? "grey" : "red, green and blue") +
                " and is left out: the result is in " + (grey ? "grey" : "colours") + " without a profile";
  }
  return kept;
}

ColourTags colour_tags_of(std::span<const uint8_t> file) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  if (bytes.starts_with("\x89PNG\r\n\x1a\n"sv)) return tags_of_png(bytes);
  if (bytes.starts_with("\xff\xd8\xff"sv)) return tags_of_jpeg(bytes);
  return {};
}

}  // namespace gpunn::data
