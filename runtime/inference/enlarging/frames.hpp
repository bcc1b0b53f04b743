// Streams of video frames: YUV4MPEG2 (Y4M), which says what it holds, and raw RGB.
#pragma once

#include <gpunn/upscale.hpp>

#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace gpunn::inference {

// What each frame of a stream holds, in bytes: of RGB the pixels, three bytes each; of Y4M a plane of luma, and others
// behind it.
struct FrameFormat {
  struct Plane {
    int64_t height = 0, width = 0;
    std::size_t bytes() const { return static_cast<std::size_t>(height * width); }
  };

  int64_t height = 0, width = 0;
  bool rgb = false;
  // Of Y4M:
  int64_t colour_planes = 0;                   // 2, or 0 of grey frames
  int64_t colour_down = 1, colour_across = 1;  // pixels of luma that share a colour
  bool opacity = false;                        // a last plane
  bool full_range = false;                     // luma from 0 to 255, not from 16 to 235
  std::string tags;                            // of the header, behind width and height

  std::vector<Plane> planes() const;  // of Y4M
  std::size_t bytes() const;          // a frame
  std::string header() const;         // of the stream
  std::string frame_header() const;
  FrameFormat enlarged(int64_t scale) const;
};

// Frames from a stream, one by one. Functions throw Error, which says where the stream is not as expected.
class FrameReader {
 public:
  // Raw RGB of that size; without one Y4M, whose header is read here.
  FrameReader(std::istream& from, const std::optional<FrameSize>& rgb);

  const FrameFormat& format() const { return format_; }
  // False at the end of the stream.
  bool next(std::vector<uint8_t>& frame);

 private:
  std::string line(const char* what);

  std::istream& from_;
  FrameFormat format_;
  int64_t frames_ = 0;
};

}  // namespace gpunn::inference
