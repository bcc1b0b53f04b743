#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

// A product of two inputs as a formula says it, "nhqd,nhkd->nhqk": a letter for each dimension.
struct Formula {
  std::string a, b, y;
};

Formula formula_of(const Call& call) {
  std::string text = call.word("equation", "");
  std::erase(text, ' ');
  const std::size_t comma = text.find(','), arrow = text.find("->");
  const bool is_product = comma != std::string::npos && arrow != std::string::npos && comma < arrow &&
                          text.find(',', comma + 1) == std::string::npos && text.find('.') == std::string::npos;
  if (!is_product || call.count() != 2) {
    throw Unsupported("its equation '" + text + "' is no product of two inputs whose dimensions are all named");
  }
  return {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
}

bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

// Letters of `from` that are, or are not, in two other lists.
std::string letters_of(const std::string& from, const std::string& first, bool in_first, const std::string& second,
                       bool in_second) {
  std::string result;
  for (const char letter : from) {
    if (has(first, letter) == in_first && has(second, letter) == in_second) result += letter;
  }
  return result;
}

std::vector<int64_t> order_from(const std::string& letters, const std::string& wanted) {
  std::vector<int64_t> order;
  for (const char letter : wanted) order.push_back(static_cast<int64_t>(letters.find(letter)));
  return order;
}

void note_sizes(std::map<char, Size>& sizes, const std::string& letters, const Sizes& shape) {
  if (letters.size() != shape.size()) throw Unsupported("its equation does not fit its inputs");
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const auto [at, is_new] = sizes.emplace(letters[i], shape[i]);
    if (!is_new && at->second != shape[i]) throw Unsupported("its equation does not fit its inputs");
    if (has(letters.substr(0, i), letters[i])) throw Unsupported("its equation takes a diagonal");
  }
}

// A dimension for each of some letters, and for each of some groups of letters.
Value grouped(Call& call, const Value& x, const std::map<char, Size>& sizes, const std::string& apart,
              const std::vector<std::string>& groups) {
  std::vector<Size> shape;
  for (const char letter : apart) shape.push_back(sizes.at(letter));
  for (const std::string& group : groups) {
    Size all{1, false};
    for (const char letter : group) {
      const Size one = sizes.at(letter);
      if (__builtin_mul_overflow(all.factor, one.factor, &all.factor)) throw Unsupported("is too large");
      all.of_batch = all.of_batch || one.of_batch;
    }
    shape.push_back(all);
  }
  const auto count = static_cast<int64_t>(shape.size());
  return call.apply("Reshape", {x, constant_value(sizes_constant({count}, std::move(shape)))});
}

Value turned_to(Call& call, const Value& x, const std::string& letters, const std::string& wanted) {
  const Attribute order{.name = "perm", .reference = {}, .value = order_from(letters, wanted)};
  return call.apply("Transpose", {x}, {order});
}

// A product of matrices for each place of the dimensions that both have and that stay.
void einsum(Call& call) {
  const Formula f = formula_of(call);
  std::map<char, Size> sizes;
  note_sizes(sizes, f.a, call.input(0).shape);
  note_sizes(sizes, f.b, call.input(1).shape);
  const std::string shared = letters_of(f.a, f.b, true, f.y, true), inner = letters_of(f.a, f.b, true, f.y, false),
                    rows = letters_of(f.a, f.b, false, f.y, true), columns = letters_of(f.b, f.a, false, f.y, true);
  const std::string all = shared + rows + columns;
  if (f.a.size() != shared.size() + inner.size() + rows.size() || all.size() != f.y.size() ||
      f.b.size() != shared.size() + inner.size() + columns.size()) {
    throw Unsupported("its equation adds up a dimension of one input alone");
  }
  const Value a = turned_to(call, call.input(0), f.a, shared + rows + inner),
              b = turned_to(call, call.input(1), f.b, shared + inner + columns);
  const Value y = call.apply(
      "MatMul", {grouped(call, a, sizes, shared, {rows, inner}), grouped(call, b, sizes, shared, {inner, columns})});
  call.give(turned_to(call, grouped(call, y, sizes, all, {}), all, f.y));
}

}  // namespace

std::vector<OpRow> einsum_rows() { return {{"Einsum", 12, einsum}}; }

}  // namespace gpunn::interchange
