// Streams of frames: while the model has one, the next is read and the one before is written.
#include <gpunn/upscale.hpp>

#include <algorithm>
#include <cstddef>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "inference/enlarging/enlarger.hpp"
#include "inference/enlarging/frames.hpp"
#include "inference/enlarging/picture_parts.hpp"
#include "inference/pictures/pictures.hpp"

namespace gpunn {

using data::Planes;
using inference::Enlarger;
using inference::FrameFormat;

namespace {

// Luma goes from 16 to 235 where a model sees it.
constexpr float kBlack = 16.0F / 255, kRange = 219.0F / 255;

// A frame of which the model has yet to enlarge what it sees, or has done so.
struct Frame {
  inference::PictureParts parts;
  std::vector<uint8_t> bytes;  // of Y4M
};

class FrameUpscaler {
 public:
  FrameUpscaler(const FrameFormat& from, const Enlarger& enlarger)
      : from_(from), to_(from.enlarged(enlarger.settings().scale)), enlarger_(enlarger) {}

  Frame prepare(std::vector<uint8_t> bytes) const {
    Frame frame;
    if (from_.rgb) {
      frame.parts = inference::parts_of(inference::planes_of_bytes(bytes, 3, from_.height, from_.width), {},
                                        enlarger_.settings());
      return frame;
    }
    frame.parts.seen = inference::planes_of_bytes(std::span(bytes).first(from_.planes().front().bytes()), 1,
                                                  from_.height, from_.width);
    if (from_.full_range) {
      for (float& value : frame.parts.seen.values) value = kBlack + kRange * value;
    }
    frame.bytes = std::move(bytes);
    return frame;
  }

  std::string finish(const Frame& frame, Planes seen) const {
    if (from_.rgb) {
      const data::Image image = inference::picture_of(inference::joined(seen, frame.parts, enlarger_));
      return {image.values.begin(), image.values.end()};
    }
    if (from_.full_range) {
      for (float& value : seen.values) value = (value - kBlack) / kRange;
    }
    std::string bytes = to_.frame_header();
    const auto append = [&](const Planes& plane, const FrameFormat::Plane& kept) {
      const std::vector<uint8_t> values = data::to_bytes(plane.values);
      for (int64_t y = 0; y < kept.height; ++y) {
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(y) * plane.width;
        bytes.append(first, first + kept.width);
      }
    };
    const std::vector<FrameFormat::Plane> from = from_.planes(), to = to_.planes();
    append(seen, to[0]);
    std::size_t at = from[0].bytes();
    for (std::size_t i = 1; i < from.size(); at += from[i++].bytes()) {
      const auto values = std::span(frame.bytes).subspan(at, from[i].bytes());
      // A pixel too many where the sides of luma are odd.
      append(enlarger_.bicubic(inference::planes_of_bytes(values, 1, from[i].height, from[i].width)), to[i]);
    }
    return bytes;
  }

  const FrameFormat& result() const { return to_; }

 private:
  FrameFormat from_, to_;
  const Enlarger& enlarger_;
};

void require_colours(const FrameFormat& format, const Enlarger& enlarger) {
  if (format.rgb || enlarger.settings().colours == ColourPlanes::luma) return;
  throw Error(
      "the model enlarges red, green and blue, and the frames are luma with two differences of colour; give "
      "raw RGB, as with ffmpeg -f rawvideo -pix_fmt rgb24, and --frames",
      ExitCode::usage);
}

}  // namespace

UpscaledFrames upscale_frames(const TrainedModel& model, const FrameRequest& request, std::istream& from,
                              const std::function<void(std::string_view)>& write) {
  Enlarger enlarger(model, request.tile, request.overlap);
  inference::FrameReader reader(from, request.rgb);
  require_colours(reader.format(), enlarger);
  const FrameUpscaler upscaler(reader.format(), enlarger);
  const FrameFormat& result = upscaler.result();
  write(result.header());
  UpscaledFrames done{.height = result.height, .width = result.width};
  const auto read = [&]() -> std::optional<Frame> {
    std::vector<uint8_t> bytes;
    if (!reader.next(bytes)) return std::nullopt;
    return upscaler.prepare(std::move(bytes));
  };
  std::future<void> written;
  std::future<std::optional<Frame>> next = std::async(std::launch::async, read);
  while (std::optional<Frame> frame = next.get()) {
    next = std::async(std::launch::async, read);
    inference::EnlargingWork work;
    Planes seen = enlarger.enlarge(frame->parts.seen, work);
    done.seconds += work.seconds;
    if (done.frames++ == 0 && !work.note.empty()) done.notes.push_back(work.note);
    if (written.valid()) written.get();
    written = std::async(std::launch::async, [&, seen = std::move(seen), frame = std::move(*frame)]() mutable {
      write(upscaler.finish(frame, std::move(seen)));
    });
  }
  if (written.valid()) written.get();
  return done;
}

UpscaledFrames upscale_frames(const TrainedModel& model, const FrameRequest& request, std::istream& from,
                              const std::filesystem::path& to) {
  require_writable(to);
  UpscaledFrames done;
  write_atomically(to, [&](OutputFile& file) {
    done = upscale_frames(model, request, from, [&](std::string_view bytes) { file.write(bytes); });
  });
  return done;
}

}  // namespace gpunn
