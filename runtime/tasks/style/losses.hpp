// The losses of style transfer (Gatys, Ecker and Bethge, 2016), as formulas over what the layers of a network give.
#pragma once

#include "graph/expressions.hpp"

namespace gpunn::tasks {

// Of features f32[N, C, H, W] the Gram matrix of each row, f32[N, C, C]: the sums over all places of the products of
// two channels, divided by C * H * W.
graph::ValueId gram_matrix(graph::Expressions& e, graph::ValueId features);

// The mean of the squared differences of each row, f32[N]. `target` has as many rows, or one for all.
graph::ValueId mean_square(graph::Expressions& e, graph::ValueId x, graph::ValueId target);

// Of images f32[N, C, H, W] the mean squared difference of neighbours in a column, plus that of neighbours in a row,
// f32[N]. A line of a single pixel has none.
graph::ValueId total_variation(graph::Expressions& e, graph::ValueId images);

}  // namespace gpunn::tasks
