// Operators that only move numbers, each of which goes to places that are known at import: the evaluator of constants
// moves the numbers of their places, and one `gather` follows it.
#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "interchange/onnx/dimensions.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/fold.hpp"
#include "interchange/onnx/operands.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

namespace {

struct Movement {
  std::string_view op;
  std::array<bool, 3> moves;  // which inputs are moved; the others say where to
  std::size_t last = 0;       // dimensions whose places it counts, however many rows of the batch there are
};

constexpr std::array kMovements = {
    Movement{"Compress", {true, false, false}}, Movement{"GatherElements", {true, false, false}},
    Movement{"GatherND", {true, false, false}}, Movement{"ReverseSequence", {true, false, false}},
    Movement{"Scatter", {true, false, true}},   Movement{"ScatterElements", {true, false, true}},
    Movement{"ScatterND", {true, false, true}}, Movement{"Trilu", {true, false, false}, 2},
};

const Movement* find_movement(std::string_view op) {
  const auto found = std::ranges::find(kMovements, op, &Movement::op);
  return found == kMovements.end() ? nullptr : &*found;
}

// The places of the first output's numbers among those of all inputs that are moved, one behind the other; -1: a zero.
struct Places {
  Shape shape;
  std::vector<int64_t> from;
};

// `rows`: for a batch of that size.
Places places_of(Call& call, const Movement& movement, int64_t rows) {
  std::vector<Value> inputs(call.count());
  std::vector<const Value*> given(call.count(), nullptr);
  int64_t next = 1;  // 0 is what the evaluator puts where nothing is from
  for (std::size_t i = 0; i < call.count(); ++i) {
    if (!call.has(i)) continue;
    given[i] = &call.input(i);
    if (i >= movement.moves.size() || !movement.moves[i]) {
      if (!given[i]->constant) throw Unsupported("its places depend on the data");
      continue;
    }
    Shape shape;
    for (const Size& size : given[i]->shape) shape.push_back(size.factor * (size.of_batch ? rows : 1));
    std::vector<Size> numbers(static_cast<std::size_t>(call.importer().take_room(shape)));
    for (Size& number : numbers) number = {next++, false};
    inputs[i] = constant_value(sizes_constant(shape, std::move(numbers)));
    given[i] = &inputs[i];
  }
  FileNode node = call.node();
  std::erase_if(node.attributes, [](const Attribute& one) { return one.name == "reduction"; });
  Call moved(call.importer(), node, call.opset(), given);
  if (!fold(moved)) throw Unsupported("its places depend on the data");
  const Constant& result = *call.importer().find_value(node.outputs.front())->constant;
  Places places{.shape = result.shape, .from = {}};
  for (const Size& size : result.integers) places.from.push_back(size.factor - 1);
  return places;
}

// Those of one row of a batch, where each row is moved as the first is.
Places places_of_row(Call& call, const Movement& movement) {
  if (call.input(0).shape.size() <= movement.last) throw Unsupported("moves numbers by their row of the batch");
  Places one = places_of(call, movement, 1);
  const Places two = places_of(call, movement, 2);
  const auto is_constant = [&](std::size_t i) { return call.has(i) && movement.moves[i] && call.input(i).constant; };
  bool fits = !one.shape.empty() && one.shape.front() == 1 && two.from.size() == 2 * one.from.size() &&
              !is_constant(0) && !is_constant(2);
  const int64_t row = element_count(row_of(call.input(0)));
  for (std::size_t i = 0; fits && i < two.from.size(); ++i) {
    const int64_t place = one.from[i % one.from.size()], second = i < one.from.size() ? 0 : row;
    fits = two.from[i] == (place < 0 ? -1 : place + second);
  }
  if (!fits) throw Unsupported("moves numbers between the rows of the batch");
  return one;
}

Value flat(Call& call, const Value& x) {
  if (!x.constant) {
    const Value given = batch_first(call, x);
    return call.reshaped(given, {element_count(row_of(given))});
  }
  const Constant constant = as_floats(*x.constant);
  return constant_layer(call, constant, {element_count(constant.shape)});
}

// All numbers that are moved in one row, and those at the places of it.
Value moved_values(Call& call, const std::vector<Value>& sources, const std::vector<int64_t>& places) {
  constexpr std::size_t kOwn = 1;  // the dimension behind the batch
  if (sources.size() == 1) return gathered(call, sources.front(), kOwn, places);
  int64_t size = 0;
  std::vector<const Value*> from;
  for (const Value& source : sources) {
    from.push_back(&source);
    size += row_of(source).front();
  }
  return gathered(call, call.layer("concat", from, {}, {size}, "all"), kOwn, places);
}

// What a reduction makes of the old numbers and the new.
Value reduced_by(Call& call, const std::string& reduction, const Value& x, const Value& update) {
  if (reduction == "add") return sum_of(call, x, update);
  if (reduction == "mul") return product_of(call, x, update);
  if (reduction == "max") return elementwise(call, "maximum", {x, update});
  if (reduction == "min") return elementwise(call, "minimum", {x, update});
  throw Unsupported("its reduction " + reduction + " is not known");
}

// New numbers, each at a place of its own, are combined with the old ones there.
Value with_reduction(Call& call, const std::string& reduction, const Value& x, const Value& updates,
                     const std::vector<int64_t>& places) {
  const int64_t old = row_of(x).front();
  std::vector<int64_t> of_update;
  std::vector<float> is_updated;
  for (const int64_t place : places) {
    of_update.push_back(place < old ? -1 : place - old);
    is_updated.push_back(place < old ? 0 : 1);
  }
  if (std::ranges::count(is_updated, 1.0F) != row_of(updates).front()) {
    throw Unsupported("combines several numbers at one place");
  }
  const auto count = static_cast<int64_t>(places.size());
  const Value update = gathered(call, updates, 1, of_update);
  const Value mask = constant_value(floats_constant({1, count}, std::move(is_updated)));
  return choice_of(call, mask, reduced_by(call, reduction, x, update), x);
}

}  // namespace

bool is_movement(const std::string& op) { return find_movement(op) != nullptr; }

void import_movement(Call& call) {
  const Movement& movement = *find_movement(call.node().op);
  std::vector<Value> sources;
  BatchPlace place = BatchPlace::outside();
  Element element = Element::f32;
  for (std::size_t i = 0; i < std::min(call.count(), movement.moves.size()); ++i) {
    if (!call.has(i) || !movement.moves[i]) continue;
    const Value& x = call.input(i);
    if (i == 0) element = x.element;
    if (!x.constant) place = place_of(x);
    sources.push_back(x);
  }
  for (const Value& source : sources) {
    if (!source.constant && place_of(source) != place) throw Unsupported("takes values of different batches");
  }
  if (!place.is_outside() && place != BatchPlace()) throw Unsupported("moves numbers between the rows of the batch");
  Places places = place.is_outside() ? places_of(call, movement, 1) : places_of_row(call, movement);
  if (places.from.empty()) throw Unsupported("leaves nothing of its input");
  for (Value& source : sources) source = flat(call, source);
  const std::string reduction = call.word("reduction", "none");
  const Value y = reduction == "none" ? moved_values(call, sources, places.from)
                                      : with_reduction(call, reduction, sources.at(0), sources.at(1), places.from);
  const std::size_t rank = places.shape.size();
  Shape row = places.shape;
  if (!place.is_outside()) row.erase(row.begin());
  if (row.empty()) row = {1};
  Value given = call.reshaped(y, row);
  if (place.is_outside()) given = placed(call, given, place, rank);
  given.element = element;
  call.give(std::move(given));
}

}  // namespace gpunn::interchange
