// Polynomials of f32 after a reduction of the range: S. L. Moshier, Cephes Mathematical Library, release 2.2 (1992),
// single precision.
#include <cmath>
#include <initializer_list>
#include <numbers>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Expressions;
using graph::ValueId;

constexpr double kHalfPi = std::numbers::pi / 2, kQuarterPi = std::numbers::pi / 4;

ValueId polynomial(Expressions& e, ValueId z, std::initializer_list<double> coefficients) {
  auto next = coefficients.begin();
  ValueId y = e.scaled(z, *next++);
  while (next + 1 != coefficients.end()) y = e.mul(e.add(y, e.constant(*next++)), z);
  return e.add(y, e.constant(*next));
}

// x + x z p(z), z = x^2
ValueId odd_series(Expressions& e, ValueId x, std::initializer_list<double> coefficients) {
  const ValueId z = e.mul(x, x);
  return e.add(e.mul(e.mul(polynomial(e, z, coefficients), z), x), x);
}

ValueId magnitude(Expressions& e, ValueId x) { return e.maximum(x, e.scaled(x, -1)); }
ValueId negated(Expressions& e, ValueId x) { return e.scaled(x, -1); }
ValueId is_negative(Expressions& e, ValueId x) { return e.less(x, e.constant(0)); }

// sin(x + quarters pi / 2). x - n pi / 2 is taken in three parts, the first of which is exact up to an x of 1e5.
// Nothing of the sine of a larger one would be right.
ValueId sine(Expressions& e, ValueId x, int quarters) {
  const ValueId n = rounded(e, e.scaled(x, 1 / kHalfPi));
  ValueId r = x;
  for (const double part : {1.5703125, 4.837512969970703125e-4, 7.54978995489188216e-8}) {
    r = e.sub(r, e.scaled(n, part));
  }
  constexpr double kLargest = 1e5;
  r = e.select(e.less_equal(magnitude(e, x), e.constant(kLargest)), r, e.constant(std::nan("")));
  const ValueId z = e.mul(r, r);
  const ValueId s = odd_series(e, r, {-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1});
  const ValueId even =
      e.mul(e.mul(polynomial(e, z, {2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2}), z), z);
  const ValueId c = e.add(e.sub(even, e.scaled(z, 0.5)), e.constant(1));
  const ValueId turns = e.add(n, e.constant(quarters)), half_turns = floor(e, e.scaled(turns, 0.5));
  const ValueId is_odd = e.sub(turns, e.scaled(half_turns, 2));
  const ValueId is_turned = e.sub(half_turns, e.scaled(floor(e, e.scaled(half_turns, 0.5)), 2));
  const ValueId y = e.select(is_odd, c, s);
  return e.select(is_turned, negated(e, y), y);
}

ValueId sin(Expressions& e, ValueId x) { return sine(e, x, 0); }
ValueId cos(Expressions& e, ValueId x) { return sine(e, x, 1); }
ValueId tan(Expressions& e, ValueId x) { return e.div(sin(e, x), cos(e, x)); }

ValueId asin_series(Expressions& e, ValueId x) {
  return odd_series(e, x, {4.2163199048e-2, 2.4181311049e-2, 4.5470025998e-2, 7.4953002686e-2, 1.6666752422e-1});
}

// 2 asin(sqrt((1 - |x|) / 2)) = acos(|x|)
ValueId acos_near_one(Expressions& e, ValueId x) {
  const ValueId rest = e.scaled(e.sub(e.constant(1), magnitude(e, x)), 0.5);
  return e.scaled(asin_series(e, e.sqrt(rest)), 2);
}

ValueId asin(Expressions& e, ValueId x) {
  const ValueId far = e.sub(e.constant(kHalfPi), acos_near_one(e, x));
  const ValueId signed_far = e.select(is_negative(e, x), negated(e, far), far);
  return e.select(e.less_equal(magnitude(e, x), e.constant(0.5)), asin_series(e, x), signed_far);
}

ValueId acos(Expressions& e, ValueId x) {
  const ValueId far = acos_near_one(e, x);
  const ValueId signed_far = e.select(is_negative(e, x), e.sub(e.constant(2 * kHalfPi), far), far);
  const ValueId near = e.sub(e.constant(kHalfPi), asin_series(e, x));
  return e.select(e.less_equal(magnitude(e, x), e.constant(0.5)), near, signed_far);
}

