#include "ops/case.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "graph/op_attributes.hpp"
#include "graph/output_types.hpp"
#include "ops/op.hpp"

namespace gpunn::ops {

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

Generator apart(double gap) {
  return [gap](Random&, int64_t index) {
    constexpr int64_t kPrime = 10007;
    const int64_t mixed = (index * 4001 + 17) % kPrime;  // all different below kPrime elements
    constexpr int64_t kMiddle = kPrime / 2;
    return gap * (static_cast<double>(mixed - kMiddle) + 0.5);
  };
}

InputSpec f32(Shape shape, Generator value) { return {{DType::f32, std::move(shape)}, std::move(value)}; }
InputSpec f64(Shape shape, Generator value) { return {{DType::f64, std::move(shape)}, std::move(value)}; }
InputSpec i32(Shape shape, Generator value) { return {{DType::i32, std::move(shape)}, std::move(value)}; }
InputSpec i64(Shape shape, Generator value) { return {{DType::i64, std::move(shape)}, std::move(value)}; }
InputSpec u8(Shape shape, Generator value) { return {{DType::u8, std::move(shape)}, std::move(value)}; }

InputSpec scalar(double value) { return f32({}, constant(value)); }
InputSpec step(int64_t value) { return i64({}, constant(static_cast<double>(value))); }
InputSpec count(int64_t value) { return i32({}, constant(static_cast<double>(value))); }

std::vector<InputSpec> repeated(std::size_t times, const InputSpec& input) { return {times, input}; }

const std::vector<Shape> kElementwiseShapes = {{},           {1},          {7},      {64},  {1000},
                                               {2, 3, 5, 7}, {1, 1, 1, 1}, {262147}, {0, 3}};
const std::vector<double> kExtremes = {0.0, -0.0, kNan, kInf, -kInf, 1.5, -1.5, 3e38, -3e38, 1e-30, -1e-30};

std::vector<CaseSpec> elementwise_cases(const Attributes& attrs, const Generator& x) {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kElementwiseShapes) cases.push_back({.attrs = attrs, .inputs = {f32(shape, x)}});
  return cases;
}

std::vector<CaseSpec> elementwise_backward_cases(const Attributes& attrs, const Generator& second) {
  std::vector<CaseSpec> cases;
  for (const Shape& shape : kElementwiseShapes) {
    cases.push_back({.attrs = attrs, .inputs = {f32(shape), f32(shape, second)}});
  }
  return cases;
}

CaseSpec special_case(const Attributes& attrs, std::vector<double> values, std::string note) {
  return {.attrs = attrs, .inputs = {f32({5, 31}, listed(std::move(values)))}, .note = std::move(note)};
}

CaseSpec special_backward_case(const Attributes& attrs, std::vector<double> values, std::string note) {
  CaseSpec spec = special_case(attrs, std::move(values), std::move(note));
  spec.inputs.insert(spec.inputs.begin(), f32({5, 31}));
  return spec;
}

InputSpec typical_images() { return f32({64, kTypicalChannels, 28, 28}); }
InputSpec typical_channels() { return f32({kTypicalChannels}); }
InputSpec typical_logits() { return f32({kTypicalRows, kTypicalClasses}, uniform(-4, 4)); }
InputSpec typical_labels() { return i32({kTypicalRows}, integers(0, kTypicalClasses - 1)); }
InputSpec typical_losses() { return f32({kTypicalRows}); }
InputSpec typical_parameters() { return f32({kTypicalParameters}); }

namespace {

std::string case_name(const CaseSpec& spec, const OpSignature& signature) {
  std::string name;
  for (const TensorType& type : signature.inputs) name += (name.empty() ? "" : " ") + to_string(type);
  name += " ->";
  for (const TensorType& type : signature.outputs) name += " " + to_string(type);
  if (const std::string text = graph::attributes_text(signature.op, spec.attrs); !text.empty()) name += ", " + text;
  if (!spec.note.empty()) name += ", " + spec.note;
  return name;
}

std::vector<std::byte> encode_input(const InputSpec& spec, Random& random) {
  std::vector<std::byte> bytes(spec.type.bytes());
  const std::size_t size = size_of(spec.type.dtype);
  const int64_t count = spec.type.elements();
  for (int64_t i = 0; i < count; ++i) {
    store(spec.value(random, i), spec.type.dtype, bytes.data() + static_cast<std::size_t>(i) * size);
  }
  return bytes;
}

}  // namespace

Case make_case(int32_t op, CaseSpec spec) {
  OpSignature signature{op, spec.attrs, {}, spec.outputs};
  for (const InputSpec& input : spec.inputs) signature.inputs.push_back(input.type);
  if (signature.outputs.empty()) signature.outputs = op_info(op).infer(spec.attrs, signature.inputs);

  std::string name = case_name(spec, signature);
  return {std::move(name), std::move(signature), std::move(spec.inputs), std::move(spec.derive), {}};
}

int64_t elements_of(const graph::OpSignature& signature) {
  int64_t elements = 0;
  for (const TensorType& type : signature.inputs) elements += type.elements();
  for (const TensorType& type : signature.outputs) elements += type.elements();
  return elements;
}

