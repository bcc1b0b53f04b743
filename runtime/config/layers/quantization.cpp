#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

namespace {

constexpr double kMostStored = 65535;

LayerKey shape_key() {
  return {"shape", LayerValue::list,
          "1",     between(1, kMostUnits),
          {},      "Sizes of the buffers `scale` and `zero_point`, from the sample's last dimension backwards."};
}

std::string check_range(const LayerArguments& arguments) {
  return arguments.integer("low") < arguments.integer("high") ? "" : "low must be below high";
}

}  // namespace

std::vector<LayerType> quantization_layers() {
  using V = LayerValue;
  return {
      {"quantize",
       "x rounded to values that eight bits can store: (q - zero_point) * scale, q from 0 to 255. `gpunn quantize` "
       "places them.",
       1,
       {{"scale", V::number, "1", between(1e-30, 1e30), {}, "The value of one step of q."},
        {"zero_point", V::integer, "0", between(0, 255), {}, "The q that stands for 0."}}},
      {"quantize_linear",
       "The integers that stand for x: round(x / scale) + zero_point, ties to even, cut to `low` to `high`. Scale and "
       "zero point are buffers, which NumPy's rules broadcast to a sample.",
       1,
       {{"low", V::integer, "0", between(-kMostStored, kMostStored), {}, "The least integer."},
        {"high", V::integer, "255", between(-kMostStored, kMostStored), {}, "The largest integer."},
        shape_key()},
       check_range},
      {"dequantize_linear",
       "What integers stand for: (x - zero_point) * scale, with buffers as in `quantize_linear`.",
       1,
       {shape_key()}},
      {"dynamic_quantize",
       "x in integers from 0 to 255, by the least and the largest number of the whole batch, and 0: the integers, "
       "their scale or their zero point.",
       1,
       {{"gives",
         V::choice,
         "values",
         {},
         {"values", "scale", "zero_point"},
         "`scale`, `zero_point`: one number, in as many dimensions as x has."}}},
  };
}

}  // namespace gpunn::config
