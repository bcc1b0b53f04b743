#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "export/onnx_model.hpp"
#include "graph/graph.hpp"
#include "inference/eight_bits/quantizable.hpp"

namespace gpunn::interchange {

// Images that are taller, wider, and one pixel larger in both directions.
inline constexpr std::size_t kOtherSizes = 3;

// A size of a batch of N rows: fixed + per_row * N. Both are for the images that the program was built for; `elsewhere`
// has the size itself for the images of each program of another size, and zeros if it is the same there.
struct BatchSize {
  int64_t fixed = 0, per_row = 0;
  std::array<int64_t, kOtherSizes> elsewhere = {};
  bool operator==(const BatchSize&) const = default;
  bool depends_on_image() const { return elsewhere != decltype(elsewhere){}; }
};
using BatchShape = std::vector<BatchSize>;

// The same program built for several sizes, which shows how each size depends on the batch and on the image.
struct ProgramSizes {
  const graph::Graph& first;
  const graph::Graph& one_row_more;
  int64_t rows = 0;                  // of `first`
  std::vector<graph::Graph> others;  // kOtherSizes programs for other images; none if images have one size
};

// The size of the product of two dimensions, of which one at most depends on the batch.
BatchSize product(const BatchSize& a, const BatchSize& b, int64_t rows);

// A tensor of the ONNX graph.
struct Emitted {
  std::string name;
  BatchShape shape;
};

// Rows of zeros around an image.
struct ImagePadding {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  bool empty() const { return top == 0 && bottom == 0 && left == 0 && right == 0; }
};

// An op of gpunn's graph, with what ONNX says in the same node.
struct OnnxStep {
  const graph::Node* node = nullptr;
  std::vector<graph::ValueId> inputs = {}, outputs = {};
  ImagePadding padding = {};              // besides the op's own
  bool count_padding = true;              // of an average
  graph::ValueId bias = graph::kNoValue;  // of a product
};

// The variables of the graph that are not computed: weights by the flat array that they lie in.
struct OnnxSources {
  graph::ValueId parameters = graph::kNoValue, buffers = graph::kNoValue;
  std::span<const float> parameter_values, buffer_values;
  std::map<graph::ValueId, std::string> names;  // of tensors whose name is another than the value's
};

// Appends nodes to a model and knows the tensor of each value of the graph.
class OnnxBuilder {
 public:
  OnnxBuilder(OnnxModel& model, const ProgramSizes& programs, OnnxSources sources);

  int64_t opset() const { return model_.opset; }
  const graph::Graph& graph() const { return programs_.first; }
  int64_t rows() const { return programs_.rows; }
  OnnxModel& model() { return model_; }

  // The shape of a value for any number of rows.
  BatchShape shape(graph::ValueId id) const;
  // The value that owns this memory as a tensor: weights are tensors, the array that contains them is not.
  graph::ValueId origin(graph::ValueId id) const;
  // The tensor of a value, in that value's shape: after a Reshape if a view has another shape.
  std::string tensor(graph::ValueId id);
  std::vector<std::string> tensors(const std::vector<graph::ValueId>& ids);
  // The tensor as it is, in whatever shape.
  Emitted source(graph::ValueId id);
  std::string reshaped(const std::string& layer, const Emitted& from, const BatchShape& to);
  // A node with one output, which is returned. The first node of a layer that is `principal` has the layer's name.
  std::string add(const std::string& layer, const std::string& op, std::vector<std::string> inputs,
                  std::vector<OnnxAttribute> attributes = {}, bool principal = true);
  void define(graph::ValueId id, std::string name);
  void define(graph::ValueId id, std::string name, BatchShape shape);

  std::string floats(const std::string& layer, const std::vector<float>& values, const Shape& shape);
  std::string number(const std::string& layer, double value) { return floats(layer, {static_cast<float>(value)}, {}); }
  std::string integers(const std::string& layer, const std::vector<int64_t>& values);
  std::string integer(const std::string& layer, int64_t value);  // without dimensions
  std::string doubles(const std::string& layer, const std::vector<double>& values, const Shape& shape);
  // Of eight bits each.
  std::string bytes(const std::string& layer, OnnxType type, std::span<const std::byte> values, const Shape& shape) {
    return add_constant(layer, type, values, shape);
  }
  // The numbers of a parameter or a buffer.
  std::span<const float> numbers(graph::ValueId id) const;
  // The shape as a tensor, computed if it depends on the batch or the image.
  std::string shape_tensor(const std::string& layer, const BatchShape& shape);
  // The nodes that `add` appends, as a branch of an If.
  std::vector<OnnxNode> branch(const std::function<void()>& add);
  // The tensor whose first dimension is the batch; the graph's input until it is set.
  void set_batch(std::string tensor) { batch_ = std::move(tensor); }
  // A name that no other tensor or node has.
  std::string unique(const std::string& wanted);
  void reserve(const std::string& name) { names_.insert(name); }

 private:
  std::string add_constant(const std::string& layer, OnnxType type, std::span<const std::byte> bytes, Shape shape);
  // The size as a tensor i64[1]; nothing if no tensor has it.
  std::optional<std::string> size_tensor(const std::string& layer, const BatchSize& size);
  std::optional<std::string> size_of_some_tensor(const std::string& layer, const BatchSize& size);

  OnnxModel& model_;
  const ProgramSizes& programs_;
  OnnxSources sources_;
  std::map<graph::ValueId, Emitted> emitted_;                                     // by origin
  std::map<std::pair<graph::ValueId, std::vector<int64_t>>, std::string> views_;  // Reshapes that are there
  std::set<std::string> names_, layers_with_ops_;
  std::string batch_, rows_tensor_;
};

// Appends the ONNX nodes of a step's op. Throws Error, with the op and the layer, if there are none.
void add_onnx_step(OnnxBuilder& builder, const OnnxStep& step);

// Families of ops; false if the op is not in the family.
bool add_elementwise_step(OnnxBuilder& b, const OnnxStep& step);
bool add_window_step(OnnxBuilder& b, const OnnxStep& step);  // convolution, pooling, up-sampling
bool add_norm_step(OnnxBuilder& b, const OnnxStep& step);
// FAKE_QUANTIZE, as QuantizeLinear and DequantizeLinear.
bool add_quantization_step(OnnxBuilder& b, const OnnxStep& step);
// Both append the weights of a convolution or a product as int8 with a scale for each output: `add_int8_weight` with
// the scales that the layer has, `quantize_weights` by the largest weights.
void add_int8_weight(OnnxBuilder& b, const std::string& layer, const inference::Int8Weight& stored,
                     graph::ValueId weight);
void quantize_weights(OnnxBuilder& b, const OnnxStep& step);
bool add_shape_step(OnnxBuilder& b, const OnnxStep& step);  // and products and reductions

bool add_detection_step(OnnxBuilder& b, const OnnxStep& step);

// The steps of a program that its outputs need, in order: padding and bias go into the op that they belong to.
std::vector<OnnxStep> onnx_steps(const graph::Graph& g);

}  // namespace gpunn::interchange
