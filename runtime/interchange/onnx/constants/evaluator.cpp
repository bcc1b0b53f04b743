#include "interchange/onnx/constants/evaluator.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace gpunn::interchange::constants {

namespace {

const EvaluatorRow* find_evaluator(const std::string& op) {
  static const std::map<std::string_view, EvaluatorRow> table = [] {
    std::map<std::string_view, EvaluatorRow> all;
    for (const auto& rows :
         {arithmetic_evaluators(), cast_evaluators(), convolution_evaluators(), function_evaluators(),
          generation_evaluators(), indexing_evaluators(), movement_evaluators(), normalization_evaluators(),
          pooling_evaluators(), product_evaluators(), quantization_evaluators(), reduction_evaluators(),
          resizing_evaluators(), scan_evaluators(), shaping_evaluators()}) {
      for (const EvaluatorRow& row : rows) all.emplace(row.op, row);
    }
    return all;
  }();
  const auto found = table.find(op);
  return found == table.end() ? nullptr : &found->second;
}

[[noreturn]] void refuse_type(Element element, const char* expected) {
  throw Unsupported("takes " + name_of(element) + "; expected " + expected);
}

}  // namespace

bool all_known(const Call& call) {
  for (std::size_t i = 0; i < call.count(); ++i) {
    if (call.has(i) && !call.input(i).constant) return false;
  }
  return true;
}

bool first_known(const Call& call) { return call.has(0) && call.input(0).constant; }

bool always_known(const Call&) { return true; }

void require_floating(const Constant& constant) {
  if (!computes_in(constant.element)) refuse_type(constant.element, "float16, bfloat16, float or double");
}

void require_integers(const Constant& constant) {
  if (!is_integer(constant.element) || constant.element == Element::boolean) refuse_type(constant.element, "integers");
}

void require_truths(const Constant& constant) {
  if (constant.element != Element::boolean) refuse_type(constant.element, "bool");
}

void require_numbers(const Constant& constant) {
  if (!computes_in(constant.element)) require_integers(constant);
}

void require_same_type(const Constant& a, const Constant& b) {
  if (a.element == b.element) return;
  throw Unsupported("takes " + name_of(a.element) + " and " + name_of(b.element) +
                    "; ONNX wants one type, as a Cast gives it");
}

GivenShape given_shape(const Call& call, std::size_t input) {
  GivenShape given;
  const Constant& wanted = call.constant(input, "the shape");
  if (is_floating(wanted.element)) throw Unsupported("the shape must be integers");
  for (const Size& size : wanted.integers) {
    if (size.of_batch && (given.batch || size.factor != 1)) {
      throw Unsupported("the shape depends on the size of the batch twice");
    }
    if (size.of_batch) given.batch = given.sizes.size();
    given.sizes.push_back(size.factor);
  }
  return given;
}

void give_rows(Call& call, Constant constant, const GivenShape& given) {
  Value value = constant_value(std::move(constant));
  if (given.batch) value.shape[*given.batch] = {1, true};
  call.give(std::move(value));
}

std::vector<double> numbers_of(const Constant& constant) {
  std::vector<double> result(constant.count());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = constant.number(i);
  return result;
}

std::vector<int64_t> integers_of(const Constant& constant) {
  if (is_floating(constant.element)) refuse_type(constant.element, "integers");
  std::vector<int64_t> result;
  result.reserve(constant.integers.size());
  for (const Size& size : constant.integers) {
    if (size.of_batch) throw Unsupported("computes a number that depends on the size of the batch");
    result.push_back(size.factor);
  }
  return result;
}

Constant rounded_constant(Element element, Shape shape, std::vector<double> values) {
  if (!is_floating(element)) throw Unsupported("gives " + name_of(element) + ", which holds no fractions");
  for (double& value : values) value = rounded(element, value);
  return numbers_constant(element, std::move(shape), std::move(values));
}

Constant truths_constant(Shape shape, const std::vector<bool>& values) {
  std::vector<Size> sizes;
  sizes.reserve(values.size());
  for (const bool value : values) sizes.push_back({value ? 1 : 0, false});
  return integers_constant(Element::boolean, std::move(shape), std::move(sizes));
}

