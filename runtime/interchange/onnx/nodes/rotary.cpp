#include <cstdint>
#include <limits>

#include "interchange/onnx/operands.hpp"

namespace gpunn::interchange {

namespace {

Value part(Call& call, const Value& x, int64_t first, int64_t end, int64_t step = 1) {
  return call.apply("Slice", {x, integers({first}), integers({end}), integers({-1}), integers({step})});
}

// Turns pairs of features by the angle of a token's place, whose cosines and sines the file has.
// Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.
void rotary_embedding(Call& call) {
  const Value& x = call.input(0);
  const bool has_heads = x.shape.size() == 4;  // [N, heads, tokens, features], else [N, tokens, heads * features]
  const int64_t heads = call.integer("num_heads", 0);
  if (!has_heads && (x.shape.size() != 3 || heads < 1 || x.shape[2].factor % heads != 0)) {
    throw Unsupported("takes " + to_string(x.shape) + "; expected [N, heads, tokens, features], or heads that " +
                      "num_heads counts");
  }
  const Value tokens = has_heads ? call.apply("Transpose", {x}, {attribute("perm", {0, 2, 1, 3})})
                                 : call.apply("Reshape", {x, integers({0, 0, heads, x.shape[2].factor / heads})});
  const int64_t features = tokens.shape[3].factor, given = call.integer("rotary_embedding_dim", 0);
  const int64_t turned = given == 0 ? features : given, half = turned / 2;
  if (turned < 2 || turned > features || turned % 2 != 0) {
    throw Unsupported("turns " + std::to_string(turned) + " of " + std::to_string(features) + " features");
  }
  const auto of_tokens = [&](std::size_t i) {
    const Value angles = call.has(3) ? call.apply("Gather", {call.input(i), call.input(3)}) : call.input(i);
    return call.apply("Unsqueeze", {angles, integers({2})});
  };
  const Value cosine = of_tokens(1), sine = of_tokens(2);
  const bool is_interleaved = call.integer("interleaved", 0) != 0;
  const Value a = is_interleaved ? part(call, tokens, 0, turned, 2) : part(call, tokens, 0, half);
  const Value b = is_interleaved ? part(call, tokens, 1, turned, 2) : part(call, tokens, half, turned);
  const auto product = [&](const Value& one, const Value& other) { return call.apply("Mul", {one, other}); };
  Value real = call.apply("Sub", {product(cosine, a), product(sine, b)});
  Value imaginary = call.apply("Add", {product(sine, a), product(cosine, b)});
  if (is_interleaved) {
    real = call.apply("Unsqueeze", {real, integers({-1})});
    imaginary = call.apply("Unsqueeze", {imaginary, integers({-1})});
  }
  Value y = call.apply("Concat", {real, imaginary}, {attribute("axis", -1)});
  if (is_interleaved) y = call.apply("Reshape", {y, integers({0, 0, 0, turned})});
  if (turned < features) {
    const Value rest = part(call, tokens, turned, std::numeric_limits<int64_t>::max());
    y = call.apply("Concat", {y, rest}, {attribute("axis", -1)});
  }
  call.give(has_heads ? call.apply("Transpose", {y}, {attribute("perm", {0, 2, 1, 3})})
                      : call.apply("Reshape", {y, integers({0, 0, -1})}));
}

}  // namespace

std::vector<OpRow> rotary_rows() { return {{"RotaryEmbedding", 23, rotary_embedding}}; }

}  // namespace gpunn::interchange
