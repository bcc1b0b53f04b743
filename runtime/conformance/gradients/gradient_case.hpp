#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/case.hpp"

namespace gpunn::conformance {

using ops::apart;
using ops::constant;
using ops::f32;
using ops::Generator;
using ops::i32;
using ops::i64;
using ops::InputSpec;
using ops::integers;
using ops::Random;
using ops::ReferenceTensor;
using ops::uniform;

// A function of float64 tensors: one op of the reference, or a few.
using Function = std::function<std::vector<ReferenceTensor>(const std::vector<ReferenceTensor>& inputs)>;

// The source of a backward op's input: the gradient of a forward output, a forward input, or a forward output.
enum class Source { output_gradient, input, output };
struct Wire {
  Source source;
  std::size_t index;
};

// A backward op and the forward function whose gradient it should be.
struct GradientCase {
  std::string name;
  std::vector<InputSpec> inputs;  // of the forward function
  Function forward;
  int32_t op = 0;                         // the backward op
  graph::Attributes attrs;                // its attributes
  std::vector<Wire> wires;                // its inputs
  std::vector<std::size_t> with_respect;  // for each of its outputs, the forward input that it is the gradient of
  std::size_t differentiated = 0;         // the forward output that has a gradient
};

std::vector<GradientCase> linear_gradients();         // matmul, bias, convolution
std::vector<GradientCase> shape_gradients();          // pooling, reduction, element-wise, dropout
std::vector<GradientCase> normalization_gradients();  // batch norm of fewer rows than there are

// The differentiable cases of the families whose gradient is a single op. The op's gradient function tells which op
// that is and what it reads.
std::vector<GradientCase> family_gradients();

std::vector<GradientCase> all_gradients();

// The sum of weight * output `output` as a number, differentiated by every element of one input: differences of fourth
// order, (f(x-2h) - 8 f(x-h) + 8 f(x+h) - f(x+2h)) / 12h, whose error is h^4 f^(5) / 30.
ReferenceTensor finite_difference(const Function& forward, const std::vector<ReferenceTensor>& inputs,
                                  std::size_t input, std::size_t output, const ReferenceTensor& weight);

// A backward op ready to run, with its expected outputs.
struct GradientProblem {
  graph::OpSignature signature;
  std::vector<ReferenceTensor> inputs;
  std::vector<ReferenceTensor> expected;
};

// Of the backward op, without the gradients.
graph::OpSignature signature_of(const GradientCase& test);

GradientProblem make_problem(const GradientCase& test, Random& random);

}  // namespace gpunn::conformance
