#pragma once

#include <gpunn/damaged.hpp>
#include <gpunn/export.h>
#include <gpunn/loss_config.hpp>
#include <gpunn/precision.hpp>
#include <gpunn/training.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpunn {

// An image that gets the content of one picture and the style of another (Gatys, Ecker and Bethge, 2016). Its pixels
// are what is trained: they minimise
//   content_weight * C + style_weight * S + variation_weight * V
// where C is the mean over the content layers of the mean squared difference of features, S the sum over the style
// layers of the mean squared difference of Gram matrices (divided by C * H * W), and V the mean squared difference of
// neighbouring pixels along rows plus that along columns, all of pixels from 0 to 1.
struct StylizeRequest {
  std::filesystem::path content, style, to;  // two pictures, and the PNG file to write
  std::string features = "vgg19";            // vgg19, squeezenet, drawn; or a run folder, a checkpoint, an ONNX file
  std::filesystem::path weights;             // of vgg19 and squeezenet; empty: looked for in $GPUNN_DATA_DIR
  FeatureColours colours = FeatureColours::centred;       // of these weights
  std::vector<std::string> content_layers, style_layers;  // empty: those that the network is known for
  int64_t steps = 500;
  std::string optimizer = "lbfgs";                     // or adam
  std::optional<double> learning_rate;                 // else 1 of lbfgs, 0.02 of adam
  int64_t history = 20;                                // of lbfgs
  std::optional<double> content_weight, style_weight;  // else the network's own
  double variation_weight = 0;
  bool original_colours = false;          // keep the content's colours: of the result the luma alone is taken
  bool from_noise = false;                // start from noise in place of the content
  uint64_t seed = 1;                      // of noise, and of drawn filters
  int64_t size = 512;                     // pixels that the longer side of the content is scaled to; 0: as it is
  int64_t style_size = 0;                 // the same of the style picture; 0: as the content's
  int64_t preview_every = 0;              // steps between two previews, NAME.step100.png beside the result; 0: none
  Precision precision = Precision::fp32;  // of the factors of products; not f16
  std::string backend = "auto";
  int64_t device = 0, threads = 0;
};

// The losses of a picture while it is painted.
struct StyleLosses {
  double total = 0, content = 0, style = 0, variation = 0;  // weighted
};

// How far a painting is, for progress.
struct StylizeReport {
  int64_t step = 0, steps = 0;
  StyleLosses losses;  // in front of the step
  double seconds = 0;
};

// A picture that was painted, and how its loss fell.
struct StylizedImage {
  std::filesystem::path to;
  int64_t height = 0, width = 0, steps = 0;
  StyleLosses first, last;         // of the start and of the result
  std::vector<double> history;     // the total in front of each step
  double seconds = 0;              // in the steps
  std::vector<std::string> notes;  // what the user should know
};

// Makes the picture and writes it. `report` is told some hundred times at most, `stop` is asked as often: true ends
// with what is there. Throws Error: missing where a file is not there, usage where options do not fit one another or a
// picture is too small or too large, diverged where the loss stays NaN or infinite.
GPUNN_API StylizedImage stylize(const StylizeRequest& request,
                                const std::function<void(const StylizeReport&)>& report = {},
                                const std::function<bool()>& stop = {});

// Images that a model of the task style_transfer paints, in one pass each.
struct PaintRequest {
  std::vector<std::filesystem::path> inputs;  // images, and folders of them
  std::filesystem::path to;                   // a PNG file for a single image, else a folder
  int64_t size = 0;                           // pixels that the longer side of each is scaled to; 0: as it is
  std::optional<int64_t> style;  // of a model of several: the only one to write, from 0; else NAME.style0.png and so on
  bool original_colours = false;
  Damaged damaged = Damaged::error;
  DamagedListener on_damaged = {};  // without it, Damaged::error throws once all others are answered
};

// An image that a trained network painted in one style.
struct PaintedImage {
  std::filesystem::path from, to;
  int64_t height = 0, width = 0, style = 0;
  double seconds = 0;              // in the model, for all styles
  std::vector<std::string> notes;  // what of the picture the result does not have
};

// Throws Error: usage where the model is of another task or files would replace one another, missing where an image is
// not there.
GPUNN_API std::vector<PaintedImage> paint(const TrainedModel& model, const PaintRequest& request);

}  // namespace gpunn
