#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/oracle.hpp"
#include "conformance/values.hpp"

namespace gpunn::conformance {

// One op at one shape with a way to make its inputs. The data is made when the case runs.
struct Case {
  std::string name;  // shapes, attributes and what is special
  graph::OpSignature signature;
  std::function<std::vector<OracleTensor>(Random& random)> inputs;
};

// --- How cases are written ---

// The value of element `index` of an input.
using Generator = std::function<double(Random& random, int64_t index)>;

Generator uniform(double low = -1, double high = 1);
Generator integers(int64_t low, int64_t high);  // both included
Generator constant(double value);
Generator listed(std::vector<double> values);                       // over and over again
Generator sometimes(double value, int64_t one_in, Generator rest);  // `value` at about one of `one_in`

struct InputSpec {
  TensorType type;
  Generator value;
};

InputSpec f32(Shape shape, Generator value = uniform());
InputSpec f64(Shape shape, Generator value = uniform());
InputSpec i32(Shape shape, Generator value);
InputSpec i64(Shape shape, Generator value);
InputSpec u8(Shape shape, Generator value = integers(0, 255));

// Replaces inputs by what depends on others (a saved output of the forward op).
using Derivation = std::function<void(std::vector<OracleTensor>& inputs)>;

struct CaseSpec {
  int32_t op = 0;
  graph::Attributes attrs = {};
  std::vector<InputSpec> inputs = {};
  std::string note = {};  // what the shapes and attributes do not say
  Derivation derive = {};
  std::vector<TensorType> outputs = {};  // empty: as inferred
};

Case make_case(CaseSpec spec);

// The op's first output on these inputs, rounded to its type as a backend would store it.
OracleTensor forward(int32_t op, const graph::Attributes& attrs, const std::vector<OracleTensor>& inputs,
                     std::size_t output = 0);

// --- The cases of each family ---

std::vector<Case> arithmetic_cases();
std::vector<Case> elementwise_cases();
std::vector<Case> activation_cases();
std::vector<Case> matmul_cases();
std::vector<Case> bias_cases();
std::vector<Case> convolution_cases();
std::vector<Case> pooling_cases();
std::vector<Case> upsampling_cases();
std::vector<Case> shape_cases();
std::vector<Case> softmax_cases();
std::vector<Case> normalization_cases();
std::vector<Case> layer_norm_cases();
std::vector<Case> local_response_norm_cases();
std::vector<Case> loss_cases();
std::vector<Case> pointwise_loss_cases();
std::vector<Case> hinge_loss_cases();
std::vector<Case> reduction_cases();
std::vector<Case> optimizer_cases();
std::vector<Case> regularization_cases();
std::vector<Case> random_cases();
std::vector<Case> batch_cases();
std::vector<Case> augmentation_cases();
std::vector<Case> counter_cases();
std::vector<Case> metrics_cases();

std::vector<Case> all_cases();
// Of each op one that is neither tiny nor large.
std::vector<Case> one_case_each();
// Of each op one at a shape that is worth timing.
std::vector<Case> typical_cases();

}  // namespace gpunn::conformance
