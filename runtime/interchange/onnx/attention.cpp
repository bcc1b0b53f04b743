#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

// [N, heads, tokens, features] of it as it is, or of [N, tokens, heads * features].
Value by_head(Call& call, std::size_t i, const char* heads_attribute) {
  const Value& x = call.data(i);
  const Shape row = call.sample(i);
  if (row.size() == 3) return x;
  const int64_t heads = call.integer(heads_attribute, 0);
  if (row.size() != 2 || heads < 1 || row[1] % heads != 0) {
    throw Unsupported("takes " + to_string(x.shape) + "; expected [N, heads, tokens, features], or heads that " +
                      heads_attribute + " counts");
  }
  return call.transposed(call.reshaped(x, {row[0], heads, row[1] / heads}), {1, 0, 2});
}

// What is added to the scores: the numbers of a mask, or -inf where it is false.
Constant terms_of(const Constant& mask) {
  if (is_floating(mask.element)) return mask;
  std::vector<float> terms;
  for (const Size& size : mask.integers) {
    terms.push_back(size.factor != 0 ? 0 : -std::numeric_limits<float>::infinity());
  }
  return floats_constant(mask.shape, std::move(terms));
}

// Each query sees the keys up to its own.
Constant causal_terms(Call& call, int64_t queries, int64_t keys) {
  std::vector<float> terms(static_cast<std::size_t>(call.importer().take_room({queries, keys})), 0);
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = i + 1; j < keys; ++j) {
      terms[static_cast<std::size_t>(i * keys + j)] = -std::numeric_limits<float>::infinity();
    }
  }
  return floats_constant({queries, keys}, std::move(terms));
}

Value with_terms(Call& call, const Value& scores, const Constant& terms) {
  const Shape row = row_of(scores);
  Shape shape = terms.shape;
  while (!shape.empty() && shape.front() == 1) shape.erase(shape.begin());
  bool fits = shape.size() <= row.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) {
    fits = shape[i] == 1 || shape[i] == row[row.size() - shape.size() + i];
  }
  if (!fits || shape.empty()) {
    throw Unsupported("its mask is " + gpunn::to_string(terms.shape) + ", of scores " + to_string(scores.shape));
  }
  if (hides_a_row(terms)) throw Unsupported("its mask hides all keys from a query");
  Value y = call.layer("affine", {&scores}, {{"shape", texts(shape)}, {"weight", {"false"}}, {"trained", {"false"}}},
                       row, "mask");
  call.set_tensor(y, "bias", shape, terms);
  return y;
}

// softmax(scale * q k' + mask) v in each head.
void attention(Call& call) {
  call.require_first_output_alone("gives keys, values or scores, which layers don't");
  for (std::size_t i = 4; i < call.count(); ++i) {
    if (call.has(i)) throw Unsupported("takes keys and values of earlier calls, or counts of them");
  }
  constexpr std::string_view kRead[] = {"is_causal", "kv_num_heads", "q_num_heads",      "qk_matmul_output_mode",
                                        "scale",     "softcap",      "softmax_precision"};
  for (const Attribute& attribute : call.node().attributes) {
    if (std::ranges::find(kRead, attribute.name) == std::end(kRead)) {
      throw Unsupported("its attribute " + attribute.name + " is not read");
    }
  }
  if (call.number("softcap", 0) != 0) throw Unsupported("bounds its scores");
  // Together they may hide all keys from a query.
  if (call.has(3) && call.integer("is_causal", 0) != 0) throw Unsupported("has a mask and is causal");
  const Value q = by_head(call, 0, "q_num_heads"), k = by_head(call, 1, "kv_num_heads"),
              v = by_head(call, 2, "kv_num_heads");
  const Shape queries = row_of(q), keys = row_of(k), values = row_of(v);
  if (queries[0] != keys[0] || keys[0] != values[0] || queries[2] != keys[2] || keys[1] != values[1]) {
    throw Unsupported("takes values of " + to_string(q.shape) + ", " + to_string(k.shape) + " and " +
                      to_string(v.shape) + "; expected equal heads, and a value for each key");
  }
  const double scale = call.number("scale", 1 / std::sqrt(static_cast<double>(queries[2])));
  const Value scaled = call.scaled(q, scale), turned = call.transposed(k, {0, 2, 1});
  const Shape by_key = {queries[0], queries[1], keys[1]};
  Value scores = call.layer("matmul", {&scaled, &turned}, {}, by_key, "scores");
  if (call.has(3)) scores = with_terms(call, scores, terms_of(call.constant(3, "the mask")));
  if (call.integer("is_causal", 0) != 0) {
    scores = with_terms(call, scores, causal_terms(call, queries[1], keys[1]));
  }
  const Value weights = call.layer("softmax", {&scores}, {{"over", {"last"}}}, by_key, "weights");
  const Value y = call.layer("matmul", {&weights, &v}, {}, {queries[0], queries[1], values[2]});
  if (call.sample(0).size() == 3) return call.give(y);
  call.give(call.reshaped(call.transposed(y, {1, 0, 2}), {queries[1], queries[0] * values[2]}));
}

}  // namespace

std::vector<OpRow> attention_rows() { return {{"Attention", 23, attention, BatchIn::front}}; }

}  // namespace gpunn::interchange
