#include "config/layers/families.hpp"

namespace gpunn::config {

std::vector<LayerType> choice_layers() {
  constexpr int kThree = 3;
  return {
      {"where",
       "The second of three layers where the first is not 0, else the third, as in `add`: `from: [condition, a, b]`.",
       kThree,
       {}},
      {"compare",
       "1 where two layers compare as `is` says, else 0, as in `add`. Training passes no gradient through it.",
       2,
       {{"is",
         LayerValue::choice,
         "equal",
         {},
         {"equal", "not_equal", "less", "less_or_equal", "greater", "greater_or_equal"},
         "What the first layer is, compared with the second."}}},
  };
}

}  // namespace gpunn::config
