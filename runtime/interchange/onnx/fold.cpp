#include <algorithm>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

bool give_attribute(Call& call) {
  if (const Constant* value = call.tensor("value")) {
    call.give_constant(*value);
  } else if (call.has_attribute("value_float")) {
    call.give_constant(floats_constant({}, {static_cast<float>(call.number("value_float", 0))}));
  } else if (call.has_attribute("value_int")) {
    call.give_constant(sizes_constant({}, {{call.integer("value_int", 0), false}}));
  } else if (call.has_attribute("value_ints")) {
    call.give_constant(integers_constant(call.list("value_ints")));
  } else {
    throw Unsupported("holds a constant of a kind that is not read");
  }
  return true;
}

bool give_shape(Call& call) {
  const Sizes& shape = call.input(0).shape;
  if (call.has_attribute("start") || call.has_attribute("end")) throw Unsupported("takes a part of a shape");
  call.give_constant(sizes_constant({static_cast<int64_t>(shape.size())}, shape));
  return true;
}

// A list or a single integer, known now.
bool is_list(const Call& call, std::size_t i) {
  return call.has(i) && call.input(i).constant && !is_floating(call.input(i).constant->element) &&
         call.input(i).constant->shape.size() <= 1;
}

bool gather(Call& call) {
  if (!is_list(call, 0) || !is_list(call, 1)) return false;
  const std::vector<Size>& from = call.input(0).constant->integers;
  std::vector<Size> taken;
  for (int64_t index : call.integers(1, "the places")) {
    if (index < 0) index += std::ssize(from);
    if (index < 0 || index >= std::ssize(from)) throw Unsupported("takes a value from beyond the end");
    taken.push_back(from[static_cast<std::size_t>(index)]);
  }
  call.give_constant(sizes_constant(call.input(1).constant->shape, taken));
  return true;
}

constexpr std::size_t kLongestList = 64;

bool concat_lists(Call& call) {
  std::vector<Size> all;
  for (std::size_t i = 0; i < call.count(); ++i) {
    if (!is_list(call, i)) return false;
    const std::vector<Size>& part = call.input(i).constant->integers;
    all.insert(all.end(), part.begin(), part.end());
    if (all.size() > kLongestList) throw Unsupported("makes a list that is longer than any shape");
  }
  const auto count = static_cast<int64_t>(all.size());
  call.give_constant(sizes_constant({count}, std::move(all)));
  return true;
}

bool between_list_and_number(Call& call, bool to_list) {
  if (!is_list(call, 0) || call.input(0).constant->integers.size() != 1) return false;
  call.give_constant(sizes_constant(to_list ? Shape{1} : Shape{}, call.input(0).constant->integers));
  return true;
}

bool pass_constant(Call& call) {
  if (!call.input(0).constant) return false;
  call.give(call.input(0));
  return true;
}

bool as_list(Call& call) { return between_list_and_number(call, true); }
bool as_number(Call& call) { return between_list_and_number(call, false); }

bool cast_constant(Call& call) {
  if (!call.has(0) || !call.input(0).constant) return false;
  const auto to = static_cast<Element>(call.integer("to", 0));
  if (is_floating(to) != is_floating(call.input(0).constant->element)) {
    throw Unsupported("changes a constant between integers and floats");
  }
  return pass_constant(call);
}

using Folding = bool (*)(Call&);

Folding find_folding(const std::string& op) {
  static const std::map<std::string_view, Folding> table = {
      {"Constant", give_attribute}, {"Shape", give_shape},    {"Identity", pass_constant}, {"Cast", cast_constant},
      {"Gather", gather},           {"Concat", concat_lists}, {"Unsqueeze", as_list},      {"Squeeze", as_number},
  };
  const auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

bool is_folded(const std::string& op) { return find_folding(op) != nullptr; }

bool fold(Call& call) {
  bool (*const folding)(Call&) = find_folding(call.node().op);
  return folding != nullptr && folding(call);
}

}  // namespace gpunn::interchange
