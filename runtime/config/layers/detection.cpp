#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

namespace {

constexpr int kMostLevels = 8;
constexpr double kMostStride = 1024, kMostDepth = 16, kMostBoxes = 10000, kMostSide = 16384, kMostRatio = 8;

std::string check_rising(const LayerArguments& arguments, const char* key) {
  const std::vector<int64_t> numbers = arguments.list(key);
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] <= numbers[i - 1]) return std::string(key) + ": expected each above the one before it";
  }
  return {};
}

std::string check_fcos_head(const LayerArguments& arguments) {
  const int64_t width = arguments.integer("width"), groups = arguments.integer("groups");
  if (groups > 0 && width % groups != 0) {
    return "width (" + std::to_string(width) + ") must be a multiple of groups (" + std::to_string(groups) + ")";
  }
  return check_rising(arguments, "strides");
}

std::string check_ssd_head(const LayerArguments& arguments) {
  const std::size_t maps = arguments.list("strides").size();
  const std::size_t sizes = arguments.list("sizes").size(), ratios = arguments.list("ratios").size();
  if (sizes != maps + 1) {
    return "sizes: expected " + std::to_string(maps + 1) + " numbers, one for each map and one more, found " +
           std::to_string(sizes);
  }
  if (ratios != maps) {
    return "ratios: expected " + std::to_string(maps) + " numbers, one for each map, found " + std::to_string(ratios);
  }
  if (arguments.number("negative") > arguments.number("positive")) {
    return "negative must be at most positive";
  }
  const std::string wrong = check_rising(arguments, "strides");
  return wrong.empty() ? check_rising(arguments, "sizes") : wrong;
}

LayerKey overlap_key(const char* usual) {
  return {"overlap", LayerValue::number,
          usual,     between(0, 1),
          {},        "Drop the less certain of two boxes of a class that overlap by more than this share."};
}
LayerKey least_score_key(const char* usual) {
  return {"least_score", LayerValue::number, usual, between(0, 1), {}, "Boxes that are less certain are dropped."};
}
LayerKey most_key(const char* usual) {
  return {"most", LayerValue::integer, usual, between(1, kMostBoxes), {}, "Boxes of an image at most."};
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
        overlap_key("0.6"),
        least_score_key("0.05"),
        most_key("100"),
        init_key()},
       check_fcos_head,
       kMostLevels},
      {"ssd_head",
       "How boxes depart from anchors, and their classes, at each pixel of maps, [C, H, W] each, from the finest on. "
       "The last layer of the task `detection`. (Liu et al., 2016.)",
       1,
       {{"classes", V::integer, "", between(1, kMostChannels), {}, "Classes, at least as many as the data has."},
        {"strides", V::list, "", between(1, kMostSide), {}, "Pixels of the image between the anchors of each map."},
        {"sizes",
         V::list,
         "",
         between(1, kMostSide),
         {},
         "Sides of each map's square anchors in pixels, and one number more; a second square lies between a size and "
         "the next."},
        {"ratios",
         V::list,
         "",
         between(1, kMostRatio),
         {},
         "For each map the largest proportion of its anchors: 3 stands for 1, 2, 1/2, 3 and 1/3."},
        {"background",
         V::boolean,
         "true",
         {},
         {},
         "Whether to answer that there is nothing is a class of its own, for the loss `multibox`; false: each class is "
         "told by itself, for `focal`."},
        {"positive", V::number, "0.5", above_up_to(0, 1), {}, "Anchors learn a box that they overlap by this share."},
        {"negative", V::number, "0.5", above_up_to(0, 1), {}, "Anchors that overlap none by this share learn nothing."},
        overlap_key("0.45"),
        least_score_key("0.01"),
        most_key("200"),
        init_key()},
       check_ssd_head,
       kMostLevels},
      {"non_maximum_suppression",
       "Of boxes [P, 4] (left, top, right, bottom) and their scores [P, C], `from: [boxes, scores]`, those that no "
       "better one of their class overlaps: [most, 6], a box, its score and class, from the best on. Rows behind the "
       "last box are 0 with the class -1. Detectors from ONNX end in it; it is not trained.",
       2,
       {overlap_key("0.5"), least_score_key("0.05"), most_key("100")}},
  };
}

}  // namespace gpunn::config
