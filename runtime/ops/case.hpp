#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "ops/values.hpp"

namespace gpunn::ops {

// --- How cases are written ---

// The value of element `index` of an input.
using Generator = std::function<double(Random& random, int64_t index)>;

Generator uniform(double low = -1, double high = 1);
Generator integers(int64_t low, int64_t high);  // both included
Generator constant(double value);
Generator listed(std::vector<double> values);                       // over and over again
Generator sometimes(double value, int64_t one_in, Generator rest);  // `value` at about one of `one_in`
// Values at least `gap` apart from each other and from 0, in mixed order, so that differences do not cross a kink of
// ReLU or a tie of a maximum. For up to 10007 elements.
Generator apart(double gap = 0.01);

struct InputSpec {
  TensorType type;
  Generator value;
};

InputSpec f32(Shape shape, Generator value = uniform());
InputSpec f64(Shape shape, Generator value = uniform());
InputSpec i32(Shape shape, Generator value);
InputSpec i64(Shape shape, Generator value);
InputSpec u8(Shape shape, Generator value = integers(0, 255));

// A number in device memory: a rate, a step, how many rows count.
InputSpec scalar(double value);
InputSpec step(int64_t value);
InputSpec count(int64_t value);

// As many inputs of one kind.
std::vector<InputSpec> repeated(std::size_t times, const InputSpec& input);

// Replaces inputs by what depends on others (a saved output of the forward op).
using Derivation = std::function<void(std::vector<ReferenceTensor>& inputs)>;

// An op at one shape with a way to make its inputs: data, without the op.
struct CaseSpec {
  graph::Attributes attrs = {};
  std::vector<InputSpec> inputs = {};
  std::string note = {};  // what the shapes and attributes do not say
  Derivation derive = {};
  std::vector<TensorType> outputs = {};  // empty: as inferred
};

// The op's output on these inputs, rounded to its type as a backend would store it.
ReferenceTensor forward(int32_t op, const graph::Attributes& attrs, const std::vector<ReferenceTensor>& inputs,
                        std::size_t output = 0);

// The shape of the op's first output.
Shape output_shape(int32_t op, const graph::Attributes& attrs, const std::vector<TensorType>& inputs);

// --- Shapes that several families share ---

// One element, sizes that no vector width divides, one large enough to be shared among threads, and nothing.
extern const std::vector<Shape> kElementwiseShapes;
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// 0, -0, NaN, infinities, large and small numbers.
extern const std::vector<double> kExtremes;

// A case at each of kElementwiseShapes, of x, or of dy and what the backward reads beside it.
std::vector<CaseSpec> elementwise_cases(const graph::Attributes& attrs, const Generator& x);
std::vector<CaseSpec> elementwise_backward_cases(const graph::Attributes& attrs, const Generator& second);
// Cases with special values of x, or of what the backward reads beside dy.
CaseSpec special_case(const graph::Attributes& attrs, std::vector<double> values, std::string note);
CaseSpec special_backward_case(const graph::Attributes& attrs, std::vector<double> values, std::string note);

// --- What a training meets: large enough to keep a device busy ---

constexpr int64_t kTypicalChannels = 64, kTypicalRows = 1024, kTypicalClasses = 1000, kTypicalParameters = 1 << 20;
InputSpec typical_images();      // [64, 64, 28, 28]
InputSpec typical_channels();    // a number a channel of these
InputSpec typical_logits();      // [1024, 1000]
InputSpec typical_labels();      // of these
InputSpec typical_losses();      // a number a row of these
InputSpec typical_parameters();  // 2^20

// --- Cases to run ---

struct Case {
  std::string name;  // shapes, attributes and what is special
  graph::OpSignature signature;
  std::vector<InputSpec> specs;
  Derivation derive;
  // For each input, the earlier input that shares its memory, or -1. Empty: none shares memory.
  std::vector<int> same_memory = {};

  // The data is made when the case runs.
  std::vector<ReferenceTensor> inputs(Random& random) const;
  // The tensor's own bytes: values that need no derivation take no detour through float64.
  std::vector<std::vector<std::byte>> encoded_inputs(Random& random) const;
};

Case make_case(int32_t op, CaseSpec spec);

struct OpInfo;
using Ops = std::vector<const OpInfo*>;
Ops all_ops();  // of the catalogue

// Gives this dtype to the inputs that the op's row marks "float". False if there are none.
bool store_in_half(const OpInfo& info, CaseSpec& spec, DType half);
// Stores the case's images channels-last. False if it has none, or accepts tensors of any strides.
bool store_channels_last(Case& test);

// Elements of all inputs and outputs together; and the range that is neither small nor large.
int64_t elements_of(const graph::OpSignature& signature);
int64_t elements_of(const Case& test);
constexpr int64_t kOrdinaryElements = 20'000;

// Of the ops given, as the functions below.
std::vector<Case> all_cases(const Ops& of = all_ops());
// Those of ops whose tensors may be of half precision ("float" in the op's row), in bf16 and in f16.
std::vector<Case> half_cases(const Ops& of = all_ops());
// Those with images, f32 and bf16, which are channels-last here.
std::vector<Case> channels_last_cases(const Ops& of = all_ops());
// For each op a case that is neither tiny nor large.
std::vector<Case> one_case_each(const Ops& of = all_ops());
// For each op a case at a shape that is worth timing.
std::vector<Case> typical_cases(const Ops& of = all_ops());

}  // namespace gpunn::ops