Constant places_constant(Shape shape, const std::vector<int64_t>& values) {
  std::vector<Size> sizes;
  sizes.reserve(values.size());
  for (const int64_t value : values) sizes.push_back({value, false});
  return sizes_constant(std::move(shape), std::move(sizes));
}

std::vector<int64_t> axes_of(Call& call, std::size_t input) {
  return call.has(input) ? call.integers(input, "the dimensions") : call.list("axes");
}

std::vector<std::size_t> sound_axes(const Call& call, const std::vector<int64_t>& axes, std::size_t rank) {
  std::vector<std::size_t> result;
  std::set<std::size_t> seen;
  for (const int64_t axis : axes) {
    result.push_back(call.dimension(axis, rank));
    if (!seen.insert(result.back()).second) throw Unsupported("names dimension " + std::to_string(axis) + " twice");
  }
  return result;
}

void take_work(Call& call, const std::vector<int64_t>& factors) {
  constexpr double kMost = 1ULL << 31;  // some seconds
  constexpr int64_t kOfAnElement = 64;
  double all = 1;
  for (const int64_t factor : factors) all *= static_cast<double>(factor);
  if (!(all <= kMost)) {
    throw Unsupported("takes " + text(all) + " multiplications at import, more than any network's constants need");
  }
  call.importer().take_room({static_cast<int64_t>(all) / kOfAnElement});
}

Shape broadcast_steps(const Shape& from, const Shape& to) {
  const Shape strides = strides_of(from);
  Shape steps(to.size(), 0);
  for (std::size_t d = 0; d < from.size(); ++d) {
    if (from[d] != 1) steps[to.size() - from.size() + d] = strides[d];
  }
  return steps;
}

Constant strided(Call& call, const Constant& source, Shape shape, Shape steps, int64_t start) {
  Walk<1> walk(shape, {std::move(steps)}, {start});
  return moved(call, source, std::move(shape), [&](int64_t) {
    const auto place = static_cast<int64_t>(walk.place(0));
    walk.next();
    return place;
  });
}

Lines lines_along(const Shape& shape, std::size_t axis) {
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  return {.outer = element_count(Shape(shape.begin(), at)),
          .size = *at,
          .inner = element_count(Shape(at + 1, shape.end()))};
}

}  // namespace gpunn::interchange::constants

namespace gpunn::interchange {

bool is_folded(const std::string& op) { return constants::find_evaluator(op) != nullptr; }

bool fold(Call& call) {
  const constants::EvaluatorRow* row = call.node().domain.empty() ? constants::find_evaluator(call.node().op) : nullptr;
  if (row == nullptr || call.opset() < row->since || !row->is_known(call)) return false;
  row->evaluate(call);
  return true;
}

Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

int64_t broadcast_place(int64_t i, const Shape& to, const Shape& from) {
  int64_t place = 0, step = 1;
  for (std::size_t d = 0; d < to.size(); ++d) {
    const int64_t size = to[to.size() - 1 - d], at = i % size;
    i /= size;
    if (d >= from.size()) continue;
    const int64_t own = from[from.size() - 1 - d];
    if (own != 1) place += at * step;
    step *= own;
  }
  return place;
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (const Shape* shape : {&a, &b}) {
    for (std::size_t d = 0; d < shape->size(); ++d) {
      int64_t& size = result[result.size() - 1 - d];
      const int64_t own = (*shape)[shape->size() - 1 - d];
      if (own == 1 || own == size) continue;
      if (size != 1) {
        throw Unsupported("its constants are " + gpunn::to_string(a) + " and " + gpunn::to_string(b) +
                          ", which don't broadcast");
      }
      size = own;
    }
  }
  return result;
}

Constant transposed_constant(Call& call, const Constant& from, const std::vector<int64_t>& order) {
  const Shape strides = strides_of(from.shape);
  Shape shape, steps;
  for (const int64_t one : order) {
    shape.push_back(from.shape[static_cast<std::size_t>(one)]);
    steps.push_back(strides[static_cast<std::size_t>(one)]);
  }
  return constants::strided(call, from, std::move(shape), std::move(steps));
}

}  // namespace gpunn::interchange
