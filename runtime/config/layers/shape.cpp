#include <algorithm>

#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

namespace {

std::string check_reshape(const LayerArguments& arguments) {
  const std::vector<int64_t> shape = arguments.list("shape");
  if (std::count(shape.begin(), shape.end(), 0) != 0) return "shape: a size must be above 0, or -1 for what is left";
  if (std::count(shape.begin(), shape.end(), -1) > 1) return "shape: only one size can be what is left, -1";
  return {};
}

std::string check_transpose(const LayerArguments& arguments) {
  std::vector<int64_t> sorted = arguments.list("permutation");
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) {
      return "permutation: expected each of 0 to " + std::to_string(sorted.size() - 1) + " once";
    }
  }
  return {};
}

}  // namespace

std::vector<LayerType> shape_layers() {
  using V = LayerValue;
  return {
      {"flatten", "All dimensions as one, in front of `linear`.", 1, {}},
      {"reshape",
       "The same numbers, in their order, as a sample of another shape.",
       1,
       {{"shape",
         V::list,
         "",
         between(-1, kMostUnits),
         {},
         "Sizes of the sample's dimensions; one may be -1: the rest."}},
       check_reshape},
      {"transpose",
       "A sample's dimensions in another order.",
       1,
       {{"permutation",
         V::list,
         "",
         between(0, kMostDimensions - 1),
         {},
         "For each dimension of the output its number in the input, from 0."}},
       check_transpose},
      {"expand",
       "Sizes of 1 of a sample, repeated.",
       1,
       {{"shape", V::list, "", between(1, kMostUnits), {}, "The sizes of all dimensions of a sample."}}},
      {"pad",
       "[C, L], [C, H, W] or [C, D, H, W] with a border around it.",
       1,
       {{"padding", V::margins, "", kMargin, {}, "Rows and columns on each side.", 0},
        {"mode",
         V::choice,
         "zeros",
         {},
         {"zeros", "reflect"},
         "The border: zeros, or an image mirrored at its outermost pixels."}}},
      {"slice",
       "Neighbours in a dimension of a sample: x[..., start : start + size, ...].",
       1,
       {{"dimension", V::integer, "0", between(0, kMostDimensions - 1), {}, "Its number, from 0."},
        {"start", V::integer, "0", between(0, kMostUnits), {}, "First element that stays."},
        {"size", V::integer, "1", between(1, kMostUnits), {}, "How many stay."}}},
      {"pixel_shuffle",
       "[C * factor^2, H, W] as an image of [C, H * factor, W * factor]. (Shi et al., 2016.)",
       1,
       {{"factor", V::integer, "", between(1, 64), {}, "How much larger rows and columns become."}}},
  };
}

}  // namespace gpunn::config
