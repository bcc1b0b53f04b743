#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

namespace {

constexpr double kMostLength = 1e6;

std::string check_conditional(const LayerArguments& arguments) {
  const int64_t styles = arguments.integer("styles"), style = arguments.integer("style");
  return style < styles
             ? ""
             : "style: expected less than styles (" + std::to_string(styles) + "), found " + std::to_string(style);
}

}  // namespace

std::vector<LayerType> normalization_layers() {
  using V = LayerValue;
  return {
      {"batch_norm",
       "Each channel of [C, ...] to a mean of 0 and a variance of 1, then times a weight plus a bias for each channel: "
       "in training by the batch's own statistics, otherwise by running ones that training keeps.",
       1,
       {{"epsilon", V::number, "1e-5", between(0, 1), {}, "Added to the variance."},
        {"momentum", V::number, "0.1", between(0, 1), {}, "The newest batch's share of the running statistics."}}},
      {"layer_norm",
       "All of a sample's values to a mean of 0 and a variance of 1, then times a weight plus a bias for each.",
       1,
       {{"epsilon", V::number, "1e-5", between(0, 1), {}, "Added to the variance."},
        {"dimensions",
         V::integer,
         "0",
         between(0, kMostDimensions),
         {},
         "How many of a sample's last dimensions are normalised together; 0: all. 1 is for tokens."}}},
      {"group_norm",
       "As layer_norm over each of equal groups of the channels of [C, ...], with a weight and a bias for each "
       "channel.",
       1,
       {{"groups", V::integer, "32", between(1, kMostChannels), {}, "Groups of channels."},
        {"epsilon", V::number, "1e-5", between(0, 1), {}, "Added to the variance."},
        {"affine", V::boolean, "true", {}, {}, "Whether there are a weight and a bias."}}},
      {"instance_norm",
       "Each channel of each sample [C, ...] to a mean of 0 and a variance of 1.",
       1,
       {{"epsilon", V::number, "1e-5", between(0, 1), {}, "Added to the variance."},
        {"affine", V::boolean, "false", {}, {}, "Whether a weight and a bias for each channel follow."}}},
      {"l2_norm",
       "The channels of each pixel of [C, H, W] to a length of 1, then times `scale` and a weight for each channel. "
       "(Liu et al., 2015.)",
       1,
       {{"scale",
         V::number,
         "1",
         above_up_to(0, kMostLength),
         {},
         "The length, while the weights are 1 as they begin."}}},
      {"conditional_instance_norm",
       "As instance_norm, then times a weight plus a bias for each channel, of which each style has its own. (Dumoulin "
       "et al., 2017.)",
       1,
       {{"styles", V::integer, "1", between(1, kMostChannels), {}, "Number of styles."},
        {"style",
         V::integer,
         "-1",
         between(-1, kMostChannels),
         {},
         "Style to paint, from 0; -1: row r of a batch has style r modulo `styles`."},
        {"epsilon", V::number, "1e-5", between(0, 1), {}, "Added to the variance."}},
       check_conditional},
      {"local_response_norm",
       "x / (k + alpha / size * s)^beta, with s the sum of the squares of `size` neighbours in the channels of [C, "
       "...].",
       1,
       {{"size", V::integer, "5", between(1, kMostChannels), {}, "Channels, its own in the middle."},
        {"alpha", V::number, "1e-4", at_least(0), {}, "Factor of the mean square."},
        {"beta", V::number, "0.75", at_least(0), {}, "Exponent."},
        {"k", V::number, "1", above(0), {}, "Added to the sum."}}},
  };
}

}  // namespace gpunn::config
