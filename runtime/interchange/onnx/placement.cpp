#include "interchange/onnx/placement.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "interchange/onnx/elements.hpp"

namespace gpunn::interchange {

namespace {

constexpr std::size_t kBatch = 0;

// As the layer gives it.
Value as_given(const Value& x) {
  if (!is_placed(x)) return x;
  Value y{.constant = {}, .layer = x.layer, .element = x.element, .shape = {{1, true}}};
  for (const int64_t size : x.row) y.shape.push_back({size, false});
  return y;
}

Parts parts_of(const Value& x) {
  if (is_placed(x)) return x.parts;
  Parts parts(x.shape.size());
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = {i};
  return parts;
}

Size size_of(const std::vector<std::size_t>& part, const Sizes& given) {
  Size size{1, false};
  for (const std::size_t dimension : part) {
    if (dimension == kBatch) {
      size.of_batch = true;
    } else if (__builtin_mul_overflow(size.factor, given[dimension].factor, &size.factor)) {
      throw Unsupported("has more values than there can be");
    }
  }
  return size;
}

// The `count` dimensions of a row in the order of parts; those of 1 that no part has come last.
std::vector<int64_t> order_of(const Parts& parts, std::size_t count) {
  std::vector<int64_t> order;
  for (const std::vector<std::size_t>& part : parts) {
    for (const std::size_t dimension : part) {
      if (dimension != kBatch) order.push_back(static_cast<int64_t>(dimension) - 1);
    }
  }
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    if (std::ranges::find(order, i) == order.end()) order.push_back(i);
  }
  return order;
}

bool has_batch(const std::vector<std::size_t>& part) { return std::ranges::find(part, kBatch) != part.end(); }

// A value of these parts of what a layer gives. It is one of [N, ...] again where the batch is in front.
Value settled(Call& call, const Value& given, Parts parts) {
  // A file of one row has that row in any dimension of 1: in front where it can be.
  if (call.importer().baked_batch() == 1 && std::ranges::none_of(parts, has_batch) && !parts.empty() &&
      size_of(parts.front(), given.shape).factor == 1 && parts.size() > 1) {
    parts.front().insert(parts.front().begin(), kBatch);
  }
  Sizes shape;
  shape.reserve(parts.size());
  for (const std::vector<std::size_t>& part : parts) shape.push_back(size_of(part, given.shape));
  if (!shape.empty() && shape.front() == Size{1, true} && shape.size() > 1) {
    Shape row;
    for (std::size_t i = 1; i < shape.size(); ++i) row.push_back(shape[i].factor);
    return call.reshaped(call.transposed(given, order_of(parts, given.shape.size() - 1)), row);
  }
  return {.constant = {},
          .layer = given.layer,
          .element = given.element,
          .shape = shape,
          .parts = std::move(parts),
          .row = row_of(given)};
}

// Each dimension of a row by itself, the batch outside.
Parts parts_outside(std::size_t rank) {
  Parts parts(rank);
  for (std::size_t i = 0; i < rank; ++i) parts[i] = {i + 1};
  return parts;
}

}  // namespace

bool is_placed(const Value& x) { return !x.row.empty(); }

Value moved(Call& call, const Value& x, const std::vector<int64_t>& permutation) {
  const Parts parts = parts_of(x);
  Parts turned;
  for (const int64_t from : permutation) turned.push_back(parts[static_cast<std::size_t>(from)]);
  return settled(call, as_given(x), std::move(turned));
}

