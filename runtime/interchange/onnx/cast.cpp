// Numbers as another type of the file, whose values layers hold as f32.
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
  if (to == from || from == Element::boolean) return true;
  const bool is_unsigned = from == Element::u8 || from == Element::u16 || from == Element::u32 || from == Element::u64;
  const bool to_unsigned = to == Element::u8 || to == Element::u16 || to == Element::u32 || to == Element::u64;
  if (is_floating(from) || is_floating(to)) return false;
  if (is_unsigned == to_unsigned) return bytes_of(to) >= bytes_of(from);
  return is_unsigned && bytes_of(to) > bytes_of(from);
}

Value cast_to(Call& call, const Value& x, Element to) {
  if (bytes_of(to) == 0) throw Unsupported("makes " + name_of(to) + " of the data, which layers don't hold");
  Value y = x;
  if (to == Element::boolean) {
    y = x.element == Element::boolean ? x : comparison_of(call, "not_equal", x, number(0));
  } else if (to == Element::f16 || to == Element::bf16) {
    const bool is_small = !is_floating(x.element) && bytes_of(x.element) == 1;
    if (x.element != to && !is_small) y = rounded_to(call, x, to == Element::f16 ? "f16" : "bf16");
  } else if (!is_floating(to) && !holds_all(to, x.element)) {
    const bool is_whole = !is_floating(x.element);
    y = wrapped(call, is_whole ? x : elementwise(call, "round", {x}, {{"mode", {"trunc"}}}), to);
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
