// LBFGS_UPDATE.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "ops/op.hpp"
#include "ops/optimizer.hpp"

namespace gpunn::ops::lbfgs {

namespace {

enum Input : std::size_t { kWeights, kGradient, kRate, kStep, kLastGradient, kLastStep, kSteps, kChanges };

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

struct Pair {
  Values step, change;
  double product() const { return dot(step, change); }
  double inverse() const { return product() > 0 ? 1 / product() : 0; }
};

// What an update finds out before it looks for a direction.
struct Start {
  Values gradient;  // with its decay
  double size = 0;  // the sum of its absolute values
  bool finite = false, good = false;
  std::vector<Pair> pairs;  // the new one among them

  template <class In>
  Start(const gpunn_lbfgs_attrs& attrs, const In& in) : gradient(in(kGradient)) {
    const Values &w = in(kWeights), &last = in(kLastGradient);
    const std::size_t n = w.size();
    Pair next{in(kLastStep), Values(n)};
    for (std::size_t i = 0; i < n; ++i) {
      if (static_cast<int64_t>(i) < attrs.decayed && attrs.weight_decay != 0) gradient[i] += attrs.weight_decay * w[i];
      size += std::abs(gradient[i]);
      next.change[i] = gradient[i] - last[i];
    }
    finite = size <= 3e38;
    good = finite && next.product() > 1e-10;
    const std::size_t count = n == 0 ? 0 : in(kSteps).size() / n;
    const auto row = [n](const Values& of, std::size_t i) {
      const auto begin = of.begin() + static_cast<std::ptrdiff_t>(i * n);
      return Values(begin, begin + static_cast<std::ptrdiff_t>(n));
    };
    for (std::size_t i = good ? 1 : 0; i < count; ++i) pairs.push_back({row(in(kSteps), i), row(in(kChanges), i)});
    if (good) pairs.push_back(std::move(next));
  }

  double rate(double lr, double step) const { return step == 0 && size > 1 ? lr / size : lr; }
};

void add(Values& to, double factor, const Values& values) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * values[i];
}

// Nocedal and Wright, Numerical Optimization, algorithm 7.4, with the sign turned.
Values direction_of(const Start& start) {
  Values q = start.gradient;
  for (double& x : q) x = -x;
  const std::size_t count = start.pairs.size();
  Values share(count);
  for (std::size_t i = count; i-- > 0;) {
    const Pair& pair = start.pairs[i];
    share[i] = pair.inverse() * dot(pair.step, q);
    add(q, -share[i], pair.change);
  }
  if (count == 0) return q;
  const Pair& newest = start.pairs.back();
  const double scale = newest.product() > 0 ? newest.product() / dot(newest.change, newest.change) : 1;
  for (double& x : q) x *= scale;
  for (std::size_t i = 0; i < count; ++i) {
    const Pair& pair = start.pairs[i];
    add(q, share[i] - pair.inverse() * dot(pair.change, q), pair.step);
  }
  return q;
}

void lbfgs_update_reference(ReferenceCall& call) {
  const Start start(call.attrs<gpunn_lbfgs_attrs>(), [&](std::size_t i) -> const Values& { return call.in(i); });
  Values &w = call.out(0), &last_step = call.out(2);
  w = call.in(kWeights);
  call.out(1) = call.in(kLastGradient);
  last_step = call.in(kLastStep);
  call.out(3) = call.in(kSteps);
  call.out(4) = call.in(kChanges);
  if (!start.finite) {
    for (double& x : last_step) x /= 2;
    return add(w, -1, last_step);
  }
  call.out(1) = start.gradient;
  const std::size_t n = w.size();
  for (std::size_t i = 0; i < start.pairs.size(); ++i) {
    std::ranges::copy(start.pairs[i].step, call.out(3).begin() + static_cast<std::ptrdiff_t>(i * n));
    std::ranges::copy(start.pairs[i].change, call.out(4).begin() + static_cast<std::ptrdiff_t>(i * n));
  }
  const Values direction = direction_of(start);
  const bool falls = dot(start.gradient, direction) <= -1e-9;
  const double rate = start.rate(call.in(kRate).at(0), call.in(kStep).at(0));
  for (std::size_t i = 0; i < n; ++i) last_step[i] = falls ? rate * direction[i] : 0;
  add(w, 1, last_step);
}

// --- The rounding errors ---

double norm(const Values& x) { return std::sqrt(dot(x, x)); }

double absolute_dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] * b[i]);
  return sum;
}

