#include "inference/enlarging/frames.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "common/parse_number.hpp"
#include "common/text.hpp"
#include "data/images/image.hpp"

namespace gpunn::inference {

namespace {

constexpr std::string_view kY4m = "YUV4MPEG2", kFrame = "FRAME";
constexpr std::size_t kLongestLine = 4096;
constexpr const char* kConvert = "; as with ffmpeg -i FILE -pix_fmt yuv420p -f yuv4mpegpipe -";

[[noreturn]] void refuse(const std::string& text) { throw Error("the stream of frames: " + text, ExitCode::usage); }

int64_t side_of(std::string_view tag) {
  const std::optional<int64_t> side = parse_number<int64_t>(tag.substr(1));
  if (!side) refuse("expected a number of pixels in the header, found " + in_quotes(tag));
  return *side;
}

void require_size(const FrameFormat& format) {
  if (format.width >= 1 && format.height >= 1 && format.width <= data::kMostSide && format.height <= data::kMostSide) {
    return;
  }
  refuse("expected frames of 1 to " + std::to_string(data::kMostSide) + " pixels a side, found " +
         std::to_string(format.width) + " by " + std::to_string(format.height));
}

// How Y4M calls the places of colours: "420jpeg", "422", "mono".
void set_colours(std::string_view name, FrameFormat& format) {
  struct Row {
    std::string_view name;
    int64_t planes, down, across;
    bool opacity = false;
  };
  // 4:2:0 has variants that differ in where between the pixels a colour lies, by at most half a pixel.
  static constexpr std::array<Row, 9> kRows = {
      Row{"mono", 0, 1, 1},     Row{"420", 2, 2, 2},      Row{"420jpeg", 2, 2, 2},
      Row{"420mpeg2", 2, 2, 2}, Row{"420paldv", 2, 2, 2}, Row{"422", 2, 1, 2},
      Row{"411", 2, 1, 4},      Row{"444", 2, 1, 1},      Row{"444alpha", 2, 1, 1, true}};
  const auto* const found = std::ranges::find(kRows, name, &Row::name);
  if (found == kRows.end()) {
    refuse("expected values of 8 bits in one of the forms C420, C422, C411, C444, C444alpha, Cmono; found C" +
           std::string(name) + kConvert);
  }
  format.colour_planes = found->planes;
  format.colour_down = found->down;
  format.colour_across = found->across;
  format.opacity = found->opacity;
}

FrameFormat read_header(const std::string& header) {
  FrameFormat format;
  std::string_view colours = "420";
  std::istringstream words(header);
  std::string word;
  words >> word;
  if (word != kY4m) {
    refuse("expected Y4M, which begins with " + std::string(kY4m) + kConvert + ". For raw RGB give --frames");
  }
  std::vector<std::string> tags;
  while (words >> word) tags.push_back(word);
  for (const std::string& tag : tags) {
    if (tag[0] == 'W') {
      format.width = side_of(tag);
      continue;
    }
    if (tag[0] == 'H') {
      format.height = side_of(tag);
      continue;
    }
    if (tag[0] == 'C') colours = std::string_view(tag).substr(1);
    if (tag == "It" || tag == "Ib" || tag == "Im") {
      refuse("frames are interlaced (" + tag + "); expected whole ones, as with ffmpeg -vf yadif");
    }
    if (tag == "XCOLORRANGE=FULL") format.full_range = true;
    format.tags += ' ' + tag;
  }
  require_size(format);
  set_colours(colours, format);
  return format;
}

}  // namespace

std::vector<FrameFormat::Plane> FrameFormat::planes() const {
  std::vector<Plane> planes = {{height, width}};
  for (int64_t i = 0; i < colour_planes; ++i) {
    planes.push_back({(height + colour_down - 1) / colour_down, (width + colour_across - 1) / colour_across});
  }
  if (opacity) planes.push_back({height, width});
  return planes;
}

std::size_t FrameFormat::bytes() const {
  if (rgb) return static_cast<std::size_t>(3 * height * width);
  std::size_t bytes = 0;
  for (const Plane& plane : planes()) bytes += plane.bytes();
  return bytes;
}

std::string FrameFormat::header() const {
  if (rgb) return "";
  return std::string(kY4m) + " W" + std::to_string(width) + " H" + std::to_string(height) + tags + "\n";
}

std::string FrameFormat::frame_header() const { return rgb ? "" : std::string(kFrame) + "\n"; }

FrameFormat FrameFormat::enlarged(int64_t scale) const {
  FrameFormat larger = *this;
  larger.height *= scale;
  larger.width *= scale;
  return larger;
}

FrameReader::FrameReader(std::istream& from, const std::optional<FrameSize>& rgb) : from_(from) {
  if (!rgb) {
    format_ = read_header(line("the header of Y4M"));
    return;
  }
  format_.height = rgb->height;
  format_.width = rgb->width;
  format_.rgb = true;
  require_size(format_);
}

bool FrameReader::next(std::vector<uint8_t>& frame) {
  if (from_.peek() == std::istream::traits_type::eof()) return false;
  ++frames_;
  const std::string number = "frame " + std::to_string(frames_);
  if (!format_.rgb) {
    const std::string header = line("the line FRAME");
    if (!header.starts_with(kFrame)) refuse("expected the line FRAME in front of " + number);
  }
  frame.resize(format_.bytes());
  from_.read(reinterpret_cast<char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
  if (static_cast<std::size_t>(from_.gcount()) == frame.size()) return true;
  throw Error("the stream of frames ends within " + number + ": expected " + std::to_string(frame.size()) +
              " bytes, found " + std::to_string(from_.gcount()) +
              (format_.rgb ? ". Are the frames rgb24, of the size that --frames says?" : ""));
}

std::string FrameReader::line(const char* what) {
  std::string text;
  for (int next = from_.get(); next != '\n'; next = from_.get()) {
    if (next == std::istream::traits_type::eof() || text.size() == kLongestLine) {
      refuse(std::string("expected ") + what + ", found " +
             (text.empty()                  ? "nothing"
              : text.size() == kLongestLine ? "no end of it"
                                            : in_quotes(text)) +
             kConvert + ". For raw RGB give --frames");
    }
    text += static_cast<char>(next);
  }
  return text;
}

}  // namespace gpunn::inference
