// Where the batch of a value is. Layers give [N, row...]. In a file the batch may be any dimension ([S, N, D] of
// attention as PyTorch computes it), a part of one ([k*N, D] of tokens of all samples together), or none: then the
// whole value is of one sample, and the batch is outside of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

bool is_placed(const Value& x);  // elsewhere than in front

// The dimensions in another order.
Value moved(Call& call, const Value& x, const std::vector<int64_t>& permutation);
// Dimensions merged and split, in their order; nothing where that takes the batch apart.
std::optional<Value> regrouped(Call& call, const Value& x, const Sizes& to);
// Less dimensions of 1, or with more of them; `dimensions` are sorted.
Value squeezed(Call& call, const Value& x, const std::vector<int64_t>& dimensions);
Value unsqueezed(Call& call, const Value& x, const std::vector<int64_t>& dimensions);

BatchPlace place_of(const Value& x);
// Which dimension of [N, ...] a dimension of the file is; 0: the batch.
std::size_t dimension_with_batch_first(const BatchPlace& place, std::size_t dimension);
// The value as layers have it, [N, ...]: the other dimensions in their order, the part besides the batch one of them. A
// value without dimensions is a row of 1.
Value batch_first(Call& call, const Value& x);
// The reverse of it, for a value of `rank` dimensions.
Value placed(Call& call, const Value& x, const BatchPlace& place, std::size_t rank);
// A value whose first dimension is the batch, or is 1 and may stand for it.
Value one_as_batch(Call& call, const Value& x);
// The reverse of it.
Value batch_as_one(Call& call, const Value& x);
// A value with the batch outside of it, with the batch in the dimension of a place; as it is unless that is 1 and has
// no others.
Value with_batch_in(Call& call, const Value& x, const BatchPlace& place);
// The value with the batch outside of it; nothing where it is a dimension of more than the one row of a file.
std::optional<Value> outside(Call& call, const Value& x);

}  // namespace gpunn::interchange
