#include "conformance/gradients/gradient_case.hpp"

#include <iterator>

#include "ops/op.hpp"

namespace gpunn::conformance {

using ops::forward;
using ops::rounded;

namespace {

constexpr double kDifferenceStep = 1e-3;

double weighted_sum(const Function& forward, const std::vector<ReferenceTensor>& inputs, std::size_t output,
                    const ReferenceTensor& weight) {
  const ReferenceTensor y = forward(inputs).at(output);
  double sum = 0;
  for (std::size_t i = 0; i < y.values.size(); ++i) sum += weight.values.at(i) * y.values[i];
  return sum;
}

ReferenceTensor stored(ReferenceTensor tensor) {
  for (double& value : tensor.values) value = rounded(value, tensor.type.dtype);
  return tensor;
}

}  // namespace

ReferenceTensor finite_difference(const Function& forward, const std::vector<ReferenceTensor>& inputs,
                                  std::size_t input, std::size_t output, const ReferenceTensor& weight) {
  std::vector<ReferenceTensor> moved = inputs;
  ReferenceTensor gradient{inputs.at(input).type, {}};
  for (std::size_t i = 0; i < inputs[input].values.size(); ++i) {
    const double x = inputs[input].values[i];
    const auto f = [&](double offset) {
      moved[input].values[i] = x + offset;
      return weighted_sum(forward, moved, output, weight);
    };
    gradient.values.push_back(
        (f(-2 * kDifferenceStep) - 8 * f(-kDifferenceStep) + 8 * f(kDifferenceStep) - f(2 * kDifferenceStep)) /
        (12 * kDifferenceStep));
    moved[input].values[i] = x;
  }
  return gradient;
}

graph::OpSignature signature_of(const GradientCase& test) {
  std::vector<ReferenceTensor> inputs;
  for (const InputSpec& spec : test.inputs) {
    inputs.push_back({spec.type, std::vector<double>(static_cast<std::size_t>(spec.type.elements()), 0)});
  }
  const std::vector<ReferenceTensor> outputs = test.forward(inputs);
  graph::OpSignature signature{test.op, test.attrs, {}, {}};
  for (const Wire& wire : test.wires) {
    signature.inputs.push_back(wire.source == Source::output_gradient ? outputs.at(test.differentiated).type
                               : wire.source == Source::input         ? inputs.at(wire.index).type
                                                                      : outputs.at(wire.index).type);
  }
  signature.outputs = ops::op_info(test.op).infer(test.attrs, signature.inputs);
  return signature;
}

GradientProblem make_problem(const GradientCase& test, Random& random) {
  std::vector<ReferenceTensor> inputs;
  for (const InputSpec& spec : test.inputs) {
    ReferenceTensor tensor{spec.type, {}};
    for (int64_t i = 0; i < spec.type.elements(); ++i) {
      tensor.values.push_back(rounded(spec.value(random, i), spec.type.dtype));
    }
    inputs.push_back(std::move(tensor));
  }
  const std::vector<ReferenceTensor> outputs = test.forward(inputs);
  ReferenceTensor weight{outputs.at(test.differentiated).type, {}};
  for (int64_t i = 0; i < weight.type.elements(); ++i) {
    weight.values.push_back(rounded(random.uniform(-1, 1), weight.type.dtype));
  }

  GradientProblem problem{signature_of(test), {}, {}};
  for (const Wire& wire : test.wires) {
    problem.inputs.push_back(wire.source == Source::output_gradient ? weight
                             : wire.source == Source::input         ? inputs.at(wire.index)
                                                                    : stored(outputs.at(wire.index)));
  }
  for (const std::size_t input : test.with_respect) {
    problem.expected.push_back(finite_difference(test.forward, inputs, input, test.differentiated, weight));
  }
  return problem;
}

std::vector<GradientCase> all_gradients() {
  std::vector<GradientCase> result;
  for (auto source : {linear_gradients, shape_gradients, normalization_gradients, family_gradients}) {
    std::vector<GradientCase> cases = source();
    std::move(cases.begin(), cases.end(), std::back_inserter(result));
  }
  return result;
}

}  // namespace gpunn::conformance