int64_t elements_of(const Case& test) { return elements_of(test.signature); }

std::vector<ReferenceTensor> Case::inputs(Random& random) const {
  std::vector<ReferenceTensor> tensors;
  tensors.reserve(specs.size());
  for (const InputSpec& spec : specs) tensors.push_back(decode(spec.type, encode_input(spec, random)));
  if (derive) derive(tensors);
  // What is derived of others is packed until here.
  for (std::size_t i = 0; i < specs.size(); ++i) tensors[i].type.layout = specs[i].type.layout;
  return tensors;
}

std::vector<std::vector<std::byte>> Case::encoded_inputs(Random& random) const {
  std::vector<std::vector<std::byte>> encoded;
  encoded.reserve(specs.size());
  if (derive) {
    for (const ReferenceTensor& tensor : inputs(random)) encoded.push_back(encode(tensor));
  } else {
    for (const InputSpec& spec : specs) encoded.push_back(encode_input(spec, random));
  }
  return encoded;
}

ReferenceTensor forward(int32_t op, const Attributes& attrs, const std::vector<ReferenceTensor>& inputs,
                        std::size_t output) {
  OpSignature signature{op, attrs, {}, {}};
  for (const ReferenceTensor& input : inputs) signature.inputs.push_back(input.type);
  signature.outputs = op_info(op).infer(attrs, signature.inputs);
  ReferenceTensor result = run_reference(signature, inputs).at(output);
  for (double& value : result.values) value = rounded(value, result.type.dtype);
  return result;
}

Shape output_shape(int32_t op, const Attributes& attrs, const std::vector<TensorType>& inputs) {
  return graph::output_types(graph::op_row(op), attrs, inputs).front().shape;
}

std::vector<Case> cases_of(const OpInfo& info) {
  std::vector<Case> cases;
  if (info.cases == nullptr) return cases;
  for (CaseSpec& spec : info.cases()) cases.push_back(make_case(info.id, std::move(spec)));
  return cases;
}

std::vector<Case> all_cases(const Ops& of) {
  std::vector<Case> result;
  for (const OpInfo* info : of) {
    std::vector<Case> cases = cases_of(*info);
    std::move(cases.begin(), cases.end(), std::back_inserter(result));
  }
  return result;
}

bool store_in_half(const OpInfo& info, CaseSpec& spec, DType half) {
  const Signature& signature = info.row->signature;
  if (std::ranges::none_of(signature.inputs, &Pattern::floating)) return false;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (signature.input(i).floating) spec.inputs[i].type.dtype = half;
  }
  return true;
}

std::vector<Case> half_cases(const Ops& of) {
  std::vector<Case> result;
  for (const OpInfo* info : of) {
    const Signature& signature = info->row->signature;
    if (info->cases == nullptr || std::ranges::none_of(signature.inputs, &Pattern::floating)) continue;
    for (const DType type : {DType::bf16, DType::f16}) {
      for (CaseSpec& spec : info->cases()) {
        store_in_half(*info, spec, type);
        result.push_back(make_case(info->id, std::move(spec)));
      }
    }
  }
  return result;
}

namespace {

bool may_be_channels_last(const Case& test) {
  if (op_info(test.signature.op).row->signature.strided) return false;
  return std::ranges::any_of(test.signature.inputs, has_layouts) ||
         std::ranges::any_of(test.signature.outputs, has_layouts);
}

void make_channels_last(TensorType& type) {
  if (has_layouts(type)) type.layout = Layout::channels_last;
}

}  // namespace

bool store_channels_last(Case& test) {
  if (!may_be_channels_last(test)) return false;
  for (TensorType& type : test.signature.inputs) make_channels_last(type);
  for (TensorType& type : test.signature.outputs) make_channels_last(type);
  for (InputSpec& spec : test.specs) make_channels_last(spec.type);
  test.name += ", channels-last";
  return true;
}

std::vector<Case> channels_last_cases(const Ops& of) {
  std::vector<Case> result = all_cases(of);
  std::ranges::copy_if(half_cases(of), std::back_inserter(result), [](const Case& test) {
    return std::ranges::any_of(test.signature.inputs, [](const TensorType& type) { return type.dtype == DType::bf16; });
  });
  std::erase_if(result, [](Case& test) { return !store_channels_last(test); });
  return result;
}

std::vector<Case> one_case_each(const Ops& of) {
  std::map<int32_t, Case> chosen;
  for (Case& test : all_cases(of)) {
    const auto found = chosen.find(test.signature.op);
    if (found == chosen.end()) {
      chosen.emplace(test.signature.op, std::move(test));
    } else if (elements_of(test) <= kOrdinaryElements && elements_of(test) > elements_of(found->second)) {
      found->second = std::move(test);
    }
  }
  std::vector<Case> result;
  for (auto& [op, test] : chosen) result.push_back(std::move(test));
  return result;
}

std::vector<Case> typical_cases(const Ops& of) {
  std::vector<Case> result;
  for (const OpInfo* info : of) result.push_back(make_case(info->id, info->typical));
  return result;
}

}  // namespace gpunn::ops
