#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "ops/op.hpp"
#include "ops/traced.hpp"

// Code shared by the optimizers' updates: w, g and lr are their first three inputs, and the first `decayed` elements
// decay.
namespace gpunn::ops {

// --- Decompositions ---

// What a formula of op_formulas.inc reads and changes: w, g and the learning rate are the op's first three inputs.
struct TracedUpdate {
  traced::Traced w, g, rate, decay;
};

template <class Attrs>
TracedUpdate traced_update(Composition& c, const Attrs& a) {
  using traced::Traced;
  const bool all = a.decayed == c.shape(c.in(0))[0];
  const Traced decay = a.weight_decay == 0 || a.decayed == 0 ? Traced::none()
                       : all                                 ? Traced(a.weight_decay)
                             : Traced(c, c.of_first(c.constant(a.weight_decay, c.shape(c.in(0))), a.decayed));
  return {Traced(c, c.in(0)), Traced(c, c.in(1)), Traced(c, c.in(2)), decay};
}

// --- Error analyses ---

// Rounding errors of one weight's step, each in units of the largest summand.
inline constexpr double kStepError = 8;

// The values that an optimizer reads of element i, as absolute values.
struct UpdatedElement {
  double w, g, decay;
  double gradient() const { return g + decay * w; }  // |g| + weight decay |w|: before anything cancels
};

inline double magnitude(const Evaluation& e, std::size_t input, std::size_t i) {
  return std::abs(e.inputs.at(input).values[i]);
}

template <class Attrs>
UpdatedElement updated_element(const Evaluation& e, std::size_t i, const Attrs& a) {
  return {magnitude(e, 0, i), magnitude(e, 1, i), static_cast<int64_t>(i) < a.decayed ? a.weight_decay : 0.0};
}

inline double learning_rate(const Evaluation& e) { return std::abs(e.inputs.at(2).values.at(0)); }

// --- Cases ---

inline const std::vector<int64_t> kParameterCounts = {1, 7, 64, 1031, 70001};

// Of the elements, about two in three decay; some weights are 0, so that the step itself shows.
inline int64_t some_decayed(int64_t n) { return (2 * n + 2) / 3; }
inline InputSpec some_weights(int64_t n) { return f32({n}, sometimes(0, 3, uniform())); }
inline std::string decay_note(int64_t first) { return std::to_string(first) + " decay"; }

// Parameters, gradients and a rate with as many states, as a training meets them.
inline std::vector<InputSpec> typical_update(std::size_t states) {
  std::vector<InputSpec> inputs{typical_parameters(), typical_parameters(), scalar(1e-4)};
  inputs.insert(inputs.end(), states, f32({kTypicalParameters}, constant(0)));
  return inputs;
}

// A learning rate as users write it: so small that repeated updates stay finite.
inline std::vector<InputSpec> update_request(Written& r, std::size_t states) {
  if (r.sizes.size() != 1) bad(r, "the number of parameters");
  std::vector<InputSpec> inputs{f32(r.sizes), f32(r.sizes), scalar(1e-6)};
  inputs.insert(inputs.end(), states, f32(r.sizes));
  return inputs;
}

}  // namespace gpunn::ops
