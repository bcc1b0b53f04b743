#include <gpunn/ops.h>

#include <cmath>
#include <numbers>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

double activate(int32_t activation, double x) {
  if (activation != GPUNN_ACTIVATION_RELU) return x;
  return x < 0 ? 0 : x;  // a NaN compares false and stays
}

namespace {

// y = f(x) by element.
template <class F>
void map(OracleCall& call, F f) {
  call.require(call.in(0).size() == call.out().size(), "y as large as x");
  for (std::size_t i = 0; i < call.out().size(); ++i) call.out()[i] = f(call.in(0)[i]);
}

// dx = f(dy, v) by element, v being x or y.
template <class F>
void map_backward(OracleCall& call, F f) {
  call.require(call.in(0).size() == call.in(1).size() && call.in(0).size() == call.out().size(), "three equal sizes");
  for (std::size_t i = 0; i < call.out().size(); ++i) call.out()[i] = f(call.in(0)[i], call.in(1)[i]);
}

void relu(OracleCall& call) {
  map(call, [](double x) { return activate(GPUNN_ACTIVATION_RELU, x); });
}

void relu_backward(OracleCall& call) {
  map_backward(call, [](double dy, double y) { return y > 0 ? dy : 0; });
}

void leaky_relu(OracleCall& call) {
  const double slope = call.attrs<gpunn_leaky_relu_attrs>().slope;
  map(call, [=](double x) { return x > 0 ? x : slope * x; });
}

void leaky_relu_backward(OracleCall& call) {
  const double slope = call.attrs<gpunn_leaky_relu_attrs>().slope;
  map_backward(call, [=](double dy, double x) { return x > 0 ? dy : slope * dy; });
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

void sigmoid(OracleCall& call) { map(call, sigmoid_of); }

void sigmoid_backward(OracleCall& call) {
  map_backward(call, [](double dy, double y) { return dy * y * (1 - y); });
}

void tanh(OracleCall& call) {
  map(call, [](double x) { return std::tanh(x); });
}

void tanh_backward(OracleCall& call) {
  map_backward(call, [](double dy, double y) { return dy * (1 - y * y); });
}

void silu(OracleCall& call) {
  map(call, [](double x) { return x * sigmoid_of(x); });
}

void silu_backward(OracleCall& call) {
  map_backward(call, [](double dy, double x) {
    const double s = sigmoid_of(x);
    return dy * s * (1 + x * (1 - s));
  });
}

// The P of gpunn_gelu_attrs and its derivative.
struct Gate {
  double value;
  double slope;
};

Gate normal_gate(double x) {
  const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  return {(1 + std::erf(x / std::numbers::sqrt2)) / 2, density};
}

Gate tanh_gate(double x) {
  const double factor = std::sqrt(2 / std::numbers::pi);
  const double t = std::tanh(factor * (x + 0.044715 * x * x * x));
  return {(1 + t) / 2, (1 - t * t) / 2 * factor * (1 + 3 * 0.044715 * x * x)};
}

Gate gelu_gate(const OracleCall& call, double x) {
  return call.attrs<gpunn_gelu_attrs>().tanh != 0 ? tanh_gate(x) : normal_gate(x);
}

void gelu(OracleCall& call) {
  map(call, [&](double x) { return x * gelu_gate(call, x).value; });
}

void gelu_backward(OracleCall& call) {
  map_backward(call, [&](double dy, double x) {
    const Gate gate = gelu_gate(call, x);
    return dy * (gate.value + x * gate.slope);
  });
}

}  // namespace

std::vector<OracleEntry> activation_oracle() {
  return {{GPUNN_OP_RELU, relu},
          {GPUNN_OP_RELU_BACKWARD, relu_backward},
          {GPUNN_OP_LEAKY_RELU, leaky_relu},
          {GPUNN_OP_LEAKY_RELU_BACKWARD, leaky_relu_backward},
          {GPUNN_OP_SIGMOID, sigmoid},
          {GPUNN_OP_SIGMOID_BACKWARD, sigmoid_backward},
          {GPUNN_OP_TANH, tanh},
          {GPUNN_OP_TANH_BACKWARD, tanh_backward},
          {GPUNN_OP_GELU, gelu},
          {GPUNN_OP_GELU_BACKWARD, gelu_backward},
          {GPUNN_OP_SILU, silu},
          {GPUNN_OP_SILU_BACKWARD, silu_backward}};
}

}  // namespace gpunn::conformance
