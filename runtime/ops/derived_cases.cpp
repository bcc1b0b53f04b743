#include "ops/derived_cases.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "ops/op.hpp"

namespace gpunn::ops {

namespace {

using Change = std::function<void(std::vector<double>& values)>;

std::string name_of_input(const Case& test, std::size_t input) {
  return std::string(op_info(test.signature.op).row->signature.input(input).name);
}

// The case with one input changed, before its family derives others of it.
Case changed(const Case& of, std::size_t input, const std::string& note, Change change) {
  Case test = of;
  test.name += ", " + note;
  test.derive = [derive = of.derive, input, change = std::move(change)](std::vector<ReferenceTensor>& inputs) {
    change(inputs[input].values);
    for (double& value : inputs[input].values) value = rounded(value, inputs[input].type.dtype);
    if (derive) derive(inputs);
  };
  return test;
}

// Which inputs the family derives of others: they are never changed by themselves.
std::vector<bool> derived_inputs(const Case& of) {
  std::vector<bool> result(of.signature.inputs.size(), false);
  if (!of.derive) return result;
  Random random(1, "derived inputs");
  Case plain = of;
  plain.derive = {};
  const std::vector<ReferenceTensor> before = plain.inputs(random);
  std::vector<ReferenceTensor> after = before;
  of.derive(after);
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = before[i].values != after[i].values;
  return result;
}

// --- Values ---

// A few elements, so that one of them meets whatever the other inputs have.
Change some_of(double value) {
  return [value](std::vector<double>& values) {
    for (std::size_t sixth = 1; sixth < 6; ++sixth) values[values.size() * sixth / 6] = value;
  };
}

Change times(double factor) {
  return [factor](std::vector<double>& values) {
    for (double& value : values) value *= factor;
  };
}

void add_values(const Case& of, std::vector<Case>& cases) {
  const double largest = op_info(of.signature.op).largest;
  const std::vector<bool> derived = derived_inputs(of);
  for (std::size_t i = 0; i < of.signature.inputs.size(); ++i) {
    const TensorType& type = of.signature.inputs[i];
    if (!is_floating(type.dtype) || type.elements() == 0 || derived[i]) continue;
    const std::string in = " in " + name_of_input(of, i);
    cases.push_back(changed(of, i, "a NaN" + in, some_of(kNan)));
    // A rate or a share that is infinite means nothing.
    if (!type.shape.empty()) {
      cases.push_back(changed(of, i, "an infinity" + in, some_of(kInf)));
      cases.push_back(changed(of, i, "a negative infinity" + in, some_of(-kInf)));
    }
    cases.push_back(changed(of, i, "zeros" + in, times(0)));
    cases.push_back(changed(of, i, "large numbers" + in, times(largest)));
    cases.push_back(changed(of, i, "small numbers" + in, times(1 / largest)));
    // A root or a quotient makes them large, and few of their digits are left.
    if (largest >= kLargest) cases.push_back(changed(of, i, "subnormal numbers" + in, times(1e-40)));
  }
}

// Zeros in one input do not undo what is not a number in another, unless the op says so.
void add_zeros_beside_nan(const Case& of, std::vector<Case>& cases) {
  const std::vector<bool> derived = derived_inputs(of);
  const auto& types = of.signature.inputs;
  const auto fits = [&](std::size_t i) {
    return is_floating(types[i].dtype) && types[i].elements() > 1 && !derived[i];
  };
  for (std::size_t i = 0; i < types.size(); ++i) {
    for (std::size_t k = 0; k < types.size(); ++k) {
      if (i == k || !fits(i) || !fits(k)) continue;
      const Case zeros = changed(of, i, "zeros in " + name_of_input(of, i), times(0));
      cases.push_back(changed(zeros, k, "a NaN in " + name_of_input(of, k), some_of(kNan)));
      cases.push_back(changed(zeros, k, "an infinity in " + name_of_input(of, k), some_of(kInf)));
    }
  }
}

// --- Sizes ---

// Dimensions that change together: a size by its name in the row, a dimension that "..." stands for, or one of inputs
// that the row says nothing of but whose shapes are equal.
struct Axis {
  std::string name;
  std::vector<std::pair<std::size_t, std::size_t>> places;  // input and dimension
  int64_t size = 0;
};

std::vector<Axis> axes_of(const Case& test) {
  const Signature& signature = op_info(test.signature.op).row->signature;
  const std::vector<TensorType>& inputs = test.signature.inputs;
  std::map<std::string, Axis> axes;
  bool alike = true;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Pattern& pattern = signature.input(i);
    alike = alike && (!pattern.computed || inputs[i].shape == inputs[0].shape);
    for (std::size_t d = 0; d < inputs[i].shape.size(); ++d) {
      if (!pattern.computed && d >= pattern.sizes.size() && !pattern.rest) continue;
      const bool named = d < pattern.sizes.size();
      if (named && pattern.sizes[d].front() >= '0' && pattern.sizes[d].front() <= '9') continue;
      const std::string name =
          named ? std::string(pattern.sizes[d]) : "dimension " + std::to_string(d) + (pattern.computed ? "?" : "");
      Axis& axis = axes[name];
      axis.name = named ? name : "dimension " + std::to_string(d);
      axis.places.emplace_back(i, d);
      axis.size = inputs[i].shape[d];
    }
  }
  std::vector<Axis> result;
  for (auto& [name, axis] : axes) {
    if (alike || !name.ends_with('?')) result.push_back(std::move(axis));
  }
  return result;
}

CaseSpec spec_of(const Case& test, const std::string& note) {
  return {.attrs = test.signature.attrs, .inputs = test.specs, .note = note, .derive = test.derive};
}

// Nothing where the sizes do not fit the attributes.
std::optional<Case> made(const Case& of, CaseSpec spec) {
  try {
    return make_case(of.signature.op, std::move(spec));
  } catch (const Error&) {
    return std::nullopt;
  }
}

// `most`: what the other sizes are cut down to.
std::optional<Case> resized(const Case& of, const Axis& axis, int64_t size,
                            int64_t most = std::numeric_limits<int64_t>::max()) {
  CaseSpec spec = spec_of(of, axis.name + " = " + std::to_string(size));
  for (const Axis& other : axes_of(of)) {
    for (const auto& [input, dimension] : other.places) {
      spec.inputs[input].type.shape.at(dimension) = std::min(other.size, most);
    }
  }
  for (const auto& [input, dimension] : axis.places) spec.inputs[input].type.shape.at(dimension) = size;
  // No more rows count than there are, which the first input always says.
  const Shape& rows = spec.inputs.empty() ? Shape{} : spec.inputs[0].type.shape;
  for (std::size_t i = 0; i < spec.inputs.size() && !rows.empty(); ++i) {
    if (name_of_input(of, i) != "count") continue;
    spec.inputs[i].value = [most = rows[0], before = spec.inputs[i].value](Random& random, int64_t index) {
      return std::min(before(random, index), static_cast<double>(most));
    };
  }
  return made(of, std::move(spec));
}

// With other dimensions for "...".
std::optional<Case> with_rest(const Case& of, const Shape& rest) {
  CaseSpec spec = spec_of(of, "other dimensions");
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    const Pattern& pattern = op_info(of.signature.op).row->signature.input(i);
    if (!pattern.rest) continue;
    Shape& shape = spec.inputs[i].type.shape;
    shape.resize(pattern.sizes.size());
    shape.insert(shape.end(), rest.begin(), rest.end());
  }
  return made(of, std::move(spec));
}

