#include "config/layers/families.hpp"
#include "config/layers/keys.hpp"

namespace gpunn::config {

namespace {

using V = LayerValue;

void add_keys(std::vector<LayerKey>& keys, std::vector<LayerKey> more) {
  keys.insert(keys.end(), more.begin(), more.end());
}

// The keys of a function of a cell: `activation`, and the numbers that some functions have.
std::vector<LayerKey> function_keys(const std::string& prefix, const std::string& fallback, const std::string& of) {
  constexpr double kLargest = 3.4e38;  // of f32
  return {{prefix + "activation",
           V::choice,
           fallback,
           {},
           {"sigmoid", "tanh", "relu", "softsign", "softplus", "hard_sigmoid", "leaky_relu", "elu", "affine",
            "scaled_tanh", "thresholded_relu"},
           "The function of " + of + "."},
          {prefix + "alpha",
           V::number,
           "1",
           between(-kLargest, kLargest),
           {},
           "Its slope: hard_sigmoid, leaky_relu, elu, affine and scaled_tanh; of thresholded_relu the threshold."},
          {prefix + "beta",
           V::number,
           "0",
           between(-kLargest, kLargest),
           {},
           "The term of hard_sigmoid and affine; scaled_tanh is alpha * tanh(beta * x)."}};
}

std::vector<LayerKey> cell_keys(const std::vector<std::string>& outputs, const std::string& about_outputs) {
  return {
      {"units", V::integer, "", between(1, kMostChannels), {}, "Numbers of the state."},
      {"direction",
       V::choice,
       "forward",
       {},
       {"forward", "reverse", "bidirectional"},
       "From the first step on, from the last one backwards, or both: the states of the two follow each other."},
      {"output", V::choice, "sequence", {}, outputs, about_outputs},
      {"bias", V::boolean, "true", {}, {}, "Whether the input's and the state's products each have a bias."},
      {"initial_state",
       V::choice,
       "zeros",
       {},
       {"zeros", "trained", "constant"},
       "The state in front of the first step, unless it is an input: zeros, a parameter, or a buffer."},
      {"clip",
       V::number,
       "0",
       between(0, 1e9),
       {},
       "Products stay within this distance of 0 in front of their functions; 0 means no limit."},
  };
}

const char* const kOutputs =
    "`sequence` is the state of each step, [steps, units], `last` the state after the last step, [units]; both "
    "directions have twice as many.";

LayerType lstm() {
  std::vector<LayerKey> keys = cell_keys(
      {"sequence", "last", "sequence_and_cell"},
      std::string(kOutputs) + " `sequence_and_cell` has the last cell state as one step more, behind the sequence.");
  add_keys(keys, {{"peepholes", V::boolean, "false", {}, {}, "Whether the gates see the cell state."},
                  {"coupled_gates", V::boolean, "false", {}, {}, "Whether the forget gate is 1 - the input gate."}});
  add_keys(keys, function_keys("gate_", "sigmoid", "the gates"));
  add_keys(keys, function_keys("", "tanh", "the candidate of the cell state"));
  add_keys(keys, function_keys("output_", "tanh", "the cell state, in front of the output gate"));
  return {"lstm",
          "Long short-term memory over [steps, features]. A second and a third input are the first hidden and cell "
          "states, [directions, units]. (Hochreiter and Schmidhuber, 1997.)",
          1,
          std::move(keys),
          nullptr,
          3};
}

LayerType gru() {
  std::vector<LayerKey> keys = cell_keys({"sequence", "last"}, kOutputs);
  add_keys(keys, {{"linear_before_reset",
                   V::boolean,
                   "true",
                   {},
                   {},
                   "Whether the reset gate multiplies the state's product, as in PyTorch, or the state itself."}});
  add_keys(keys, function_keys("gate_", "sigmoid", "the gates"));
  add_keys(keys, function_keys("", "tanh", "the candidate of the state"));
  return {"gru",
          "Gated recurrent units over [steps, features]. A second input is the first state, [directions, units]. (Cho "
          "et al., 2014.)",
          1,
          std::move(keys),
          nullptr,
          2};
}

LayerType rnn() {
  std::vector<LayerKey> keys = cell_keys({"sequence", "last"}, kOutputs);
  add_keys(keys, function_keys("", "tanh", "the state"));
  return {"rnn",
          "A recurrent layer over [steps, features]: a state is the activation of two products, by the input's step "
          "and by the state before. A second input is the first state, [directions, units]. (Elman, 1990.)",
          1,
          std::move(keys),
          nullptr,
          2};
}

}  // namespace

std::vector<LayerType> recurrent_layers() { return {lstm(), gru(), rnn()}; }

}  // namespace gpunn::config