// A vector with the bounds of its errors, in units of roundoff: of each element, and of their Euclidean norm. A step of
// the recursion projects the errors along with the vector, which lengthens them by |s| |y| / s y at most; the bounds of
// the elements alone would double each time.
struct Erring {
  Values x, error;
  double norm_of_error = 0;
  double sums;  // the error of a sum over all elements, relative to that of absolute values

  explicit Erring(const Start& start, const Values& gradient_error)
      : x(start.gradient), error(gradient_error), norm_of_error(norm(gradient_error)) {
    for (double& value : x) value = -value;
    sums = accumulation(static_cast<double>(x.size()));
  }

  double error_of_dot(const Values& with) const { return norm(with) * norm_of_error + sums * absolute_dot(with, x); }

  // x += factor * values, the factor being off by `off`, of which `along` follows from the errors of x and only turns
  // these.
  void add_scaled(double factor, double off, double along, const Values& values, double lengthens) {
    double local = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double added = factor * values[i];
      x[i] += added;
      const double rounding = 2 * (std::abs(added) + std::abs(x[i])) + std::abs(values[i]) * off;
      error[i] += rounding + std::abs(values[i]) * along;
      local += rounding * rounding;
    }
    norm_of_error = lengthens * norm_of_error + std::sqrt(local);
  }

  void scale(double factor, double relative) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] *= factor;
      error[i] = std::abs(factor) * error[i] + std::abs(x[i]) * relative;
    }
    norm_of_error = std::abs(factor) * norm_of_error + norm(x) * relative;
  }
};

Values direction_error(const Start& start, const Values& gradient_error) {
  Erring q(start, gradient_error);
  const std::size_t count = start.pairs.size();
  Values share(count), share_error(count), relative(count), lengthens(count);
  for (std::size_t i = count; i-- > 0;) {
    const auto& [step, change] = start.pairs[i];
    const double inverse = start.pairs[i].inverse();
    relative[i] = inverse * (q.sums + 2) * absolute_dot(step, change) + 2;
    lengthens[i] = std::max(1.0, inverse * norm(step) * norm(change));
    share[i] = inverse * dot(step, q.x);
    const double along = inverse * norm(step) * q.norm_of_error;
    const double off = inverse * q.sums * absolute_dot(step, q.x) + std::abs(share[i]) * relative[i];
    share_error[i] = off + along;
    q.add_scaled(-share[i], off, along, change, lengthens[i]);
  }
  if (count == 0) return q.error;
  const auto& [step, change] = start.pairs.back();
  const double product = dot(step, change);
  q.scale(product > 0 ? product / dot(change, change) : 1, relative.back() + q.sums + 4);
  for (std::size_t i = 0; i < count; ++i) {
    const Pair& pair = start.pairs[i];
    const double inverse = pair.inverse(), back = inverse * dot(pair.change, q.x);
    const double along = inverse * norm(pair.change) * q.norm_of_error;
    const double off = inverse * q.sums * absolute_dot(pair.change, q.x) + std::abs(back) * relative[i];
    q.add_scaled(share[i] - back, off + share_error[i], along, pair.step, lengthens[i]);
  }
  return q.error;
}

std::vector<double> lbfgs_scale(const Evaluation& e, std::size_t output) {
  const auto attrs = e.signature.attrs.as<gpunn_lbfgs_attrs>();
  const Start start(attrs, [&](std::size_t i) -> const Values& { return e.inputs.at(i).values; });
  const std::size_t n = start.gradient.size();
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  Values gradient_error(n);
  for (std::size_t i = 0; i < n; ++i) gradient_error[i] = 2 * updated_element(e, i, attrs).gradient();
  if (!start.finite) {
    for (std::size_t i = 0; i < n && output == 0; ++i) scale[i] = 2 * (magnitude(e, 0, i) + magnitude(e, kLastStep, i));
  } else if (output == 1) {
    scale = gradient_error;
  } else if (output == 4 && start.good) {
    for (std::size_t i = 0; i < n; ++i) {
      scale[scale.size() - n + i] = gradient_error[i] + 2 * std::abs(start.pairs.back().change[i]);
    }
  } else if (output == 0 || output == 2) {
    const Values error = direction_error(start, gradient_error);
    const double rate = std::abs(start.rate(learning_rate(e), e.inputs.at(kStep).values.at(0)));
    const Values& step = e.reference.at(2).values;
    const double sums = accumulation(static_cast<double>(n)) + 4;
    for (std::size_t i = 0; i < n; ++i) {
      if (step[i] != 0) scale[i] = rate * error[i] + sums * std::abs(step[i]);
      if (output == 0) scale[i] += 2 * (magnitude(e, 0, i) + std::abs(step[i]));
    }
  }
  return scale;
}