// Sizes beyond what fits in a block, in a grid's second dimension, in 16 bits.
constexpr int64_t kLong = 2'053, kVeryLong = 65'543;
constexpr int64_t kShort = 3;  // beside them
constexpr int64_t kMostElements = 1 << 21;
// A size of each remainder of the widest vectors and tiles that divide a row.
constexpr int64_t kFirstRemainder = 17, kRemainders = 16;

void add_if_small(std::optional<Case> test, std::vector<Case>& cases) {
  if (test && elements_of(*test) <= kMostElements) cases.push_back(std::move(*test));
}

void add_sizes(const Case& of, std::vector<Case>& cases) {
  for (const Axis& axis : axes_of(of)) {
    const bool few = axis.name == op_info(of.signature.op).few;
    add_if_small(resized(of, axis, 0), cases);
    for (int64_t i = 0; i < kRemainders; ++i) add_if_small(resized(of, axis, kFirstRemainder + i), cases);
    for (const int64_t large : {kLong, kVeryLong}) {
      if (few) continue;
      std::optional<Case> test = resized(of, axis, large, kShort);
      add_if_small(test ? std::move(test) : resized(of, axis, large), cases);
    }
  }
}

void add_ranks(const Case& of, std::vector<Case>& cases) {
  const std::vector<Pattern>& inputs = op_info(of.signature.op).row->signature.inputs;
  if (std::ranges::none_of(inputs, &Pattern::rest)) return;
  for (const Shape& rest : {Shape{2, 3, 2, 5, 3}, Shape{3, 2, 5}, Shape{kVeryLong}, Shape{1, kLong}}) {
    add_if_small(with_rest(of, rest), cases);
  }
}

// --- Labels and indices ---

// What a label or an index of the case must stay below: a size of its inputs or, where they lack it, of what it makes.
int64_t end_of_indices(const Case& test, std::string_view size) {
  const Signature& signature = op_info(test.signature.op).row->signature;
  for (std::size_t i = 0; i < test.signature.inputs.size(); ++i) {
    const std::vector<std::string_view>& sizes = signature.input(i).sizes;
    const auto found = std::ranges::find(sizes, size);
    if (found != sizes.end()) return test.signature.inputs[i].shape.at(static_cast<std::size_t>(found - sizes.begin()));
  }
  const Shape& made = test.signature.outputs.front().shape;
  return size == "n" ? made.front() : made.back();
}

