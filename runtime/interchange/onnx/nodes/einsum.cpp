#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include "interchange/onnx/fold.hpp"
#include "interchange/onnx/nodes/linear.hpp"

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

Shape shape_of(const std::map<char, int64_t>& sizes, const std::string& letters) {
  Shape shape;
  for (const char letter : letters) shape.push_back(sizes.at(letter));
  return shape;
}

void note_sizes(std::map<char, int64_t>& sizes, const std::string& letters, const Shape& shape) {
  if (letters.size() != shape.size()) throw Unsupported("its equation does not fit its inputs");
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const auto [at, is_new] = sizes.emplace(letters[i], shape[i]);
    if (!is_new && at->second != shape[i]) throw Unsupported("its equation does not fit its inputs");
    if (has(letters.substr(0, i), letters[i])) throw Unsupported("its equation takes a diagonal");
  }
}

// Without the letter of the batch, which is the first everywhere.
std::string of_row(const std::string& letters, char batch) {
  if (letters.empty() || letters.front() != batch) throw Unsupported("its equation moves the batch");
  return letters.substr(1);
}

void einsum(Call& call) {
  Formula f = formula_of(call);
  // Data first, of which there is always one.
  const bool is_turned = call.input(0).constant != nullptr;
  if (is_turned) std::swap(f.a, f.b);
  const std::size_t first = is_turned ? 1 : 0, second = 1 - first;
  const bool by_weights = call.input(second).constant != nullptr;
  const char batch = f.a.empty() ? ' ' : f.a.front();
  f.a = of_row(f.a, batch);
  f.y = of_row(f.y, batch);
  if (!by_weights) f.b = of_row(f.b, batch);
  std::map<char, int64_t> sizes;
  note_sizes(sizes, f.a, call.sample(first));
  note_sizes(sizes, f.b, by_weights ? call.floats(second, "the weights").shape : call.sample(second));
  const std::string shared = letters_of(f.a, f.b, true, f.y, true), inner = letters_of(f.a, f.b, true, f.y, false),
                    rows = letters_of(f.a, f.b, false, f.y, true), columns = letters_of(f.b, f.a, false, f.y, true);
  const std::string all = shared + rows + columns;
  if (f.a.size() != shared.size() + inner.size() + rows.size() || all.size() != f.y.size() ||
      f.b.size() != shared.size() + inner.size() + columns.size()) {
    throw Unsupported("its equation adds up a dimension of one input alone");
  }
  const auto count = [&](const std::string& letters) { return element_count(shape_of(sizes, letters)); };
  const Value a = call.transposed(call.data(first), order_from(f.a, shared + rows + inner));
  Value y;
  if (by_weights) {
    if (!shared.empty()) throw Unsupported("its weights differ along a dimension that stays");
    Constant weights =
        transposed_constant(call, call.constant(second, "the weights"), order_from(f.b, columns + inner));
    weights.shape = {count(columns), count(inner)};
    y = weighted(call, call.reshaped(a, {count(rows), count(inner)}), weights, nullptr);
  } else {
    const Value b = call.transposed(call.data(second), order_from(f.b, shared + inner + columns));
    const Value left = call.reshaped(a, {count(shared), count(rows), count(inner)}),
                right = call.reshaped(b, {count(shared), count(inner), count(columns)});
    y = call.layer("matmul", {&left, &right}, {}, {count(shared), count(rows), count(columns)});
  }
  call.give(call.transposed(call.reshaped(y, shape_of(sizes, all)), order_from(all, f.y)));
}

}  // namespace

std::vector<OpRow> einsum_rows() { return {{"Einsum", 12, einsum}}; }

}  // namespace gpunn::interchange
