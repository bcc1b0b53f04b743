#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "ops/op.hpp"

// Code shared by the optimizers' updates: w, g and lr are their first three inputs, and the first `decayed` elements
// decay.
namespace gpunn::ops {

// --- Decompositions ---

// g + weight_decay w, for the first `decayed`.
template <class Attrs>
ValueId decayed_gradient(Composition& c, const Attrs& a) {
  if (a.weight_decay == 0) return c.in(1);
  return c.add(c.in(1), c.of_first(c.scaled(c.in(0), a.weight_decay), a.decayed));
}

// w (1 - lr weight_decay) for the elements that decay.
template <class Attrs>
ValueId shrunk_weights(Composition& c, const Attrs& a) {
  if (a.weight_decay == 0) return c.in(0);
  return c.sub(c.in(0), c.of_first(c.mul(c.scaled(c.in(0), a.weight_decay), c.in(2)), a.decayed));
}

inline ValueId stepped(Composition& c, ValueId w, ValueId step) { return c.sub(w, c.mul(step, c.in(2))); }

// x / (sqrt(square) + epsilon)
inline ValueId over_root(Composition& c, ValueId x, ValueId square, float epsilon) {
  return c.div(x, c.add(c.sqrt(square), c.constant(epsilon)));
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
