#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>

#include "interchange/onnx/dimensions.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/operands.hpp"

namespace gpunn::interchange {

namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// [N, heads, tokens, features] of it as it is, or of [N, tokens, heads * features].
Value by_head(Call& call, std::size_t i, const char* heads_attribute) {
  const Value& x = call.input(i);
  if (x.shape.size() == 4) return x;
  const int64_t heads = call.integer(heads_attribute, 0);
  if (x.shape.size() != 3 || heads < 1 || x.shape[2].factor % heads != 0) {
    throw Unsupported("takes " + to_string(x.shape) + "; expected [N, heads, tokens, features], or heads that " +
                      heads_attribute + " counts");
  }
  const Value apart = call.apply("Reshape", {x, integers({0, 0, heads, x.shape[2].factor / heads})});
  return call.apply("Transpose", {apart}, {attribute("perm", {0, 2, 1, 3})});
}

// Each head of keys and values as often as there are heads of queries for it.
Value for_each_query_head(Call& call, const Value& x, int64_t query_heads) {
  const int64_t heads = x.shape[1].factor;
  if (heads == query_heads) return x;
  if (heads < 1 || query_heads % heads != 0) throw Unsupported("its heads of queries are no multiple of those of keys");
  std::vector<int64_t> places;
  for (int64_t i = 0; i < query_heads; ++i) places.push_back(i / (query_heads / heads));
  return call.apply("Gather", {x, integers(places)}, {attribute("axis", 1)});
}

// The keys that a query sees by its place: those up to its own, or in a window around it. `first`: the place of the
// first query among the keys.
std::optional<Value> terms_by_place(Call& call, int64_t queries, int64_t keys, int64_t first) {
  const bool is_causal = call.integer("is_causal", 0) != 0;
  const int64_t left = call.integer("left_window_size", -1), right = call.integer("right_window_size", -1);
  if (!is_causal && left < 0 && right < 0) return std::nullopt;
  std::vector<float> terms(static_cast<std::size_t>(call.importer().take_room({queries, keys})), 0);
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t ahead = j - (i + first);
      const bool is_hidden = (is_causal && ahead > 0) || (left >= 0 && -ahead > left) || (right >= 0 && ahead > right);
      if (is_hidden) terms[static_cast<std::size_t>(i * keys + j)] = kMinusInfinity;
    }
  }
  return constant_value(floats_constant({queries, keys}, std::move(terms)));
}

// What a mask adds to the scores. One of fewer keys hides the others.
Value terms_of_mask(Call& call, const Value& mask, int64_t keys) {
  Value terms =
      mask.element == Element::boolean ? call.apply("Where", {mask, number(0), number(kMinusInfinity)}) : mask;
  const int64_t missing = keys - terms.shape.back().factor;
  if (missing <= 0) return terms;
  std::vector<int64_t> pads(2 * terms.shape.size(), 0);
  pads.back() = missing;
  return call.apply("Pad", {terms, integers(pads), number(kMinusInfinity)});
}

// Hides the keys behind the number that each sample has.
Value terms_of_counts(const std::vector<int64_t>& counts, int64_t keys) {
  std::vector<float> terms;
  for (const int64_t count : counts) {
    for (int64_t j = 0; j < keys; ++j) terms.push_back(j < count ? 0 : kMinusInfinity);
  }
  return constant_value(floats_constant({std::ssize(counts), 1, 1, keys}, std::move(terms)));
}

void require_known_attributes(const Call& call) {
  constexpr std::string_view kRead[] = {"is_causal",   "kv_num_heads",      "left_window_size",
                                        "q_num_heads", "right_window_size", "qk_matmul_output_mode",
                                        "scale",       "softcap",           "softmax_precision"};
  for (const Attribute& attribute : call.node().attributes) {
    if (std::ranges::find(kRead, attribute.name) == std::end(kRead)) {
      throw Unsupported("its attribute " + attribute.name + " is not read");
    }
  }
}