namespace {

// Of a value that has no batch among its dimensions.
std::optional<Value> regrouped_outside(Call& call, const Value& x, const Sizes& to) {
  Shape row;
  int64_t count = 1;
  for (const Size& size : to) {
    if (size.of_batch || size.factor < 1 || __builtin_mul_overflow(count, size.factor, &count)) return std::nullopt;
    row.push_back(size.factor);
  }
  const Value given = batch_first(call, x);
  if (count != element_count(row_of(given))) return std::nullopt;
  if (row.empty()) return settled(call, given, {});
  return settled(call, call.reshaped(given, row), parts_outside(row.size()));
}

// Of one that has: its dimensions are walked in their order, and split where that keeps the batch in one piece.
std::optional<Value> regrouped_around(Call& call, const Value& x, const Sizes& to) {
  Sizes given = as_given(x).shape;
  const int64_t baked = call.importer().baked_batch();
  // The dimensions of the layer in the order in which x has them; those that are split become two.
  std::vector<std::size_t> left;
  const Parts before = parts_of(x);
  for (const std::vector<std::size_t>& part : before) left.insert(left.end(), part.begin(), part.end());
  std::ranges::reverse(left);
  Parts parts;
  for (std::size_t i = 0; i < to.size(); ++i) {
    Size need = to[i];
    std::vector<std::size_t>& part = parts.emplace_back();
    if (need.factor < 1) return std::nullopt;
    const auto is_batch = [&] { return !left.empty() && left.back() == kBatch; };
    const auto take = [&] {
      part.push_back(left.back());
      left.pop_back();
    };
    if (need == Size{1, false} && !left.empty() && (is_batch() ? baked == 1 : given[left.back()].factor == 1)) {
      take();
      continue;
    }
    while (need != Size{1, false}) {
      if (left.empty()) return std::nullopt;
      if (is_batch()) {
        if (need.of_batch) {
          need.of_batch = false;
        } else if (baked > 0 && need.factor % baked == 0) {
          need.factor /= baked;
        } else {
          return std::nullopt;
        }
        take();
        continue;
      }
      const std::size_t dimension = left.back();
      const int64_t size = given[dimension].factor;
      if (need.factor % size == 0) {
        need.factor /= size;
        take();
      } else if (!need.of_batch && size % need.factor == 0) {
        // The layer's dimension becomes two, the outer of which is taken.
        given[dimension].factor = need.factor;
        given.insert(given.begin() + static_cast<std::ptrdiff_t>(dimension) + 1, Size{size / need.factor, false});
        const auto shift = [&](std::size_t& one) { one += one > dimension ? 1 : 0; };
        std::ranges::for_each(left, shift);
        for (std::vector<std::size_t>& one : parts) std::ranges::for_each(one, shift);
        left.back() = dimension + 1;
        part.push_back(dimension);
        need.factor = 1;
      } else {
        return std::nullopt;
      }
    }
    // A batch of one row belongs to the dimension in front of it, unless the next one is that row.
    if (is_batch() && baked == 1 && i + 1 < to.size() && to[i + 1] != Size{1, false}) take();
  }
  while (!left.empty() && !parts.empty()) {
    const bool is_one = left.back() == kBatch ? baked == 1 : given[left.back()].factor == 1;
    if (!is_one) return std::nullopt;
    parts.back().push_back(left.back());
    left.pop_back();
  }
  if (!left.empty()) return std::nullopt;
  Shape row;
  for (std::size_t i = 1; i < given.size(); ++i) row.push_back(given[i].factor);
  const Value source = as_given(x);
  const bool is_split = given.size() != source.shape.size();
  return settled(call, is_split ? call.reshaped(source, row) : source, std::move(parts));
}

}  // namespace

std::optional<Value> regrouped(Call& call, const Value& x, const Sizes& to) {
  // With the batch in front before and after, a row is any other shape of as many values.
  if (!is_placed(x) && to.size() > 1 && x.shape.front() == Size{1, true} && to.front() == Size{1, true}) {
    Shape row;
    for (std::size_t i = 1; i < to.size(); ++i) row.push_back(to[i].factor);
    const bool has_batch_twice = std::any_of(to.begin() + 1, to.end(), [](const Size& size) { return size.of_batch; });
    if (!has_batch_twice && checked_count(row) == checked_count(row_of(x))) return call.reshaped(x, row);
  }
  if (place_of(x).is_outside()) return regrouped_outside(call, x, to);
  // With the batch in front before and after, a row is any other shape of as many values.
  if (!is_placed(x) && to.size() > 1 && to.front() == Size{1, true}) {
    Shape row;
    for (std::size_t i = 1; i < to.size(); ++i) row.push_back(to[i].factor);
    const bool has_batch_twice = std::any_of(to.begin() + 1, to.end(), [](const Size& size) { return size.of_batch; });
    if (!has_batch_twice && checked_count(row) == checked_count(row_of(x))) return call.reshaped(x, row);
  }
  if (std::optional<Value> y = regrouped_around(call, x, to)) return y;
  const std::optional<Value> whole = outside(call, x);
  return whole ? regrouped_outside(call, *whole, to) : std::nullopt;
}

Value squeezed(Call& call, const Value& x, const std::vector<int64_t>& dimensions) {
  Parts parts = parts_of(x);
  const bool is_one_row = call.importer().baked_batch() == 1;
  for (std::size_t i = dimensions.size(); i-- > 0;) {
    const Size size = x.shape[static_cast<std::size_t>(dimensions[i])];
    if (size.factor != 1 || (size.of_batch && !is_one_row)) throw Unsupported("drops a dimension that is not 1");
    parts.erase(parts.begin() + dimensions[i]);
  }
  return settled(call, as_given(x), std::move(parts));
}