// --- Cases ---

Attributes lbfgs_attrs(float decay, int64_t decayed) {
  return Attributes::of(gpunn_lbfgs_attrs{.struct_size = 0, .weight_decay = decay, .decayed = decayed});
}

// Numbers above 0, so that the product of a step and a change is, too, and far enough to be the same in any order.
Generator positive() { return uniform(0.5, 1.5); }

// As many of the first elements are 0, or negative.
Generator from(int64_t first, double sign) {
  return [=](Random& random, int64_t i) { return random.uniform(0.5, 1.5) * (i < first ? sign : 1); };
}

struct History {
  int64_t pairs = 1;
  int64_t empty = 0;  // the first are zeros
  bool bent = false;  // the oldest pair has a product below 0
  bool grows = true;  // the new pair is a good one
  int64_t taken = 5;  // steps
};

CaseSpec lbfgs_case(int64_t n, const History& history, float decay, int64_t decayed, const std::string& what) {
  const Shape pairs{history.pairs, n};
  const Generator steps = history.bent ? from(n, -1) : from(history.empty * n, 0);
  return {.attrs = lbfgs_attrs(decay, decayed),
          .inputs = {f32({n}, uniform(-0.1, 0.1)), f32({n}, uniform(1, 2)), scalar(0.5), step(history.taken),
                     f32({n}, history.grows ? uniform(-1, 0) : uniform(3, 4)), f32({n}, positive()), f32(pairs, steps),
                     f32(pairs, from(history.empty * n, 0))},
          .note = decay_note(decayed) + ", " + what};
}

std::vector<CaseSpec> lbfgs_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t n : kParameterCounts) {
    const int64_t some = some_decayed(n);
    cases.push_back(lbfgs_case(n, {.pairs = 1}, 0, n, "one pair"));
    cases.push_back(lbfgs_case(n, {.pairs = 3}, 0.1F, some, "a new pair"));
    cases.push_back(lbfgs_case(n, {.pairs = 3, .grows = false}, 0.1F, 0, "no new pair"));
    cases.push_back(lbfgs_case(n, {.pairs = 4, .empty = 2}, 0, n, "a history to be filled"));
    cases.push_back(lbfgs_case(n, {.pairs = 3, .empty = 3, .grows = false, .taken = 0}, 0.1F, n, "the first step"));
    cases.push_back(lbfgs_case(n, {.pairs = 4, .bent = true, .grows = false}, 0, n, "a pair that counts for nothing"));
  }
  cases.push_back(lbfgs_case(1031, {.pairs = 20}, 0.1F, 500, "a long history"));
  cases.push_back(lbfgs_case(0, {.pairs = 2}, 0, 0, "no element"));
  return cases;
}

CaseSpec lbfgs_of_size(int64_t n) { return lbfgs_case(n, {.pairs = 10}, 0, n, "ten pairs"); }

CaseSpec lbfgs_request(Written& r) {
  if (r.sizes.size() != 1) bad(r, "the number of parameters");
  return lbfgs_of_size(r.sizes[0]);
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_LBFGS_UPDATE,
       .flops = flops_per_input<10, kSteps>,
       .reference = lbfgs_update_reference,
       .tolerance = {{lbfgs_scale, "the two-loop recursion, with sums in any order"}},
       .cases = lbfgs_cases,
       .typical = lbfgs_of_size(kTypicalParameters),
       .largest = kLargestSquared,
       .few = "m",
       .request = lbfgs_request},
  };
}

}  // namespace gpunn::ops::lbfgs
