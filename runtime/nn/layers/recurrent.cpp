// Recurrent layers, unrolled over the steps of a sample; tensors are named as PyTorch names them, but for those that it
// does not have.
#include <gpunn/ops.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "graph/expressions.hpp"
#include "nn/layers/families.hpp"
#include "nn/layers/formulas.hpp"
#include "nn/layers/parts.hpp"

namespace gpunn::nn {

namespace {

using graph::Attributes;
using graph::Expressions;
using graph::kNoValue;
using graph::ValueId;

// A function of a cell with its numbers, and the bound of its argument.
struct CellFunction {
  std::string name;
  double alpha = 1, beta = 0, clip = 0;

  ValueId operator()(Expressions& e, ValueId x) const {
    if (clip > 0) x = clamped(e, x, -clip, clip);
    if (name == "sigmoid") return e.op(GPUNN_OP_SIGMOID, {x});
    if (name == "tanh") return e.tanh(x);
    if (name == "relu") return e.op(GPUNN_OP_RELU, {x});
    if (name == "leaky_relu") {
      const gpunn_leaky_relu_attrs attrs{.struct_size = 0, .slope = static_cast<float>(alpha)};
      return e.op(GPUNN_OP_LEAKY_RELU, {x}, Attributes::of(attrs));
    }
    if (name == "affine") return line_of(e, x, alpha, beta);
    if (name == "hard_sigmoid") return hard_sigmoid_of(e, x, alpha, beta);
    if (name == "scaled_tanh") return e.scaled(e.tanh(e.scaled(x, beta)), alpha);
    if (name == "thresholded_relu") {
      const ValueId threshold = e.constant(alpha);
      return e.mul(e.maximum(x, threshold), e.less(threshold, x));  // without a product of an infinity and 0
    }
    if (name == "elu") return elu_of(e, x, alpha);
    if (name == "softsign") return softsign_of(e, x);
    if (name == "softplus") return softplus_of(e, x);
    fail("there is no activation '" + name + "'");
  }
};

CellFunction function_of(const LayerContext& c, const std::string& prefix) {
  return {c.arguments.choice(prefix + "activation"), c.arguments.number(prefix + "alpha"),
          c.arguments.number(prefix + "beta"), c.arguments.number("clip")};
}

// A state is [N, units]; kNoValue stands for zeros, whose products are left out.
struct State {
  ValueId h = kNoValue, cell = kNoValue;
};

// The tensors of one direction.
struct Weights {
  ValueId state = kNoValue;      // [gates * units, units]
  ValueId bias = kNoValue;       // [gates * units], where it is not part of the input's product
  ValueId peepholes = kNoValue;  // [3 * units]: input, output, forget
};

// One of equal parts of the last dimension of x, which is a matrix or a vector.
ValueId part(Expressions& e, ValueId x, int64_t index, int64_t size) {
  return e.slice(x, e.rank(x) - 1, index * size, size);
}

ValueId sum(Expressions& e, ValueId a, ValueId b) { return a == kNoValue ? b : b == kNoValue ? a : e.add(a, b); }

ValueId with_bias(Expressions& e, ValueId x, ValueId bias) {
  return bias == kNoValue ? x : e.op(GPUNN_OP_BIAS_ADD, {x, bias});
}

// How a cell computes its next state. `x` is the input's product of the step, [N, gates * units].
struct Cell {
  int64_t gates;
  State (*next)(const LayerContext&, Expressions&, const Weights&, ValueId x, const State&);
};

ValueId state_product(const LayerContext& c, const Weights& w, ValueId h) {
  return h == kNoValue ? kNoValue : weighted_sums(c, h, w.state);
}

State next_of_rnn(const LayerContext& c, Expressions& e, const Weights& w, ValueId x, const State& before) {
  return {function_of(c, "")(e, sum(e, x, state_product(c, w, before.h)))};
}

// Gates are input, forget, candidate, output, as in PyTorch.
State next_of_lstm(const LayerContext& c, Expressions& e, const Weights& w, ValueId x, const State& before) {
  const int64_t units = c.arguments.integer("units");
  const CellFunction gate = function_of(c, "gate_");
  const ValueId all = sum(e, x, state_product(c, w, before.h));
  // The peepholes of the output gate see the new cell state.
  const auto argument = [&](int64_t index, int64_t peephole, ValueId cell) {
    const ValueId own = part(e, all, index, units);
    if (w.peepholes == kNoValue || cell == kNoValue) return own;
    return e.add(own, e.mul(cell, part(e, w.peepholes, peephole, units)));
  };
  const ValueId input = gate(e, argument(0, 0, before.cell));
  const ValueId candidate = function_of(c, "")(e, part(e, all, 2, units));
  ValueId cell = e.mul(input, candidate);
  if (before.cell != kNoValue) {
    const ValueId forget =
        c.arguments.boolean("coupled_gates") ? e.sub(e.constant(1), input) : gate(e, argument(1, 2, before.cell));
    cell = e.add(e.mul(forget, before.cell), cell);
  }
  const ValueId output = gate(e, argument(3, 1, cell));
  CellFunction of_cell = function_of(c, "output_");
  of_cell.clip = 0;  // as in ONNX Runtime: a cell state is not an argument of the products' functions
  return {e.mul(output, of_cell(e, cell)), cell};
}

// Gates are reset, update, candidate, as in PyTorch.
State next_of_gru(const LayerContext& c, Expressions& e, const Weights& w, ValueId x, const State& before) {
  const int64_t units = c.arguments.integer("units");
  const CellFunction gate = function_of(c, "gate_"), activation = function_of(c, "");
  const bool linear_before_reset = c.arguments.boolean("linear_before_reset");
  const auto rows = [&](int64_t from, int64_t count) { return e.slice(w.state, 0, from * units, count * units); };
  const auto biased = [&](ValueId product, int64_t from, int64_t count) {
    return w.bias == kNoValue ? product : with_bias(e, product, e.slice(w.bias, 0, from * units, count * units));
  };
  ValueId of_gates = e.slice(x, 1, 0, 2 * units), of_state = kNoValue;
  if (before.h != kNoValue && linear_before_reset) {
    const ValueId all = with_bias(e, weighted_sums(c, before.h, w.state), w.bias);
    of_gates = e.add(of_gates, e.slice(all, 1, 0, 2 * units));
    of_state = part(e, all, 2, units);
  } else {
    if (before.h != kNoValue) of_gates = e.add(of_gates, weighted_sums(c, before.h, rows(0, 2)));
    of_gates = biased(of_gates, 0, 2);
  }
  const ValueId reset = gate(e, part(e, of_gates, 0, units)), update = gate(e, part(e, of_gates, 1, units));
  ValueId argument = part(e, x, 2, units);
  if (linear_before_reset) {
    if (of_state != kNoValue) {
      argument = e.add(argument, e.mul(reset, of_state));
    } else if (w.bias != kNoValue) {
      argument = e.add(argument, e.mul(reset, e.slice(w.bias, 0, 2 * units, units)));
    }
  } else {
    if (before.h != kNoValue) {
      argument = e.add(argument, weighted_sums(c, e.mul(reset, before.h), rows(2, 1)));
    }
    argument = biased(argument, 2, 1);
  }
  const ValueId candidate = activation(e, argument);
  const ValueId fresh = e.mul(e.sub(e.constant(1), update), candidate);
  return {before.h == kNoValue ? fresh : e.add(fresh, e.mul(update, before.h))};
}

// The steps of x[N, T, F] as [N, F] each. Halves of halves: the gradient of a slice is as large as what it is cut from.
void append_steps(Expressions& e, ValueId x, std::vector<ValueId>& steps) {
  const Shape shape = e.shape(x);
  if (shape[1] == 1) return steps.push_back(e.view(x, {shape[0], shape[2]}));
  const int64_t half = shape[1] / 2;
  append_steps(e, e.slice(x, 1, 0, half), steps);
  append_steps(e, e.slice(x, 1, half, shape[1] - half), steps);
}

// The states that a direction starts from: inputs [N, directions, units], tensors of the layer, or zeros.
State initial_state(const LayerContext& c, Expressions& e, int64_t direction, const std::vector<ValueId>& tensors,
                    bool needs_zeros) {
  const Shape x = c.input_shape();
  const int64_t units = c.arguments.integer("units");
  std::vector<ValueId> states;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Shape state{x[0], units};
    if (c.inputs.size() > i + 1) {
      states.push_back(e.view(e.slice(c.inputs[i + 1], 1, direction, 1), state));
    } else if (tensors[i] != kNoValue) {
      states.push_back(e.expand(e.slice(tensors[i], 0, direction, 1), state));
    } else {
      states.push_back(needs_zeros ? e.constant(0, state) : kNoValue);
    }
  }
  return {states[0], states.size() > 1 ? states[1] : kNoValue};
}

// What a direction gives: the hidden state after each step, in the order of the steps, and the last state.
struct Run {
  std::vector<ValueId> states;
  State last;
};

Run run_direction(const LayerContext& c, Expressions& e, const Cell& cell, bool reverse, State state) {
  const Shape x = c.input_shape();
  const int64_t units = c.arguments.integer("units"), width = cell.gates * units;
  const std::string suffix = reverse ? "_l0_reverse" : "_l0";
  const auto tensor = [&](const std::string& name, Shape shape, bool is_weight) {
    return c.parameter({.name = name + suffix,
                        .shape = std::move(shape),
                        .init = is_weight ? InitKind::kaiming_uniform : InitKind::bias_uniform,
                        .fan_in = units,  // PyTorch's, for all of them
                        .decayed = is_weight});
  };
  const ValueId input_weight = tensor("weight_ih", {width, x[2]}, true);
  Weights w{.state = tensor("weight_hh", {width, units}, true)};
  ValueId bias = kNoValue;
  if (c.arguments.boolean("bias")) {
    bias = tensor("bias_ih", {width}, false);
    w.bias = tensor("bias_hh", {width}, false);
  }
  const bool is_lstm = cell.next == next_of_lstm;
  if (is_lstm && c.arguments.boolean("peepholes")) w.peepholes = tensor("weight_peephole", {3 * units}, true);
  // Only the reset gate of a GRU tells the two biases apart.
  if (cell.next != next_of_gru && bias != kNoValue) bias = e.add(bias, std::exchange(w.bias, kNoValue));

  // One product for all steps.
  const ValueId rows = e.view(c.inputs[0], {x[0] * x[1], x[2]});
  const ValueId projected = with_bias(e, weighted_sums(c, rows, input_weight), bias);
  std::vector<ValueId> steps;
  append_steps(e, e.view(projected, {x[0], x[1], width}), steps);
  Run run{std::vector<ValueId>(steps.size()), {}};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::size_t at = reverse ? steps.size() - 1 - i : i;
    state = cell.next(c, e, w, steps[at], state);
    run.states[at] = state.h;
  }
  run.last = state;
  return run;
}

