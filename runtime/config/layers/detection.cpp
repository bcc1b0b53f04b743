#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

namespace {

constexpr int kMostLevels = 8;
constexpr double kMostStride = 1024, kMostDepth = 16, kMostBoxes = 10000;

std::string check_fcos_head(const LayerArguments& arguments) {
  const int64_t width = arguments.integer("width"), groups = arguments.integer("groups");
  if (groups > 0 && width % groups != 0) {
    return "width (" + std::to_string(width) + ") must be a multiple of groups (" + std::to_string(groups) + ")";
  }
  const std::vector<int64_t> strides = arguments.list("strides");
  for (std::size_t i = 1; i < strides.size(); ++i) {
    if (strides[i] <= strides[i - 1]) return "strides: expected each above the one before it";
  }
  return {};
}

}  // namespace

std::vector<LayerType> detection_layers() {
  using V = LayerValue;
  return {
      {"fcos_head",
       "Boxes, their centerness and classes at each pixel of the maps of a pyramid, [C, H, W] each, from the finest "
       "on: "
       "`from: [p3, p4, p5]`. The last layer of the task `detection`. (Tian et al., 2019.)",
       1,
       {{"classes", V::integer, "", between(1, kMostChannels), {}, "Classes, at least as many as the data has."},
        {"strides", V::list, "", between(1, kMostStride), {}, "By how much the image is larger than each map."},
        {"width", V::integer, "128", between(1, kMostChannels), {}, "Channels of the convolutions."},
        {"depth", V::integer, "2", between(0, kMostDepth), {}, "Convolutions in front of each of the two answers."},
        {"groups",
         V::integer,
         "16",
         between(0, kMostChannels),
         {},
         "Groups of channels that are normalised together (`group_norm`); 0: not at all."},
        {"radius",
         V::number,
         "1.5",
         above_up_to(0, kMostStride),
         {},
         "Pixels learn a box whose middle is less than so many of them away."},
        {"overlap",
         V::number,
         "0.6",
         between(0, 1),
         {},
         "Drop the less certain of two boxes of a class that overlap by more than this share."},
        {"least_score", V::number, "0.05", between(0, 1), {}, "Boxes that are less certain are dropped."},
        {"most", V::integer, "100", between(1, kMostBoxes), {}, "Boxes of an image at most."},
        init_key()},
       check_fcos_head,
       kMostLevels},
  };
}

}  // namespace gpunn::config
