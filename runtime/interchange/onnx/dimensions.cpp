#include "interchange/onnx/dimensions.hpp"

#include <algorithm>
#include <numeric>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/operands.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

namespace {

Value with_one(Call& call, const Value& x, int64_t at) {
  if (!x.constant) return unsqueezed(call, x, {at});
  Constant wide = *x.constant;
  wide.shape.insert(wide.shape.begin() + at, 1);
  return constant_value(std::move(wide));
}

// A value with the batch in front, where none of some dimensions is the batch.
struct BatchFirst {
  Value x;
  BatchPlace place;
  std::size_t rank = 0;
  std::vector<std::size_t> dimensions;  // of a row

  Value in_place(Call& call, Value y) const {
    y.element = x.element;
    return place == BatchPlace() && rank > 1 ? y : placed(call, y, place, rank);
  }
};

BatchFirst batch_first_for(Call& call, Value x, const std::vector<int64_t>& dimensions) {
  BatchFirst result{.x = {}, .place = place_of(x), .rank = x.shape.size(), .dimensions = {}};
  const auto is_batch = [&](int64_t one) { return static_cast<std::size_t>(one) == result.place.dimension; };
  if (std::ranges::any_of(dimensions, is_batch)) {
    const std::optional<Value> whole = outside(call, x);
    if (!whole) throw Unsupported("computes with different rows of the batch");
    x = *whole;
    result.place = BatchPlace::outside();
  }
  result.x = batch_first(call, x);
  result.x.element = x.element;
  for (const int64_t one : dimensions) {
    result.dimensions.push_back(dimension_with_batch_first(result.place, static_cast<std::size_t>(one)) - 1);
  }
  return result;
}

Value reduced_layer(Call& call, const Value& x, const std::string& function, std::vector<int64_t> dimensions,
                    bool keep) {
  const Shape row = row_of(x);
  Shape left;
  for (int64_t i = 0; i < std::ssize(row); ++i) {
    const bool is_reduced = std::ranges::find(dimensions, i) != dimensions.end();
    if (!is_reduced || keep) left.push_back(is_reduced ? 1 : row[static_cast<std::size_t>(i)]);
  }
  if (function == "mean" && row.size() == 3 && dimensions == std::vector<int64_t>{1, 2}) {
    return call.reshaped(call.layer("adaptive_avg_pool", {&x}, {{"size", {"1"}}}, {row[0], 1, 1}), left);
  }
  return call.layer("reduce", {&x},
                    {{"function", {function}}, {"dimensions", texts(dimensions)}, {"keep", {text(keep)}}}, left);
}

}  // namespace

Value matrix_product_of(Call& call, const Value& a, const Value& b) {
  if (a.shape.empty() || b.shape.empty()) throw Unsupported("multiplies a number; expected matrices");
  if (a.shape.size() == 1) {
    const Value y = matrix_product_of(call, with_one(call, a, 0), b);
    return squeezed(call, y, {static_cast<int64_t>(y.shape.size()) - 2});
  }
  if (b.shape.size() == 1) {
    const Value y = matrix_product_of(call, a, with_one(call, b, 1));
    return squeezed(call, y, {static_cast<int64_t>(y.shape.size()) - 1});
  }
  Operands operands(call, {a, b}, 2);
  const Value left = operands.layered(0), right = operands.layered(1);
  const Shape of_left = row_of(left), of_right = row_of(right);
  if (of_left.back() != of_right[of_right.size() - 2]) {
    throw Unsupported("multiplies matrices of " + to_string(a.shape) + " and " + to_string(b.shape));
  }
  Shape row = operands.row();
  row.insert(row.end(), {of_left[of_left.size() - 2], of_right.back()});
  return operands.in_place(call.layer("matmul", {&left, &right}, {}, row));
}

