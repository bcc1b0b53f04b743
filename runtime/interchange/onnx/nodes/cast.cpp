// Numbers as another type of the file, whose values layers hold as f32.
#include "interchange/onnx/constants/number_format.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/operands.hpp"

namespace gpunn::interchange {

namespace {

// Rounded to a type of half precision and back.
Value rounded_to(Call& call, const Value& x, const char* dtype) {
  const Value half = elementwise(call, "op", {x}, {{"op", {"copy"}}, {"dtype", {dtype}}});
  return elementwise(call, "op", {half}, {{"op", {"copy"}}});
}

// Whether each number of a type is one of another.
bool holds_all(Element to, Element from) {
  const NumberFormat wide = format_of(to), narrow = format_of(from);
  if (to == from || from == Element::boolean) return true;
  if (wide.kind != NumberKind::integer || narrow.kind != NumberKind::integer) return false;
  if (wide.is_signed == narrow.is_signed) return wide.bits >= narrow.bits;
  return wide.is_signed && wide.bits > narrow.bits;
}

Value cast_to(Call& call, const Value& x, Element to) {
  const NumberKind kind = format_of(to).kind;
  if (kind == NumberKind::none || (kind == NumberKind::floating && !computes_in(to))) {
    throw Unsupported("makes " + name_of(to) + " of the data, which layers don't hold");
  }
  Value y = x;
  if (to == Element::boolean) {
    y = x.element == Element::boolean ? x : comparison_of(call, "not_equal", x, number(0));
  } else if (to == Element::f16 || to == Element::bf16) {
    constexpr int kExact = 8;  // bits of integers that each of these types holds
    const bool is_small = !is_floating(x.element) && format_of(x.element).bits <= kExact;
    if (x.element != to && !is_small) y = rounded_to(call, x, to == Element::f16 ? "f16" : "bf16");
  } else if (!is_floating(to) && !holds_all(to, x.element)) {
    if (is_floating(x.element)) {
      y = elementwise(call, "round", {x}, {{"mode", {"trunc"}}});
      y = elementwise(call, "add", {y, number(0)});  // integers have no -0
    }
    y = wrapped(call, y, to);
  }
  y.element = to;
  return y;
}

void cast(Call& call) { call.give(cast_to(call, call.data_anywhere(0), static_cast<Element>(call.integer("to", 0)))); }

void cast_like(Call& call) {
  const Value& like = call.input(1);
  call.give(cast_to(call, call.data_anywhere(0), like.element));
}

}  // namespace

std::vector<OpRow> cast_rows() { return {{"Cast", 6, cast}, {"CastLike", 15, cast_like}}; }

}  // namespace gpunn::interchange
