// Values whose batch is not the first dimension by itself: [S, N, D] of attention as PyTorch computes it, or [k*N, D]
// of tokens of all samples together. Layers give [N, ...]; such a value says where each of these dimensions went.
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
// The value as layers have it, [N, ...]: the other dimensions in their order, `others` one of them.
Value batch_first(Call& call, const Value& x);
// The reverse of it.
Value placed(Call& call, const Value& x, const BatchPlace& place);

}  // namespace gpunn::interchange