Value reduced(Call& call, const Value& x, const std::string& function, const std::vector<int64_t>& dimensions,
              bool keep) {
  if (dimensions.empty()) return x;
  const BatchFirst from = batch_first_for(call, x, dimensions);
  const std::vector<int64_t> of_row(from.dimensions.begin(), from.dimensions.end());
  const bool leaves_some = of_row.size() < row_of(from.x).size();
  if (!keep && from.place == BatchPlace() && leaves_some) {
    return from.in_place(call, reduced_layer(call, from.x, function, of_row, false));
  }
  const Value y = from.in_place(call, reduced_layer(call, from.x, function, of_row, true));
  return keep ? y : squeezed(call, y, dimensions);
}

Value along(Call& call, const std::string& layer, const Value& x, std::size_t dimension, int64_t size, Keys keys) {
  const BatchFirst from = batch_first_for(call, x, {static_cast<int64_t>(dimension)});
  keys.insert(keys.begin(), {"dimension", {std::to_string(from.dimensions.front())}});
  Shape row = row_of(from.x);
  row[from.dimensions.front()] = size;
  return from.in_place(call, call.layer(layer, {&from.x}, keys, row));
}

Value gathered(Call& call, const Value& x, std::size_t dimension, const std::vector<int64_t>& places) {
  const bool is_run =
      !places.empty() && places.front() >= 0 &&
      std::ranges::adjacent_find(places, [](int64_t a, int64_t b) { return b != a + 1; }) == places.end();
  if (is_run) return sliced(call, x, dimension, places.front(), std::ssize(places));
  const BatchFirst from = batch_first_for(call, x, {static_cast<int64_t>(dimension)});
  Shape row = row_of(from.x);
  row[from.dimensions.front()] = std::ssize(places);
  constexpr int64_t kExact = 1 << 24;  // places are kept as f32
  if (row_of(from.x)[from.dimensions.front()] > kExact) throw Unsupported("takes values beyond the first 2^24");
  const std::vector<float> numbers(places.begin(), places.end());
  const Value index = constant_layer(call, floats_constant({std::ssize(places)}, numbers), {std::ssize(places)});
  return from.in_place(
      call, call.layer("gather", {&from.x, &index}, {{"dimension", {std::to_string(from.dimensions.front())}}}, row));
}

Value sliced(Call& call, const Value& x, std::size_t dimension, int64_t start, int64_t count) {
  if (x.shape[dimension] == Size{count, false}) return x;
  return along(call, "slice", x, dimension, count,
               {{"start", {std::to_string(start)}}, {"size", {std::to_string(count)}}});
}

Value padded(Call& call, const Value& x, const std::vector<int64_t>& before, const std::vector<int64_t>& behind) {
  std::vector<int64_t> dimensions;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] + behind[i] > 0) dimensions.push_back(static_cast<int64_t>(i));
  }
  if (dimensions.empty()) return x;
  const BatchFirst from = batch_first_for(call, x, dimensions);
  Shape row = row_of(from.x);
  std::vector<int64_t> front(row.size() + 1, 0), back(row.size() + 1, 0);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const auto of_file = static_cast<std::size_t>(dimensions[i]);
    const std::size_t own = from.dimensions[i];
    front[own + 1] = before[of_file];
    back[own + 1] = behind[of_file];
    row[own] += before[of_file] + behind[of_file];
  }
  return from.in_place(
      call, call.layer("op", {&from.x}, {{"op", {"pad"}}, {"before", texts(front)}, {"after", texts(back)}}, row));
}

Value expanded(Call& call, const Value& x, const Sizes& to) {
  std::vector<int64_t> dimensions;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] != x.shape[i]) dimensions.push_back(static_cast<int64_t>(i));
  }
  if (dimensions.empty()) return x;
  const BatchFirst from = batch_first_for(call, x, dimensions);
  Shape row = row_of(from.x);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    row[from.dimensions[i]] = to[static_cast<std::size_t>(dimensions[i])].factor;
  }
  return from.in_place(call, call.layer("expand", {&from.x}, {{"shape", texts(row)}}, row));
}

