#include "interchange/onnx/fuse_adaptive_pooling.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "interchange/onnx/node_walk.hpp"

namespace gpunn::interchange {

namespace {

constexpr int64_t kMostPixels = int64_t{1} << 24;  // of an axis

// The windows along one axis.
struct WindowTable {
  int64_t count = 0, size = 0;
  Integers pixel;  // [count, size]

  int64_t at(int64_t window, int64_t i) const { return pixel[static_cast<std::size_t>(window * size + i)]; }
};

struct WindowPixels {
  std::string x;
  WindowTable rows, columns;
  std::vector<bool> present;  // [rows, window rows, columns, window columns]: the other pixels are zeros

  Shape shape() const { return {rows.count, rows.size, columns.count, columns.size}; }
  std::size_t index(int64_t row, int64_t i, int64_t column, int64_t j) const {
    return static_cast<std::size_t>(((row * rows.size + i) * columns.count + column) * columns.size + j);
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (int64_t row = 0; row < rows.count; ++row) {
      for (int64_t i = 0; i < rows.size; ++i) {
        for (int64_t column = 0; column < columns.count; ++column) {
          for (int64_t j = 0; j < columns.size; ++j) visit(row, i, column, j);
        }
      }
    }
  }
};

// The place of a constant's element at `at`, to whose shape the constant is broadcast.
std::size_t broadcast_place(const Shape& shape, const Integers& at) {
  match(shape.size() <= at.size());
  std::size_t place = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const int64_t position = at[at.size() - shape.size() + i];
    match(shape[i] == 1 || position < shape[i]);
    place = place * static_cast<std::size_t>(shape[i]) + static_cast<std::size_t>(shape[i] == 1 ? 0 : position);
  }
  return place;
}

// The pixels that GatherND gathers for `value`.
WindowPixels gathered(NodeWalk& walk, const std::string& value) {
  const FileNode& gather = walk.node(walk.transposed(value, {4, 5, 0, 1, 2, 3}), "GatherND", 2);
  match(NodeWalk::attribute(gather, "batch_dims", 0) == 0);
  const Constant& numbers = walk.constant(gather.inputs[1]);
  match(numbers.shape.size() == 5 && numbers.shape.back() == 2 && !is_floating(numbers.element) &&
        !numbers.integers.empty());
  WindowPixels result;
  result.x = walk.transposed(gather.inputs[0], {2, 3, 0, 1});
  result.rows = {.count = numbers.shape[0], .size = numbers.shape[1], .pixel = {}};
  result.columns = {.count = numbers.shape[2], .size = numbers.shape[3], .pixel = {}};
  result.present.assign(numbers.integers.size() / 2, true);
  const auto number = [&](int64_t row, int64_t i, int64_t column, int64_t j, std::size_t axis) {
    const Size& size = numbers.integers[result.index(row, i, column, j) * 2 + axis];
    match(!size.of_batch && size.factor >= 0 && size.factor < kMostPixels);
    return size.factor;
  };
  for (int64_t row = 0; row < result.rows.count; ++row) {
    for (int64_t i = 0; i < result.rows.size; ++i) result.rows.pixel.push_back(number(row, i, 0, 0, 0));
  }
  for (int64_t column = 0; column < result.columns.count; ++column) {
    for (int64_t j = 0; j < result.columns.size; ++j) result.columns.pixel.push_back(number(0, 0, column, j, 1));
  }
  result.for_each([&](int64_t row, int64_t i, int64_t column, int64_t j) {
    match(number(row, i, column, j, 0) == result.rows.at(row, i) &&
          number(row, i, column, j, 1) == result.columns.at(column, j));
  });
  return result;
}

// The same, of which each Where makes some zeros.
WindowPixels masked(NodeWalk& walk, std::string value) {
  std::vector<const Constant*> masks;
  while (walk.producer(value) != nullptr && walk.producer(value)->op == "Where") {
    const FileNode& where = walk.node(value, "Where", 3);
    masks.push_back(&walk.constant(where.inputs[0]));
    match(masks.back()->element == Element::boolean && walk.number(where.inputs[1]) == 0);
    value = where.inputs[2];
  }
  WindowPixels result = gathered(walk, value);
  result.for_each([&](int64_t row, int64_t i, int64_t column, int64_t j) {
    for (const Constant* mask : masks) {
      if (mask->integers.at(broadcast_place(mask->shape, {row, i, column, j})).factor == 0) continue;
      result.present[result.index(row, i, column, j)] = false;
    }
  });
  return result;
}

// What is left of `value` when Gather takes one element of an axis.
std::pair<std::string, int64_t> taken(NodeWalk& walk, const std::string& value, int64_t axis) {
  const FileNode& gather = walk.node(value, "Gather", 2);
  match(NodeWalk::attribute(gather, "axis", 0) == axis && walk.constant(gather.inputs[1]).shape.empty());
  return {gather.inputs[0], walk.integer(gather.inputs[1])};
}

// The pixels of which `value` is the sum over both axes of a window.
WindowPixels added(NodeWalk& walk, const std::string& value) {
  constexpr std::size_t kMostTerms = 1 << 16;
  std::vector<std::string> open = {value};
  std::set<std::pair<int64_t, int64_t>> terms;
  std::string source;
  while (!open.empty()) {
    const std::string term = open.back();
    open.pop_back();
    if (const FileNode* sum = walk.producer(term); sum != nullptr && sum->op == "Add") {
      const FileNode& add = walk.node(term, "Add", 2);
      match(open.size() < kMostTerms);
      open.insert(open.end(), add.inputs.begin(), add.inputs.end());
      continue;
    }
    const auto [row_of_window, j] = taken(walk, term, 4);
    const auto [pixels, i] = taken(walk, row_of_window, 3);
    match((source.empty() || source == pixels) && terms.insert({i, j}).second && terms.size() < kMostTerms);
    source = pixels;
  }
  WindowPixels result = masked(walk, source);
  match(std::ssize(terms) == result.rows.size * result.columns.size);
  for (const auto& [i, j] : terms) match(i >= 0 && i < result.rows.size && j >= 0 && j < result.columns.size);
  return result;
}

// The number of pixels of an axis: one more than the highest that a window has.
int64_t pixels_of(const WindowTable& windows) { return 1 + *std::ranges::max_element(windows.pixel); }

// The first pixel of a window, and, for the next number, the end of it.
int64_t window_begin(int64_t window, int64_t pixels, int64_t windows) { return window * pixels / windows; }
int64_t window_end(int64_t window, int64_t pixels, int64_t windows) {
  return ((window + 1) * pixels + windows - 1) / windows;
}

// Each window has the pixels of an adaptive pooling's, each once, and `sizes` are their numbers.
template <class SizeOf>
void match_windows(const WindowPixels& of, const SizeOf& size_of) {
  const int64_t height = pixels_of(of.rows), width = pixels_of(of.columns);
  for (int64_t row = 0; row < of.rows.count; ++row) {
    const int64_t top = window_begin(row, height, of.rows.count), bottom = window_end(row, height, of.rows.count);
    for (int64_t column = 0; column < of.columns.count; ++column) {
      const int64_t left = window_begin(column, width, of.columns.count);
      const int64_t right = window_end(column, width, of.columns.count);
      std::set<std::pair<int64_t, int64_t>> seen;
      for (int64_t i = 0; i < of.rows.size; ++i) {
        for (int64_t j = 0; j < of.columns.size; ++j) {
          if (!of.present[of.index(row, i, column, j)]) continue;
          const int64_t y = of.rows.at(row, i), x = of.columns.at(column, j);
          match(y >= top && y < bottom && x >= left && x < right && seen.insert({y, x}).second);
        }
      }
      match(std::ssize(seen) == (bottom - top) * (right - left));
      match(size_of(row, column) == static_cast<double>(seen.size()));
    }
  }
}

WindowPixels mean_of_windows(NodeWalk& walk, const FileNode& mean) {
  match(NodeWalk::attribute(mean, "keepdims", 1) == 0);
  Integers axes = mean.inputs.size() == 2 ? walk.integers(mean.inputs[1]) : NodeWalk::list(mean, "axes");
  for (int64_t& axis : axes) axis += axis < 0 ? 6 : 0;
  std::ranges::sort(axes);
  match(axes == Integers{3, 5});
  WindowPixels result = gathered(walk, mean.inputs[0]);
  match_windows(result, [&](int64_t, int64_t) {
    return static_cast<double>(result.rows.size) * static_cast<double>(result.columns.size);
  });
  return result;
}

WindowPixels quotient_of_windows(NodeWalk& walk, const FileNode& quotient) {
  match(quotient.inputs.size() == 2);
  WindowPixels result = added(walk, quotient.inputs[0]);
  const Constant& sizes = walk.constant(quotient.inputs[1]);
  match(is_floating(sizes.element));
  match_windows(result, [&](int64_t row, int64_t column) {
    return double{sizes.floats->at(broadcast_place(sizes.shape, {row, column}))};
  });
  return result;
}

// Whether there was one to put together.
bool fuse_one_pooling(FileModel& model) {
  NodeWalk walk(model);
  for (FileNode& node : model.nodes) {
    if (!node.domain.empty() || (node.op != "ReduceMean" && node.op != "Div") || node.inputs.empty()) continue;
    walk.passed().clear();
    try {
      const WindowPixels found =
          node.op == "ReduceMean" ? mean_of_windows(walk, node) : quotient_of_windows(walk, node);
      FileNode pooling = fused_node(node.name, "AdaptiveAveragePool", {found.x}, node.outputs.front());
      set_attribute(pooling, "rows", pixels_of(found.rows));
      set_attribute(pooling, "columns", pixels_of(found.columns));
      set_attribute(pooling, "output_rows", found.rows.count);
      set_attribute(pooling, "output_columns", found.columns.count);
      node = std::move(pooling);
      remove_unread(model, std::move(walk.passed()));
      return true;
    } catch (const Mismatch&) {
      continue;
    }
  }
  return false;
}

}  // namespace

void fuse_adaptive_pooling(FileModel& model) {
  const auto is_gather = [](const FileNode& node) { return node.op == "GatherND" && node.domain.empty(); };
  if (std::ranges::none_of(model.nodes, is_gather)) return;
  while (fuse_one_pooling(model)) {
  }
}

}  // namespace gpunn::interchange
