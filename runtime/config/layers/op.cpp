// Any op of the catalogue, and constants for it.
#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

std::vector<LayerType> op_layers() {
  using V = LayerValue;
  constexpr int kMostInputs = 16;
  constexpr double kMostOutputs = 8;
  return {
      {"op",
       "An op of the catalogue. Its attributes are keys too. It sees whole tensors: dimension 0 is the batch.",
       1,
       {{"op", V::op, "", {}, {}, "Its name, such as reduce; the op pages list all, with their attributes."},
        {"output", V::integer, "0", between(0, kMostOutputs - 1), {}, "Which of its outputs is given, from 0."},
        {"dtype", V::choice, "f32", {}, {"f32", "bf16", "f16", "i32", "i64", "u8"}, "Of what `copy` gives."}},
       nullptr,
       kMostInputs,
       true},
      {"constant",
       "A tensor that is the same for all samples. It has no input; `add` and similar layers repeat it.",
       0,
       {{"shape", V::list, "", between(1, kMostUnits), {}, "Sizes of a sample's dimensions."},
        {"init", V::choice, "zeros", {}, {"zeros", "ones"}, "First values."},
        {"trained", V::boolean, "true", {}, {}, "Whether training changes it; otherwise it is kept as a buffer."}}},
  };
}

}  // namespace gpunn::config
