#pragma once

#include <gpunn/damaged.hpp>
#include <gpunn/export.h>
#include <gpunn/training.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// Which images are enlarged, and where they go.
struct UpscaleRequest {
  std::vector<std::filesystem::path> inputs;  // images, and folders of them
  std::filesystem::path to;                   // a PNG file for a single image, else a folder
  // Rows and columns that the model gets at once; larger images go in parts. 0: any size at once. Default: 512, or the
  // whole image if the model sees all of it.
  std::optional<int64_t> tile = {};
  // Rows and columns on each side of a part that are computed and not used. Default: what the model's layers see, so
  // that the result is that of the whole image.
  std::optional<int64_t> overlap = {};
  bool compare = false;  // beside each result a picture of bicubic and the result, side by side: NAME.compare.png
  Damaged damaged = Damaged::error;
  DamagedListener on_damaged = {};  // without it, Damaged::error throws once all others are answered
};

// An image that was enlarged.
struct UpscaledImage {
  std::filesystem::path from, to;
  int64_t height = 0, width = 0;  // of the result
  int64_t tiles = 0;
  double seconds = 0;                   // in the model
  std::vector<std::string> notes = {};  // for the user: of parts that differ from the whole image, and of its colours
};

// Enlarges images by a model of the task super_resolution, and writes them as PNG. Grey images stay grey, and how
// opaque pixels are is enlarged by bicubic. Throws Error: usage where the model is of another task or files would
// replace one another, missing where an image is not there.
GPUNN_API std::vector<UpscaledImage> upscale(const TrainedModel& model, const UpscaleRequest& request);

// Of raw frames, in pixels.
struct FrameSize {
  int64_t width = 0, height = 0;
};

// How the frames of a stream are enlarged.
struct FrameRequest {
  std::optional<FrameSize>
      rgb;  // the stream is raw frames of this size, a byte for red, green and blue; else it is Y4M
  std::optional<int64_t> tile = 0, overlap = {};  // as in UpscaleRequest
};

// A stream that was enlarged.
struct UpscaledFrames {
  int64_t frames = 0;
  int64_t height = 0, width = 0;  // of each result
  double seconds = 0;             // in the model
  std::vector<std::string> notes = {};
};

// Enlarges the frames of a stream by a model of the task super_resolution. `write` gets the result piece by piece, in
// the form of the stream: raw RGB, or Y4M in the same sampling of colours and with the same tags. Of Y4M the model
// enlarges luma, and bicubic the other planes; frames have values of 8 bits and are not interlaced. `write` is called
// by one thread at a time. Throws Error: usage where the stream is of another form or the model of another task or of
// colours that the stream does not have.
GPUNN_API UpscaledFrames upscale_frames(const TrainedModel& model, const FrameRequest& request, std::istream& from,
                                        const std::function<void(std::string_view)>& write);

// The same into a file, which is as it was until all is there.
GPUNN_API UpscaledFrames upscale_frames(const TrainedModel& model, const FrameRequest& request, std::istream& from,
                                        const std::filesystem::path& to);

}  // namespace gpunn
