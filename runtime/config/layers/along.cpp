// Layers that work along one dimension of a sample.
#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

std::vector<LayerType> along_layers() {
  using V = LayerValue;
  const LayerKey dimension = {
      "dimension", V::integer, "0", between(0, kMostDimensions - 1), {}, "Of the sample, counted from 0."};
  constexpr double kMostPlaces = 128;
  return {
      {"gather",
       "The entries of a dimension at constant places, `from: [x, places]`; a negative place gives zeros.",
       2,
       {dimension}},
      {"cumsum",
       "The sum of all entries of a dimension up to each entry.",
       1,
       {dimension,
        {"exclusive", V::boolean, "false", {}, {}, "Whether an entry's own value stays out of its sum."},
        {"reverse", V::boolean, "false", {}, {}, "Whether sums run from the last entry to the first."}}},
      {"arg_max",
       "The place of the largest entry of a dimension, which stays with a size of 1. Training passes no gradient "
       "through it.",
       1,
       {dimension, {"last", V::boolean, "false", {}, {}, "Whether the last of equal entries counts, not the first."}}},
      {"top_k",
       "The largest entries of a dimension, from the largest on, or their places. Of equal ones the first come first.",
       1,
       {dimension,
        {"count", V::integer, "", between(1, kMostPlaces), {}, "Number of entries."},
        {"places", V::boolean, "false", {}, {}, "Whether the places are given instead of the entries."}}},
  };
}

}  // namespace gpunn::config