void add_indices(const Case& of, std::vector<Case>& cases) {
  for (std::size_t i = 0; i < of.signature.inputs.size(); ++i) {
    const std::string name = name_of_input(of, i);
    if (name != "label" && name != "index") continue;
    const auto end = static_cast<double>(end_of_indices(of, name == "label" ? "C" : "n"));
    const std::pair<const char*, double> wrong[] = {{"-1", -1},
                                                    {"the number of classes or rows", end},
                                                    {"-2^31", std::numeric_limits<int32_t>::min()},
                                                    {"2^31 - 1", std::numeric_limits<int32_t>::max()}};
    for (const auto& [text, value] : wrong) {
      cases.push_back(changed(of, i, name + " of " + text, [value = value](std::vector<double>& values) {
        for (std::size_t k = 0; k < values.size(); k += 3) values[k] = value;
      }));
    }
  }
}

// --- One tensor as two inputs ---

// Of each two inputs that may be one, the largest case that is no large one.
void add_shared(const Ops& ops, std::vector<Case>& cases) {
  std::map<std::tuple<int32_t, std::size_t, std::size_t>, Case> chosen;
  for (const Case& of : all_cases(ops)) {
    const OpInfo& info = op_info(of.signature.op);
    const std::vector<TensorType>& types = of.signature.inputs;
    const auto fits = [&](std::size_t i) {
      return types[i].elements() > 1 && std::ranges::find(info.in_place, static_cast<int>(i)) == info.in_place.end();
    };
    for (std::size_t i = 1; i < types.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (types[i] != types[k] || !fits(i) || !fits(k) || elements_of(of) > kOrdinaryElements) continue;
        const std::vector<bool> derived = derived_inputs(of);
        if (derived[i] || derived[k]) continue;
        const auto [found, first] = chosen.try_emplace({info.id, k, i}, of);
        if (!first && elements_of(of) > elements_of(found->second)) found->second = of;
      }
    }
  }
  for (auto& [which, test] : chosen) {
    const auto [op, k, i] = which;
    test.name += ", one tensor as " + name_of_input(test, k) + " and " + name_of_input(test, i);
    test.same_memory.assign(test.signature.inputs.size(), -1);
    test.same_memory[i] = static_cast<int>(k);
    test.derive = [derive = test.derive, to = i, from = k](std::vector<ReferenceTensor>& inputs) {
      inputs[to] = inputs[from];
      if (derive) derive(inputs);
    };
    cases.push_back(std::move(test));
  }
}

bool has_empty_tensor(const Case& test) {
  const auto empty = [](const TensorType& type) { return type.elements() == 0; };
  return std::ranges::any_of(test.signature.inputs, empty) || std::ranges::any_of(test.signature.outputs, empty);
}

// Of each op the smallest that is large enough to show which element is which.
std::vector<Case> small_cases(const Ops& ops) {
  constexpr int64_t kLeast = 12;
  std::map<int32_t, Case> chosen;
  for (Case& test : all_cases(ops)) {
    const auto [found, first] = chosen.try_emplace(test.signature.op, test);
    if (first) continue;
    const int64_t now = has_empty_tensor(found->second) ? 0 : elements_of(found->second);
    const int64_t then = has_empty_tensor(test) ? 0 : elements_of(test);
    if (now < kLeast ? then > now : then >= kLeast && then < now) found->second = std::move(test);
  }
  std::vector<Case> result;
  for (auto& [op, test] : chosen) result.push_back(std::move(test));
  return result;
}

// Of each op one for each of its first attributes, which choose what it computes.
std::vector<Case> ordinary_cases(const Ops& ops) {
  constexpr std::size_t kMostAttributes = 4;
  std::map<int32_t, std::vector<Case>> chosen;
  for (Case& test : one_case_each(ops)) {
    const int32_t op = test.signature.op;
    chosen[op] = {std::move(test)};
  }
  for (Case& test : all_cases(ops)) {
    if (elements_of(test) > kOrdinaryElements) continue;
    std::vector<Case>& of = chosen[test.signature.op];
    const auto found =
        std::ranges::find_if(of, [&](const Case& other) { return other.signature.attrs == test.signature.attrs; });
    if (found != of.end()) {
      if (elements_of(test) > elements_of(*found)) *found = std::move(test);
    } else if (of.size() < kMostAttributes) {
      of.push_back(std::move(test));
    }
  }
  std::vector<Case> result;
  for (auto& [op, cases] : chosen) std::ranges::move(cases, std::back_inserter(result));
  return result;
}

}  // namespace

std::vector<Case> derived_cases(const Ops& ops) {
  std::vector<Case> cases;
  for (const Case& of : ordinary_cases(ops)) {
    add_values(of, cases);
    add_zeros_beside_nan(of, cases);
    add_indices(of, cases);
  }
  add_shared(ops, cases);
  for (const Case& of : small_cases(ops)) {
    add_sizes(of, cases);
    add_ranks(of, cases);
  }
  return cases;
}

}  // namespace gpunn::ops