Value unsqueezed(Call& call, const Value& x, const std::vector<int64_t>& dimensions) {
  Parts parts = parts_of(x);
  for (const int64_t at : dimensions) {
    if (at > std::ssize(parts)) throw Unsupported("one of its dimensions is not there");
    parts.insert(parts.begin() + at, std::vector<std::size_t>());
  }
  return settled(call, as_given(x), std::move(parts));
}

BatchPlace place_of(const Value& x) {
  BatchPlace place;
  if (!is_placed(x)) return place;
  const auto found = std::ranges::find_if(x.parts, has_batch);
  if (found == x.parts.end()) return BatchPlace::outside();
  place.dimension = static_cast<std::size_t>(found - x.parts.begin());
  place.others = x.shape[place.dimension].factor;
  const auto at = std::ranges::find(*found, kBatch);
  int64_t outer = 1;
  for (auto one = found->begin(); one != at; ++one) outer *= x.row[*one - 1];
  if (outer != 1 && outer != place.others) {
    throw Unsupported("takes " + to_string(x.shape) + ", which has the batch in the middle of a dimension");
  }
  place.is_outer = outer == 1;
  return place;
}

std::size_t dimension_with_batch_first(const BatchPlace& place, std::size_t dimension) {
  if (place.is_outside()) return dimension + 1;
  if (dimension == place.dimension) return 0;
  return dimension < place.dimension ? dimension + 1 : dimension + place.shift();
}

Value batch_first(Call& call, const Value& x) {
  if (!is_placed(x)) return x;
  const BatchPlace place = place_of(x);
  Shape row;
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    if (i != place.dimension || place.others != 1) row.push_back(x.shape[i].factor);
  }
  if (row.empty()) row = {1};
  return call.reshaped(call.transposed(as_given(x), order_of(x.parts, x.row.size())), row);
}

Value placed(Call& call, const Value& x, const BatchPlace& place, std::size_t rank) {
  if (place.is_outside()) {
    const std::size_t given = x.shape.size() - 1;
    if (given != rank && !(rank == 0 && row_of(x) == Shape{1})) {
      throw Unsupported("does not give its rows in the order in which it takes them");
    }
    return settled(call, x, parts_outside(rank));
  }
  if (place.dimension >= rank || (place.others != 1 && x.shape[place.dimension + 1] != Size{place.others, false})) {
    throw Unsupported("does not give its rows in the order in which it takes them");
  }
  Parts parts(rank);
  std::size_t next = 1;
  for (std::size_t i = 0; i < rank; ++i) {
    if (i != place.dimension) {
      parts[i] = {next++};
    } else if (place.others == 1) {
      parts[i] = {kBatch};
    } else {
      parts[i] = {kBatch, next++};
      if (!place.is_outer) std::ranges::reverse(parts[i]);
    }
  }
  return settled(call, x, std::move(parts));
}

Value one_as_batch(Call& call, const Value& x) {
  const bool is_one = place_of(x).is_outside() && x.shape.size() > 1 && x.shape.front() == Size{1, false};
  if (!is_one) {
    throw Unsupported("takes " + to_string(x.shape) +
                      "; layers take values whose first dimension is the batch, or is 1");
  }
  Parts parts = x.parts;
  parts.front().insert(parts.front().begin(), kBatch);
  return settled(call, as_given(x), std::move(parts));
}

Value batch_as_one(Call& call, const Value& x) {
  Parts parts = parts_of(x);
  std::erase(parts.front(), kBatch);
  return settled(call, as_given(x), std::move(parts));
}

Value with_batch_in(Call& call, const Value& x, const BatchPlace& place) {
  if (place.others != 1 || place.dimension >= x.shape.size() || x.shape[place.dimension] != Size{1, false}) return x;
  Parts parts = x.parts;
  parts[place.dimension].insert(parts[place.dimension].begin(), kBatch);
  return settled(call, as_given(x), std::move(parts));
}

std::optional<Value> outside(Call& call, const Value& x) {
  const BatchPlace place = place_of(x);
  if (place.is_outside()) return x;
  if (call.importer().baked_batch() != 1) return std::nullopt;
  const Value given = as_given(x);
  Parts parts = parts_of(x);
  for (std::vector<std::size_t>& part : parts) std::erase(part, kBatch);
  Sizes shape;
  for (const std::vector<std::size_t>& part : parts) shape.push_back(size_of(part, given.shape));
  return Value{.constant = {},
               .layer = given.layer,
               .element = given.element,
               .shape = std::move(shape),
               .parts = std::move(parts),
               .row = row_of(given)};
}

}  // namespace gpunn::interchange
