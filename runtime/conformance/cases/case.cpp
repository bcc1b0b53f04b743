#include "conformance/cases/case.hpp"

#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "graph/op_info.hpp"

namespace gpunn::conformance {

Generator uniform(double low, double high) {
  return [=](Random& random, int64_t) { return random.uniform(low, high); };
}

Generator integers(int64_t low, int64_t high) {
  return [=](Random& random, int64_t) { return static_cast<double>(low + random.below(high - low + 1)); };
}

Generator constant(double value) {
  return [=](Random&, int64_t) { return value; };
}

Generator listed(std::vector<double> values) {
  return [values = std::move(values)](Random&, int64_t index) {
    return values[static_cast<std::size_t>(index) % values.size()];
  };
}

Generator sometimes(double value, int64_t one_in, Generator rest) {
  return [=, rest = std::move(rest)](Random& random, int64_t index) {
    return random.below(one_in) == 0 ? value : rest(random, index);
  };
}

InputSpec f32(Shape shape, Generator value) { return {{DType::f32, std::move(shape)}, std::move(value)}; }
InputSpec f64(Shape shape, Generator value) { return {{DType::f64, std::move(shape)}, std::move(value)}; }
InputSpec i32(Shape shape, Generator value) { return {{DType::i32, std::move(shape)}, std::move(value)}; }
InputSpec i64(Shape shape, Generator value) { return {{DType::i64, std::move(shape)}, std::move(value)}; }
InputSpec u8(Shape shape, Generator value) { return {{DType::u8, std::move(shape)}, std::move(value)}; }

namespace {

std::string case_name(const CaseSpec& spec, const graph::OpSignature& signature) {
  const graph::OpInfo& info = graph::op_info(spec.op);
  std::string name;
  for (const TensorType& type : signature.inputs) name += (name.empty() ? "" : " ") + to_string(type);
  name += " ->";
  for (const TensorType& type : signature.outputs) name += " " + to_string(type);
  if (info.describe != nullptr) {
    const std::string attributes = info.describe(spec.attrs);
    if (!attributes.empty()) name += ", " + attributes;
  }
  if (!spec.note.empty()) name += ", " + spec.note;
  return name;
}

OracleTensor generate(const InputSpec& spec, Random& random) {
  OracleTensor tensor{spec.type, {}};
  const int64_t count = spec.type.elements();
  tensor.values.reserve(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i) tensor.values.push_back(rounded(spec.value(random, i), spec.type.dtype));
  return tensor;
}

}  // namespace

Case make_case(CaseSpec spec) {
  graph::OpSignature signature{spec.op, spec.attrs, {}, spec.outputs};
  for (const InputSpec& input : spec.inputs) signature.inputs.push_back(input.type);
  if (signature.outputs.empty()) signature.outputs = graph::op_info(spec.op).infer(spec.attrs, signature.inputs);

  Case result{case_name(spec, signature), std::move(signature), {}};
  result.inputs = [spec = std::move(spec)](Random& random) {
    std::vector<OracleTensor> inputs;
    inputs.reserve(spec.inputs.size());
    for (const InputSpec& input : spec.inputs) inputs.push_back(generate(input, random));
    if (spec.derive) spec.derive(inputs);
    return inputs;
  };
  return result;
}

OracleTensor forward(int32_t op, const graph::Attributes& attrs, const std::vector<OracleTensor>& inputs,
                     std::size_t output) {
  graph::OpSignature signature{op, attrs, {}, {}};
  for (const OracleTensor& input : inputs) signature.inputs.push_back(input.type);
  signature.outputs = graph::op_info(op).infer(attrs, signature.inputs);
  OracleTensor result = run_oracle(signature, inputs).at(output);
  for (double& value : result.values) value = rounded(value, result.type.dtype);
  return result;
}

std::vector<Case> all_cases() {
  std::vector<Case> result;
  for (auto family : {arithmetic_cases,
                      elementwise_cases,
                      activation_cases,
                      matmul_cases,
                      bias_cases,
                      convolution_cases,
                      pooling_cases,
                      upsampling_cases,
                      shape_cases,
                      softmax_cases,
                      normalization_cases,
                      layer_norm_cases,
                      local_response_norm_cases,
                      loss_cases,
                      pointwise_loss_cases,
                      hinge_loss_cases,
                      reduction_cases,
                      optimizer_cases,
                      regularization_cases,
                      random_cases,
                      batch_cases,
                      augmentation_cases,
                      counter_cases,
                      metrics_cases}) {
    std::vector<Case> cases = family();
    std::move(cases.begin(), cases.end(), std::back_inserter(result));
  }
  return result;
}

std::vector<Case> one_case_each() {
  constexpr int64_t kMost = 20'000;  // elements, inputs and outputs together
  const auto size = [](const Case& test) {
    int64_t elements = 0;
    for (const TensorType& type : test.signature.inputs) elements += type.elements();
    for (const TensorType& type : test.signature.outputs) elements += type.elements();
    return elements;
  };
  std::map<int32_t, Case> chosen;
  for (Case& test : all_cases()) {
    const auto found = chosen.find(test.signature.op);
    if (found == chosen.end()) {
      chosen.emplace(test.signature.op, std::move(test));
    } else if (size(test) <= kMost && size(test) > size(found->second)) {
      found->second = std::move(test);
    }
  }
  std::vector<Case> result;
  for (auto& [op, test] : chosen) result.push_back(std::move(test));
  return result;
}

}  // namespace gpunn::conformance