// A layer takes so many parts; the rest goes behind what it gives.
Value joined(Call& call, const std::vector<Value>& parts, std::size_t dimension) {
  constexpr std::size_t kMostParts = 16;
  if (parts.size() == 1) return parts.front();
  // As many dimensions, and the batch of all in one place, but for the dimension that grows.
  std::vector<Value> aligned;
  const auto data = std::ranges::find_if(parts, [](const Value& one) { return one.constant == nullptr; });
  const BatchFirst like = batch_first_for(call, *data, {static_cast<int64_t>(dimension)});
  const std::size_t own = like.dimensions.front();
  Shape row = row_of(like.x);
  int64_t size = 0;
  for (const Value& part : parts) {
    Value one;
    if (part.constant) {
      Constant constant = as_floats(*part.constant);
      if (constant.shape.size() != like.rank) throw Unsupported("joins values of different numbers of dimensions");
      if (!like.place.is_outside()) {
        const auto at = constant.shape.begin() + static_cast<std::ptrdiff_t>(like.place.dimension);
        if (*at != 1) {
          throw Unsupported("joins a constant " + gpunn::to_string(constant.shape) + " that differs along the batch");
        }
        if (like.place.others == 1) constant.shape.erase(at);
      }
      const Shape shape = constant.shape;
      one = constant_layer(call, constant, shape);
    } else {
      const BatchFirst other = batch_first_for(call, part, {static_cast<int64_t>(dimension)});
      if (other.place != like.place || other.rank != like.rank) throw Unsupported("joins values of different batches");
      one = other.x;
    }
    Shape shape = row_of(one);
    if (shape.size() != row.size()) throw Unsupported("joins values of unlike shapes");
    if (__builtin_add_overflow(size, shape[own], &size)) throw Unsupported("is too large");
    row[own] = shape[own];
    if (shape != row) throw Unsupported("joins values of unlike shapes");
    aligned.push_back(std::move(one));
  }
  Value all = aligned.front();
  for (std::size_t begin = 1; begin < aligned.size(); begin += kMostParts - 1) {
    const std::size_t end = std::min(begin + kMostParts - 1, aligned.size());
    const Value before = all;
    std::vector<const Value*> some = {&before};
    row[own] = row_of(before)[own];
    for (std::size_t i = begin; i < end; ++i) {
      some.push_back(&aligned[i]);
      row[own] += row_of(aligned[i])[own];
    }
    all = call.layer("concat", some, {{"dimension", {std::to_string(own)}}}, row, end < aligned.size() ? "part" : "");
  }
  return like.in_place(call, all);
}

// The layers work over the last dimension of a row.
Value softmax_over(Call& call, const char* layer, const Value& x, std::size_t dimension) {
  const BatchFirst from = batch_first_for(call, x, {static_cast<int64_t>(dimension)});
  std::vector<int64_t> order(row_of(from.x).size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[from.dimensions.front()], order.back());  // its own inverse
  const Value turned = call.transposed(from.x, order);
  const Keys keys = order.size() == 1 ? Keys() : Keys{{"over", {"last"}}};
  return from.in_place(call, call.transposed(call.layer(layer, {&turned}, keys, row_of(turned)), order));
}

std::size_t sound_dimension(int64_t given, std::size_t rank) {
  const auto size = static_cast<int64_t>(rank);
  if (given < -size || given >= size) {
    throw Unsupported("axis " + std::to_string(given) + " is not one of " + std::to_string(size) + " dimensions");
  }
  return static_cast<std::size_t>(given < 0 ? given + size : given);
}

std::vector<int64_t> sound_dimensions(std::vector<int64_t> given, std::size_t rank) {
  for (int64_t& one : given) one = static_cast<int64_t>(sound_dimension(one, rank));
  std::ranges::sort(given);
  if (std::ranges::adjacent_find(given) != given.end()) throw Unsupported("names a dimension twice");
  return given;
}

}  // namespace gpunn::interchange
