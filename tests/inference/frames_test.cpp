// Streams of frames through a model of super-resolution.
#include <gpunn/error.hpp>
#include <gpunn/upscale.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "catch.hpp"
#include "data/images/image.hpp"
#include "inference/models.hpp"

using namespace gpunn;
using namespace gpunn::testing;
namespace fs = std::filesystem;

namespace {

constexpr int64_t kHeight = 14, kWidth = 18;

// The picture of a frame; no two frames look alike.
std::string wave(int64_t height, int64_t width, int64_t channels, int frame, int middle = 128) {
  std::string bytes;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        bytes += static_cast<char>(middle + 60 * std::sin(0.4 * static_cast<double>(x + c + frame)) +
                                   40 * std::cos(0.3 * static_cast<double>(y)));
      }
    }
  }
  return bytes;
}

UpscaledFrames enlarge(const RunResult& run, FrameRequest request, const std::string& stream, std::string& result) {
  std::istringstream from(stream);
  return upscale_frames({.path = run.run, .overrides = {}}, request, from,
                        [&](std::string_view bytes) { result += bytes; });
}

std::string refusal(const RunResult& run, const FrameRequest& request, const std::string& stream) {
  std::string result;
  try {
    enlarge(run, request, stream, result);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("frames of RGB are what the same pictures become as files, in order") {
  const TemporaryFolder folder;
  const RunResult run = trained_espcn(folder.path(), GENERATE("luma", "rgb"));
  std::string stream, result;
  for (int frame = 0; frame < 3; ++frame) stream += wave(kHeight, kWidth, 3, frame);
  const UpscaledFrames done = enlarge(run, {.rgb = FrameSize{kWidth, kHeight}}, stream, result);
  CHECK(done.frames == 3);
  CHECK(done.height == 2 * kHeight);
  CHECK(done.width == 2 * kWidth);
  constexpr std::size_t kFrame = 4 * 3 * kHeight * kWidth;
  REQUIRE(result.size() == 3 * kFrame);
  for (std::size_t frame = 0; frame < 3; ++frame) {
    const std::string picture = wave(kHeight, kWidth, 3, static_cast<int>(frame));
    const fs::path file = folder.path() / "frame.png", larger = folder.path() / "larger.png";
    std::ofstream(file, std::ios::binary) << data::encode_png({kHeight, kWidth, 3, {picture.begin(), picture.end()}});
    upscale({.path = run.run, .overrides = {}}, {.inputs = {file}, .to = larger});
    const data::Image expected = data::read_image_file(larger);
    CHECK(result.substr(frame * kFrame, kFrame) == std::string(expected.values.begin(), expected.values.end()));
  }
}

TEST_CASE("frames of Y4M keep their sampling and tags, and the model enlarges their luma") {
  const TemporaryFolder folder;
  const RunResult run = trained_espcn(folder.path(), "luma");
  const int64_t height = 15, width = 17;
  const std::string luma = wave(height, width, 1, 0), colour = wave(8, 9, 1, 1), other(72, '\x60');
  const std::string tags = " F30:1 Ip A1:1 C420jpeg XNOTE=kept";
  std::string result;
  enlarge(run, {.rgb = {}},
          "YUV4MPEG2 W17 H15" + tags + "\nFRAME Ip\n" + luma + colour + other + "FRAME\n" + luma + colour + other,
          result);
  const std::string header = "YUV4MPEG2 W34 H30" + tags + "\n";
  REQUIRE(result.starts_with(header + "FRAME\n"));
  constexpr std::size_t kLuma = 30 * 34, kColour = 15 * 17;
  const std::size_t frame = 6 + kLuma + 2 * kColour;
  REQUIRE(result.size() == header.size() + 2 * frame);
  CHECK(result.substr(header.size(), frame) == result.substr(header.size() + frame));
  const fs::path file = folder.path() / "luma.png", larger = folder.path() / "larger.png";
  std::ofstream(file, std::ios::binary) << data::encode_png({height, width, 1, {luma.begin(), luma.end()}});
  upscale({.path = run.run, .overrides = {}}, {.inputs = {file}, .to = larger});
  const data::Image expected = data::read_image_file(larger);
  CHECK(result.substr(header.size() + 6, kLuma) == std::string(expected.values.begin(), expected.values.end()));
  // What is even stays so, and what is not keeps its rows in place.
  CHECK(result.substr(header.size() + 6 + kLuma + kColour, kColour) == std::string(kColour, '\x60'));
  const std::string first = result.substr(header.size() + 6 + kLuma, kColour);
  CHECK(std::abs(static_cast<uint8_t>(first[2 * 17 + 2]) - static_cast<uint8_t>(colour[9 + 1])) < 25);
}

TEST_CASE("luma from 0 to 255 goes through the model from 16 to 235") {
  const TemporaryFolder folder;
  const RunResult run = trained_espcn(folder.path(), "luma");
  std::string limited, full;
  for (const char value : wave(kHeight, kWidth, 1, 0)) {
    full += value;
    limited += static_cast<char>(std::lround(16 + static_cast<uint8_t>(value) * 219.0 / 255));
  }
  const std::string header = "YUV4MPEG2 W18 H14 Cmono";
  std::string from_limited, from_full;
  enlarge(run, {.rgb = {}}, header + "\nFRAME\n" + limited, from_limited);
  enlarge(run, {.rgb = {}}, header + " XCOLORRANGE=FULL\nFRAME\n" + full, from_full);
  constexpr std::size_t kLuma = 4 * kHeight * kWidth;
  int most = 0;
  for (std::size_t i = 1; i <= kLuma; ++i) {
    const double narrow = static_cast<uint8_t>(from_limited[from_limited.size() - i]);
    const auto wide = std::lround(std::clamp((narrow - 16) * 255 / 219, 0.0, 255.0));
    most = std::max(most, std::abs(static_cast<int>(wide) - static_cast<uint8_t>(from_full[from_full.size() - i])));
  }
  CHECK(most <= 2);
}

TEST_CASE("a stream that is not as expected is told") {
  const TemporaryFolder folder;
  const RunResult run = trained_espcn(folder.path(), "luma");
  const FrameRequest y4m{.rgb = {}};
  CHECK_THAT(refusal(run, y4m, ""), Contains("expected the header of Y4M, found nothing"));
  CHECK_THAT(refusal(run, y4m, "P6\n3 3\n"), Contains("begins with YUV4MPEG2"));
  CHECK_THAT(refusal(run, y4m, std::string(9000, 'x')), Contains("no end of it"));
  CHECK_THAT(refusal(run, y4m, "YUV4MPEG2 W4 Hx\n"), Contains("found 'Hx'"));
  CHECK_THAT(refusal(run, y4m, "YUV4MPEG2 W4 H99999999\n"), Contains("found 4 by 99999999"));
  CHECK_THAT(refusal(run, y4m, "YUV4MPEG2 W4 H4 C420p10\n"), Contains("found C420p10"));
  CHECK_THAT(refusal(run, y4m, "YUV4MPEG2 W4 H4 It\n"), Contains("interlaced"));
  CHECK_THAT(refusal(run, y4m, "YUV4MPEG2 W2 H2 Cmono\nFRAME\nabcdfoo\n"), Contains("in front of frame 2"));
  CHECK_THAT(refusal(run, y4m, "YUV4MPEG2 W2 H2 Cmono\nFRAME\nabc"), Contains("expected 4 bytes, found 3"));
  CHECK_THAT(refusal(run, {.rgb = FrameSize{2, 2}}, "abc"), Contains("expected 12 bytes, found 3"));
  const RunResult colours = trained_espcn(folder.path(), "rgb");
  CHECK_THAT(refusal(colours, y4m, "YUV4MPEG2 W4 H4\n"), Contains("--frames"));
}
