// Moves elements to another order.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "interchange/onnx/constants/evaluator.hpp"
#include "interchange/onnx/ranges.hpp"

namespace gpunn::interchange::constants {

namespace {

Sizes sizes_of(const Shape& shape) {
  Sizes sizes;
  for (const int64_t size : shape) sizes.push_back({size, false});
  return sizes;
}

Constant expanded(Call& call, const Constant& from, const Shape& shape) {
  return strided(call, from, shape, broadcast_steps(from.shape, shape));
}

void expand(Call& call) {
  const Constant& from = call.constant(0, "the data");
  const GivenShape given = given_shape(call, 1);
  const Shape shape = broadcast_shape(from.shape, given.sizes);
  if (given.batch && (shape.size() != given.sizes.size() || shape[*given.batch] != 1)) {
    throw Unsupported("its constant differs along the batch");
  }
  give_rows(call, expanded(call, from, shape), given);
}

void transpose(Call& call) {
  const Constant& from = call.constant(0, "the data");
  std::vector<int64_t> order(from.shape.size());
  std::iota(order.rbegin(), order.rend(), 0);
  order = call.list("perm", order);
  const bool is_sound =
      order.size() == from.shape.size() && std::ranges::all_of(order, [](int64_t axis) { return axis >= 0; });
  if (!is_sound) throw Unsupported("does not name each dimension once");
  sound_axes(call, order, from.shape.size());
  call.give_constant(transposed_constant(call, from, order));
}

void concatenate(Call& call) {
  std::vector<const Constant*> parts;
  for (std::size_t i = 0; i < call.count(); ++i) parts.push_back(&call.constant(i, "a part"));
  if (parts.empty()) throw Unsupported("joins nothing");
  Shape shape = parts.front()->shape;
  const std::size_t axis = call.axis("axis", 0, shape.size());
  std::vector<int64_t> ends;
  int64_t all = 0;
  for (const Constant* part : parts) {
    Shape like = shape;
    if (part->shape.size() == shape.size()) like[axis] = part->shape[axis];
    if (part->shape != like) {
      throw Unsupported("joins " + gpunn::to_string(parts.front()->shape) + " and " + gpunn::to_string(part->shape));
    }
    all += part->shape[axis];
    ends.push_back(all);
  }
  shape[axis] = all;
  const Lines lines = lines_along(shape, axis);
  call.give_constant(assembled(call, parts, shape, [&](int64_t i) {
    const int64_t outer = i / (all * lines.inner), at = i / lines.inner % all;
    const auto part = static_cast<std::size_t>(std::ranges::upper_bound(ends, at) - ends.begin());
    const int64_t own = parts[part]->shape[axis], begin = ends[part] - own;
    return Origin{part, (outer * own + at - begin) * lines.inner + i % lines.inner};
  }));
}

void slice(Call& call) {
  const Constant& from = call.constant(0, "the data");
  Shape shape = from.shape, steps = strides_of(from.shape);
  int64_t start = 0;
  for (const SliceRange& range : slice_ranges(call, sizes_of(from.shape))) {
    shape[range.axis] = range.count;
    if (range.count > 0) start += range.start * steps[range.axis];
    steps[range.axis] *= range.count > 1 ? range.step : 1;
  }
  call.give_constant(strided(call, from, std::move(shape), std::move(steps), start));
}

void split(Call& call) {
  const Constant& from = call.constant(0, "the data");
  const std::size_t axis = call.axis("axis", 0, from.shape.size());
  const Shape steps = strides_of(from.shape);
  const std::vector<int64_t> parts = split_sizes(call, from.shape[axis], 0);
  int64_t begin = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    Shape shape = from.shape;
    shape[axis] = parts[part];
    call.give(part, constant_value(strided(call, from, std::move(shape), steps, begin * steps[axis])));
    begin += parts[part];
  }
}

void tile(Call& call) {
  const Constant& from = call.constant(0, "the data");
  const std::vector<int64_t> repeats = call.integers(1, "the repeats");
  if (repeats.size() != from.shape.size()) throw Unsupported("does not repeat each dimension");
  Shape shape = from.shape, apart, steps;
  const Shape strides = strides_of(from.shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (repeats[d] < 0 || __builtin_mul_overflow(shape[d], repeats[d], &shape[d])) {
      throw Unsupported("repeats a dimension " + std::to_string(repeats[d]) + " times");
    }
    apart.insert(apart.end(), {repeats[d], from.shape[d]});
    steps.insert(steps.end(), {0, strides[d]});
  }
  Constant result = strided(call, from, std::move(apart), std::move(steps));
  result.shape = std::move(shape);
  call.give_constant(std::move(result));
}

// Gives the number of values before and behind each dimension.
std::pair<std::vector<int64_t>, std::vector<int64_t>> paddings(Call& call, std::size_t rank) {
  constexpr int64_t kInputs = 11, kMost = int64_t{1} << 40;
  const bool is_input = call.opset() >= kInputs;
  const std::vector<int64_t> pads = is_input ? call.integers(1, "the padding") : call.list("pads");
  std::vector<std::size_t> axes(rank);
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  if (call.has(3)) axes = sound_axes(call, call.integers(3, "the dimensions"), rank);
  const bool is_sound = pads.size() == 2 * axes.size() &&
                        std::ranges::all_of(pads, [](int64_t pad) { return pad > -kMost && pad < kMost; });
  if (!is_sound) throw Unsupported("does not give each dimension two paddings");
  std::vector<int64_t> before(rank, 0), behind(rank, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    before[axes[i]] = pads[i];
    behind[axes[i]] = pads[axes.size() + i];
  }
  return {before, behind};
}

Constant fill_value(Call& call, const Constant& from) {
  Constant value;
  if (call.has(2)) {
    value = call.constant(2, "the value");
    if (value.count() != 1) throw Unsupported("pads with " + gpunn::to_string(value.shape) + ", expected one number");
  } else if (is_floating(from.element)) {
    value = rounded_constant(from.element, {}, {call.number("value", 0)});
  } else {
    value = integers_constant(from.element, {}, {{0, false}});
  }
  value.trained = false;
  return value;
}

void pad(Call& call) {
  const Constant& from = call.constant(0, "the data");
  const std::string mode = pad_mode(call);
  const auto [before, behind] = paddings(call, from.shape.size());
  Shape shape = from.shape;
  for (std::size_t d = 0; d < shape.size(); ++d) shape[d] += before[d] + behind[d];
  if (!checked_count(shape)) throw Unsupported("pads to " + gpunn::to_string(shape));
  call.importer().take_room(shape);
  std::vector<std::vector<int64_t>> places;
  const bool is_empty = element_count(shape) == 0;
  for (std::size_t d = 0; d < shape.size() && !is_empty; ++d) {
    places.push_back(padded_places(mode, from.shape[d], before[d], behind[d]));
  }
  const Constant fill = fill_value(call, from);
  const Shape strides = strides_of(from.shape);
  Walk<1> walk(shape, {Shape(shape.size(), 0)});
  call.give_constant(assembled(call, {&from, &fill}, shape, [&](int64_t) {
    Origin origin;
    for (std::size_t d = 0; d < places.size(); ++d) {
      const int64_t place = places[d][static_cast<std::size_t>(walk.at()[d])];
      if (place == kBorder) origin.source = 1;
      origin.index += place * strides[d];
    }
    if (origin.source == 1) origin.index = 0;
    walk.next();
    return origin;
  }));
}

// Keeps the part above or below a diagonal of matrices. All else becomes 0.
void keep_triangle(Call& call) {
  const Constant& from = call.constant(0, "the data");
  const std::size_t rank = from.shape.size();
  if (rank < 2) throw Unsupported("takes a triangle of " + gpunn::to_string(from.shape));
  const bool is_upper = call.integer("upper", 1) != 0;
  const int64_t most = from.shape[rank - 2] + from.shape[rank - 1];
  int64_t diagonal = 0;
  if (call.has(1)) {
    const std::vector<int64_t> given = call.integers(1, "the diagonal");
    if (given.size() != 1) throw Unsupported("does not name one diagonal");
    diagonal = std::clamp(given.front(), -most, most);
  }
  const Constant zero = cast_constant(integers_constant(Element::i64, {}, {{0, false}}), from.element);
  const int64_t rows = from.shape[rank - 2], columns = from.shape[rank - 1];
  call.give_constant(assembled(call, {&from, &zero}, from.shape, [&](int64_t i) {
    const int64_t off = i % columns - i / columns % rows;
    const bool is_kept = is_upper ? off >= diagonal : off <= diagonal;
    return is_kept ? Origin{0, i} : Origin{1, 0};
  }));
}

// Splits dimensions, puts them into another order and joins them to the shape of the result.
void rearrange(Call& call, const Shape& apart, const std::vector<int64_t>& order, Shape shape) {
  Constant from = call.constant(0, "the data");
  from.shape = apart;
  Constant result = transposed_constant(call, from, order);
  result.shape = std::move(shape);
  call.give_constant(std::move(result));
}

int64_t block_of(Call& call) {
  const Shape& shape = call.constant(0, "the data").shape;
  const int64_t size = call.integer("blocksize", 0);
  constexpr int64_t kMost = 1 << 20;
  if (shape.size() != 4 || size < 1 || size > kMost) {
    throw Unsupported("takes blocks of " + std::to_string(size) + " in " + gpunn::to_string(shape));
  }
  return size;
}

void depth_to_space(Call& call) {
  const int64_t size = block_of(call);
  const Shape& x = call.constant(0, "the data").shape;
  if (x[1] % (size * size) != 0) throw Unsupported("its channels are no multiple of its blocks");
  const int64_t channels = x[1] / (size * size);
  const Shape whole = {x[0], channels, x[2] * size, x[3] * size};
  const std::string mode = call.word("mode", "DCR");
  if (mode == "DCR") return rearrange(call, {x[0], size, size, channels, x[2], x[3]}, {0, 3, 4, 1, 5, 2}, whole);
  if (mode != "CRD") throw Unsupported("its mode is " + mode);
  rearrange(call, {x[0], channels, size, size, x[2], x[3]}, {0, 1, 4, 2, 5, 3}, whole);
}

void space_to_depth(Call& call) {
  const int64_t size = block_of(call);
  const Shape& x = call.constant(0, "the data").shape;
  if (x[2] % size != 0 || x[3] % size != 0) throw Unsupported("its sides are no multiples of its blocks");
  const int64_t rows = x[2] / size, columns = x[3] / size;
  rearrange(call, {x[0], x[1], rows, size, columns, size}, {0, 3, 5, 1, 2, 4},
            {x[0], x[1] * size * size, rows, columns});
}

// Reverses the first elements of each sequence, as many as its length says.
void reverse_sequences(Call& call) {
  const Constant& from = call.constant(0, "the data");
  const std::size_t batch = call.axis("batch_axis", 1, from.shape.size()),
                    time = call.axis("time_axis", 0, from.shape.size());
  const std::vector<int64_t> lengths = call.integers(1, "the lengths");
  const int64_t steps = from.shape[time];
  const bool is_sound = batch != time && std::ssize(lengths) == from.shape[batch] &&
                        std::ranges::all_of(lengths, [&](int64_t one) { return one >= 0 && one <= steps; });
  if (!is_sound) throw Unsupported("its lengths don't fit " + gpunn::to_string(from.shape));
  const Shape strides = strides_of(from.shape);
  call.give_constant(moved(call, from, from.shape, [&](int64_t i) {
    const int64_t sequence = i / strides[batch] % from.shape[batch], at = i / strides[time] % steps;
    const int64_t length = lengths[static_cast<std::size_t>(sequence)];
    return at < length ? i + (length - 1 - 2 * at) * strides[time] : i;
  }));
}

}  // namespace

std::vector<EvaluatorRow> movement_evaluators() {
  return {
      {"Concat", 4, concatenate},
      {"DepthToSpace", 1, depth_to_space},
      {"Expand", 8, expand},
      {"Pad", 2, pad},
      {"ReverseSequence", 10, reverse_sequences},
      {"Slice", 1, slice},
      {"SpaceToDepth", 1, space_to_depth},
      {"Split", 2, split},
      {"Tile", 6, tile},
      {"Transpose", 1, transpose},
      {"Trilu", 14, keep_triangle},
  };
}

}  // namespace gpunn::interchange::constants