ValueId recurrent(const LayerContext& c, const Cell& cell) {
  const Shape x = c.input_shape();
  require_rank(x, 3, "[N, steps, features]", "");
  constexpr int64_t kMostSteps = 4096;
  if (x[1] > kMostSteps) {
    fail("the steps of a sample are unrolled, at most " + std::to_string(kMostSteps) + "; found an input of " +
         to_string(x));
  }
  const int64_t units = c.arguments.integer("units");
  const std::string direction = c.arguments.choice("direction"), output = c.arguments.choice("output");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  for (std::size_t i = 1; i < c.inputs.size(); ++i) {
    if (c.input_shape(i) != Shape{x[0], directions, units}) {
      fail("expected a first state of [N, " + std::to_string(directions) + ", " + std::to_string(units) + "], found " +
           c.input_text(i));
    }
  }
  require_sane_size({x[1], 2 * cell.gates * units});
  Expressions e(c.graph, c.layer.name);
  const std::string kind = c.arguments.choice("initial_state");
  std::vector<ValueId> tensors(cell.next == next_of_lstm ? 2 : 1, kNoValue);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (kind == "zeros" || c.inputs.size() > i + 1) continue;
    const Parameter tensor{.name = i == 0 ? "initial_h" : "initial_c", .shape = {directions, units}};
    tensors[i] = kind == "trained" ? c.parameter(tensor) : c.buffer(tensor);
  }
  std::vector<Run> runs;
  for (int64_t i = 0; i < directions; ++i) {
    // Each weight has a part in the result, and so a gradient: it is that of a product with zeros in a single step.
    const State first = initial_state(c, e, i, tensors, x[1] == 1);
    runs.push_back(run_direction(c, e, cell, direction == "reverse" || i == 1, first));
  }
  const auto of_directions = [&](auto&& value_of) {
    std::vector<ValueId> values;
    for (const Run& run : runs) values.push_back(value_of(run));
    return joined(e, values, 1);
  };
  if (output == "last") return of_directions([](const Run& run) { return run.last.h; });
  const Shape step{x[0], 1, directions * units};
  std::vector<ValueId> states;
  for (std::size_t t = 0; t < runs.front().states.size(); ++t) {
    states.push_back(e.view(of_directions([&](const Run& run) { return run.states[t]; }), step));
  }
  if (output == "sequence_and_cell") {
    states.push_back(e.view(of_directions([](const Run& run) { return run.last.cell; }), step));
  }
  return joined(e, states, 1);
}

ValueId lstm(const LayerContext& c) { return recurrent(c, {4, next_of_lstm}); }
ValueId gru(const LayerContext& c) { return recurrent(c, {3, next_of_gru}); }
ValueId rnn(const LayerContext& c) { return recurrent(c, {1, next_of_rnn}); }

}  // namespace

LayerFunctions recurrent_layers() { return {{"lstm", lstm}, {"gru", gru}, {"rnn", rnn}}; }

}  // namespace gpunn::nn
