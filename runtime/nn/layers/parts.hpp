// Parts of which several layers are built.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nn/layers.hpp"

namespace gpunn::nn {

using Pair = std::array<int64_t, 2>;     // rows, columns
using Margins = std::array<int64_t, 4>;  // top, bottom, left, right

// Throws Error of a model that can't be built; the caller adds the layer and its place.
[[noreturn]] void fail(const std::string& message);

// Both throw unless the shape has this many dimensions: "expected an input of [N, features], found [1, 2, 3]; hint".
void require_rank(const Shape& shape, std::size_t rank, const char* expected, const char* hint);
void require_image(const Shape& shape);

// Throws unless the channels of x[N,C,H,W] are a multiple of the number; `what` says where the number is from:
// "groups".
void require_channels_in_multiple(const Shape& x, int64_t of, const char* what);

std::string by(const Pair& pair);        // "3x5"
std::string by(const Margins& margins);  // likewise where both sides are equal, else "[1, 2, 3, 4]"
void copy(const Pair& from, int32_t (&to)[2]);

// Output rows and columns of a window of `reach` that slides over x[N,C,H,W]; throws if it does not fit.
Pair slide(const Shape& x, const Pair& reach, const Pair& stride, const Margins& padding, const char* what);

// Ops' attributes can express margins only if opposite sides are equal.
bool is_symmetric(const Margins& margins);
// x[N,C,H,W] with zeros around it.
graph::ValueId padded(const LayerContext& c, graph::ValueId x, const Margins& margins);

// The same numbers in another shape; x itself if it has that shape.
graph::ValueId view(const LayerContext& c, graph::ValueId x, const Shape& shape);

// Images of x with their rows and columns multiplied; `mode` is a gpunn_upsampling.
graph::ValueId enlarge(const LayerContext& c, graph::ValueId x, const Pair& factor, int32_t mode);

// Whether drop() leaves values out: in training, unless p is 0.
bool drops(const LayerContext& c, double p);
// x with values dropped as by the layer `dropout`; x itself if none are.
graph::ValueId drop(const LayerContext& c, graph::ValueId x, double p);

// The sums of each row of x[N,K] weighted by each row of w[M,K]: [N,M].
graph::ValueId weighted_sums(const LayerContext& c, graph::ValueId x, graph::ValueId w);

// Appends the activation of a name, "none" included.
graph::ValueId activate(const LayerContext& c, std::string_view activation, graph::ValueId x);

// A layer's weight, by its key `init`. fan_in and fan_out: the inputs of one output, and the outputs of one input.
Parameter weight(const LayerContext& c, Shape shape, int64_t fan_in, int64_t fan_out);

// The tensor of that weight. By the key `int8_weight`, the weights of each output are rounded to multiples of a step,
// so that an engine can store them in eight bits.
graph::ValueId weight_tensor(const LayerContext& c, const Parameter& weight);

// The end of layers of weighted sums: their keys `bias` and `activation`.
graph::ValueId add_bias_and_activation(const LayerContext& c, graph::ValueId y, int64_t channels, int64_t fan_in);

}  // namespace gpunn::nn