ValueId atan(Expressions& e, ValueId x) {
  constexpr double kTangentOfThreeEighths = 2.414213562373095, kTangentOfEighth = 0.4142135623730950;
  const ValueId a = magnitude(e, x), one = e.constant(1);
  const ValueId is_large = e.less(e.constant(kTangentOfThreeEighths), a);
  const ValueId is_middle = e.less(e.constant(kTangentOfEighth), a);
  const ValueId turned =
      e.select(is_large, e.div(e.constant(-1), a), e.select(is_middle, e.div(e.sub(a, one), e.add(a, one)), a));
  const ValueId base =
      e.select(is_large, e.constant(kHalfPi), e.select(is_middle, e.constant(kQuarterPi), e.constant(0)));
  const ValueId series =
      odd_series(e, turned, {8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1});
  const ValueId y = e.add(base, series);
  return e.select(is_negative(e, x), negated(e, y), y);
}

// exp(x) / 2, which is finite where exp(x) is not yet.
ValueId half_exp(Expressions& e, ValueId x) {
  const ValueId root = e.exp(e.scaled(x, 0.5));
  return e.mul(e.scaled(root, 0.5), root);
}

ValueId sinh(Expressions& e, ValueId x) {
  const ValueId far = e.sub(half_exp(e, x), half_exp(e, negated(e, x)));
  const ValueId near = odd_series(e, x, {2.03721912945e-4, 8.33028376239e-3, 1.66667160211e-1});
  return e.select(e.less(magnitude(e, x), e.constant(1)), near, far);
}

ValueId cosh(Expressions& e, ValueId x) { return e.add(half_exp(e, x), half_exp(e, negated(e, x))); }

ValueId asinh(Expressions& e, ValueId x) {
  // Beyond kLarge x^2 overflows, and log(2 |x|) is exact to f32.
  constexpr double kLarge = 1e10;
  const ValueId a = magnitude(e, x), is_large = e.less(e.constant(kLarge), a);
  const ValueId root = e.select(is_large, a, e.sqrt(e.add(e.mul(a, a), e.constant(1))));
  const ValueId far = e.add(e.log(e.scaled(e.add(a, root), 0.5)), e.constant(std::numbers::ln2));
  const ValueId signed_far = e.select(is_negative(e, x), negated(e, far), far);
  const ValueId near = odd_series(e, x, {2.0122003309e-2, -4.2699340972e-2, 7.4847586088e-2, -1.6666288134e-1});
  return e.select(e.less(a, e.constant(0.5)), near, signed_far);
}

ValueId acosh(Expressions& e, ValueId x) {
  constexpr double kLarge = 1e10;
  const ValueId z = e.sub(x, e.constant(1)), is_large = e.less(e.constant(kLarge), x);
  const ValueId root = e.select(is_large, x, e.sqrt(e.mul(z, e.add(x, e.constant(1)))));
  const ValueId far = e.add(e.log(e.scaled(e.add(x, root), 0.5)), e.constant(std::numbers::ln2));
  const ValueId near =
      e.mul(polynomial(e, z, {1.7596881071e-3, -7.5272886713e-3, 2.6454905019e-2, -1.1784741703e-1, 1.4142135263}),
            e.sqrt(z));
  return e.select(e.less(z, e.constant(0.5)), near, far);
}

ValueId atanh(Expressions& e, ValueId x) {
  const ValueId one = e.constant(1);
  const ValueId far = e.scaled(e.log(e.div(e.add(one, x), e.sub(one, x))), 0.5);
  const ValueId near =
      odd_series(e, x, {1.81740078349e-1, 8.24370301058e-2, 1.46691431730e-1, 1.99782164500e-1, 3.33337300303e-1});
  return e.select(e.less(magnitude(e, x), e.constant(0.5)), near, far);
}

template <ValueId (*function)(Expressions&, ValueId)>
ValueId layer(const LayerContext& c) {
  Expressions e(c.graph, c.layer.name);
  return function(e, c.inputs[0]);
}

}  // namespace

LayerFunctions trigonometry_layers() {
  return {{"sin", layer<sin>},     {"cos", layer<cos>},     {"tan", layer<tan>},    {"asin", layer<asin>},
          {"acos", layer<acos>},   {"atan", layer<atan>},   {"sinh", layer<sinh>},  {"cosh", layer<cosh>},
          {"asinh", layer<asinh>}, {"acosh", layer<acosh>}, {"atanh", layer<atanh>}};
}

}  // namespace gpunn::nn