// What masks of all kinds add to the scores.
std::optional<Value> all_terms(Call& call, int64_t queries, int64_t keys, int64_t past) {
  std::vector<Value> parts;
  int64_t first = past;
  if (call.has(6)) {
    const std::vector<int64_t> counts = call.integers(6, "the numbers of keys");
    parts.push_back(terms_of_counts(counts, keys));
    const bool is_one = std::ranges::adjacent_find(counts, std::ranges::not_equal_to()) == counts.end();
    const bool by_place = call.integer("is_causal", 0) != 0 || call.integer("left_window_size", -1) >= 0 ||
                          call.integer("right_window_size", -1) >= 0;
    if (by_place && !is_one) throw Unsupported("its samples have different numbers of keys, and are causal");
    if (!counts.empty()) first = counts.front() - queries;
  }
  if (call.has(3)) parts.push_back(terms_of_mask(call, call.input(3), keys));
  if (const std::optional<Value> by_place = terms_by_place(call, queries, keys, first)) parts.push_back(*by_place);
  if (parts.empty()) return std::nullopt;
  Value all = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) all = call.apply("Add", {all, parts[i]});
  return all;
}

// The softmax of the scores; a query from which all keys are hidden gets nothing.
Value weights_of(Call& call, const Value& scores, const std::optional<Value>& terms) {
  Value weights = call.apply("Softmax", {scores}, {attribute("axis", -1)});
  if (!terms || (terms->constant && !hides_a_row(as_floats(*terms->constant)))) return weights;
  const Value most = call.apply("ReduceMax", {*terms, integers({-1})});
  const Value is_hidden = call.apply("Equal", {most, number(kMinusInfinity)});
  return call.apply("Where", {is_hidden, number(0), weights});
}

// softmax(scale * q k' + mask) v in each head.
void attention(Call& call) {
  require_known_attributes(call);
  const Value q = by_head(call, 0, "q_num_heads");
  Value k = by_head(call, 1, "kv_num_heads"), v = by_head(call, 2, "kv_num_heads");
  int64_t past = 0;
  if (call.has(4) != call.has(5)) throw Unsupported("takes keys of earlier calls without values, or the reverse");
  if (call.has(4)) {
    past = call.input(4).shape.size() == 4 ? call.input(4).shape[2].factor : 0;
    k = call.apply("Concat", {call.input(4), k}, {attribute("axis", 2)});
    v = call.apply("Concat", {call.input(5), v}, {attribute("axis", 2)});
  }
  call.give(1, k);
  call.give(2, v);
  const int64_t heads = q.shape[1].factor, queries = q.shape[2].factor, keys = k.shape[2].factor;
  const bool fits = q.shape[3] == k.shape[3] && v.shape[2].factor == keys && k.shape[1] == v.shape[1];
  if (!fits) {
    throw Unsupported("takes values of " + to_string(q.shape) + ", " + to_string(k.shape) + " and " +
                      to_string(v.shape) + "; expected equal features, and a value for each key");
  }
  const double scale = call.number("scale", 1 / std::sqrt(static_cast<double>(q.shape[3].factor)));
  const Value root = number(static_cast<float>(std::sqrt(scale)));
  const Value scaled_q = call.apply("Mul", {q, root});
  const Value scaled_k = call.apply("Mul", {for_each_query_head(call, k, heads), root});
  const Value turned = call.apply("Transpose", {scaled_k}, {attribute("perm", {0, 1, 3, 2})});
  Value scores = call.apply("MatMul", {scaled_q, turned});
  const int64_t mode = call.integer("qk_matmul_output_mode", 0);
  if (mode == 0) call.give(3, scores);
  if (const double cap = call.number("softcap", 0); cap > 0) {
    const Value bound = number(static_cast<float>(cap));
    scores = call.apply("Mul", {call.apply("Tanh", {call.apply("Div", {scores, bound})}), bound});
  }
  if (mode == 1) call.give(3, scores);
  const std::optional<Value> terms = all_terms(call, queries, keys, past);
  if (terms) scores = call.apply("Add", {scores, *terms});
  if (mode == 2) call.give(3, scores);
  const Value weights = weights_of(call, scores, terms);
  if (mode == 3) call.give(3, weights);
  const Value y = call.apply("MatMul", {weights, for_each_query_head(call, v, heads)});
  if (call.input(0).shape.size() == 4) return call.give(y);
  const Value tokens = call.apply("Transpose", {y}, {attribute("perm", {0, 2, 1, 3})});
  call.give(call.apply("Reshape", {tokens, integers({0, 0, -1})}));
}

}  // namespace

std::vector<OpRow> attention_rows() { return {{"Attention", 23, attention}}; }

}  // namespace gpunn::interchange
