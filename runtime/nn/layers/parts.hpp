// Parts of which several layers are built.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/expressions.hpp"
#include "nn/layers.hpp"

namespace gpunn::nn {

// A number for each dimension of [C, ...] but the channels: of lines, images [rows, columns], or volumes [planes, rows,
// columns]. Margins are two numbers for each: top, bottom, left, right.
using Sizes = std::vector<int64_t>;
using Margins = std::vector<int64_t>;

// Throws Error of a model that can't be built; the caller adds the layer and its place.
[[noreturn]] void fail(const std::string& message);

// Both throw unless the shape has this many dimensions: "expected an input of [N, features], found [1, 2, 3]; hint".
void require_rank(const Shape& shape, std::size_t rank, const char* expected, const char* hint);
void require_image(const Shape& shape);
// [N, C, ...] of lines, images or volumes. The number of dimensions behind the channels.
std::size_t require_space(const Shape& shape);

// Throws unless the channels of x[N,C,...] are a multiple of the number; `what` says where the number is from:
// "groups".
void require_channels_in_multiple(const Shape& x, int64_t of, const char* what);

std::string by(const Sizes& sizes);              // "3x5"
std::string by_margins(const Margins& margins);  // likewise where both sides are equal, else "[1, 2, 3, 4]"
void copy(const Sizes& from, int32_t (&to)[2]);

// The sizes of the output of a window of `reach` that slides over x[N,C,...]; throws if it does not fit.
Sizes slide(const Shape& x, const Sizes& reach, const Sizes& stride, const Margins& padding, const char* what);

// Ops' attributes can express margins only if opposite sides are equal.
bool is_symmetric(const Margins& margins);
// x[N,C,...] with zeros around it.
graph::ValueId padded(const LayerContext& c, graph::ValueId x, const Margins& margins);

// One behind the other along a dimension, as many at a time as the op takes.
graph::ValueId joined(graph::Expressions& e, std::vector<graph::ValueId> parts, std::size_t dimension);

// What each element of a window sees of a dimension of x: `window` values of `count` elements. Element i of value j is
// x[i * stride + j * dilation]; beyond its end x is taken to be 0.
std::vector<graph::ValueId> taps(const LayerContext& c, graph::ValueId x, std::size_t dimension, int64_t window,
                                 int64_t dilation, int64_t stride, int64_t count);

// Which dimensions of [C, ...] the rows and the columns of an image stand for; none: others, or no dimension.
using ImageDimensions = std::array<std::optional<std::size_t>, 2>;
// Those of sizes, or `otherwise` where the image has none of them.
Sizes of_image(const Sizes& sizes, const ImageDimensions& dimensions, int64_t otherwise);
Margins margins_of_image(const Margins& margins, const ImageDimensions& dimensions);
// Ops take images: `step` is applied to x[N,C,...] as images, for volumes to rows and columns, then to planes.
graph::ValueId over_images(const LayerContext& c, graph::ValueId x,
                           const std::function<graph::ValueId(graph::ValueId, const ImageDimensions&)>& step);

// The same numbers in another shape; x itself if it has that shape.
graph::ValueId view(const LayerContext& c, graph::ValueId x, const Shape& shape);

// Throws unless all inputs have one shape, but for sizes of 1.
void require_broadcast(const LayerContext& c);

// The dimensions, the batch's included, in another order.
graph::ValueId permuted(const LayerContext& c, graph::ValueId x, const std::vector<int32_t>& order);

// Of f32, towards 0, down, and to the nearest with halves to the even number. Nothing flows back through the numbers.
graph::ValueId whole(graph::Expressions& e, graph::ValueId x);
graph::ValueId floor(graph::Expressions& e, graph::ValueId x);
graph::ValueId rounded(graph::Expressions& e, graph::ValueId x);

// 0, 1, 2, ... along a dimension of so many dimensions, all others being 1.
graph::ValueId places_along(graph::Expressions& e, std::size_t rank, std::size_t dimension, int64_t size);

// Images of x with their rows and columns multiplied; `mode` is a gpunn_upsampling.
graph::ValueId enlarge(const LayerContext& c, graph::ValueId x, const Sizes& factor, int32_t mode);

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
