// Decompositions from the formulas of gpunn/op_formulas.inc: a formula is called with numbers that, instead of being
// computed with, note what is done to them as ops of a graph.
#pragma once

#include <gpunn/op_attrs.hpp>

#include <cmath>
#include <functional>
#include <numbers>
#include <type_traits>
#include <vector>

#include "ops/composition.hpp"

namespace gpunn::ops {
namespace traced {

// A value of a graph, or a number. What is done to numbers alone gives a number.
class Traced {
 public:
  Traced(double number) : number_(number) {}  // NOLINT(google-explicit-constructor): formulas mix both
  Traced(Composition& c, ValueId value) : c_(&c), value_(value) {}

  // A term that is not there: nor is what it multiplies, and a sum is what else it adds.
  static Traced none() {
    Traced none(0);
    none.none_ = true;
    return none;
  }

  bool is_number() const { return c_ == nullptr; }
  ValueId in(Composition& c) const { return is_number() ? c.constant(number_) : value_; }

  friend Traced operator+(const Traced& a, const Traced& b) {
    if (a.none_) return b;
    if (b.none_) return a;
    return joined(a, b, std::plus<>(), &Composition::add);
  }
  friend Traced operator-(const Traced& a, const Traced& b) {
    if (b.none_) return a;
    return joined(a, b, std::minus<>(), &Composition::sub);
  }
  friend Traced operator*(const Traced& a, const Traced& b) {
    if (a.none_ || b.is(1)) return a;
    if (b.none_ || a.is(1)) return b;
    if (a.is_number() && !b.is_number()) return {*b.c_, b.c_->scaled(b.value_, a.number_)};
    if (b.is_number() && !a.is_number()) return {*a.c_, a.c_->scaled(a.value_, b.number_)};
    return joined(a, b, std::multiplies<>(), &Composition::mul);
  }
  friend Traced operator/(const Traced& a, const Traced& b) {
    return joined(a, b, std::divides<>(), &Composition::div);
  }
  friend Traced operator-(const Traced& x) { return Traced(-1) * x; }
  // 1 where it holds, else 0.
  friend Traced operator<(const Traced& a, const Traced& b) { return joined(a, b, std::less<>(), &Composition::less); }
  friend Traced operator>(const Traced& a, const Traced& b) { return b < a; }

  bool is(double number) const { return is_number() && number_ == number; }
  Traced function(double (*of_number)(double), ValueId (Composition::*f)(ValueId)) const {
    if (is_number()) return of_number(number_);
    return {*c_, (c_->*f)(value_)};
  }
  Traced op(int32_t id) const { return {*c_, c_->op(id, {value_})}; }
  Traced chosen(const Traced& a, const Traced& b) const {
    if (is_number()) return number_ != 0 ? a : b;
    return {*c_, c_->select(value_, a.in(*c_), b.in(*c_))};
  }

 private:
  template <class Numbers>
  static Traced joined(const Traced& a, const Traced& b, Numbers of_numbers,
                       ValueId (Composition::*f)(ValueId, ValueId)) {
    if (a.is_number() && b.is_number()) return static_cast<double>(of_numbers(a.number_, b.number_));
    Composition& c = a.is_number() ? *b.c_ : *a.c_;
    return {c, (c.*f)(a.in(c), b.in(c))};
  }

  Composition* c_ = nullptr;
  ValueId value_ = graph::kNoValue;
  double number_ = 0;
  bool none_ = false;
};

inline Traced exp(const Traced& x) { return x.function(std::exp, &Composition::exp); }
inline Traced sqrt(const Traced& x) { return x.function(std::sqrt, &Composition::sqrt); }
inline Traced erf(const Traced& x) { return x.function(std::erf, &Composition::erf); }
inline Traced sigmoid(const Traced& x) { return x.is_number() ? 1 / (1 + exp(-x)) : x.op(GPUNN_OP_SIGMOID); }
inline Traced normal(const Traced& x) { return 0.5 * (1 + erf(std::numbers::sqrt2 / 2 * x)); }
inline Traced normal_density(const Traced& x) {
  return std::numbers::inv_sqrtpi / std::numbers::sqrt2 * exp(-0.5 * (x * x));
}
inline Traced select(const Traced& condition, const Traced& a, const Traced& b) { return condition.chosen(a, b); }

#include <gpunn/op_formulas.inc>

}  // namespace traced

// The decomposition of an element-wise op.
template <int32_t op>
std::vector<ValueId> formula_parts(Composition& c) {
  using traced::Traced;
  const traced::Formula<op> formula{c.attrs<plugin::OpAttrs<op>>()};
  const auto x = [&c](std::size_t i) { return Traced(c, c.in(i)); };
  if constexpr (std::is_invocable_v<traced::Formula<op>, Traced>) {
    return {formula(x(0)).in(c)};
  } else {
    return {formula(x(0), x(1)).in(c)};
  }
}

}  // namespace gpunn::ops
