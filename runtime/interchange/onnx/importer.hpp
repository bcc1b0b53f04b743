// Functions with which the files of op families turn nodes into layers.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interchange/onnx/file_model.hpp"
#include "interchange/onnx/import.hpp"

namespace gpunn::interchange {

// Why a node can't be imported, as the end of a sentence about it.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Sizes = std::vector<Size>;
std::string to_string(const Sizes& sizes);  // "[N, 3, 224, 224]"

// Which dimensions of what a layer gives, 0 being the batch, each dimension of a value is made of, from the outermost
// on.
using Parts = std::vector<std::vector<std::size_t>>;

// A value of the graph: known at import, or a layer's output for a batch.
struct Value {
  std::shared_ptr<const Constant> constant;  // nullptr: of a layer
  std::string layer;
  Element element = Element::f32;  // the file's type; layers hold its numbers, 0 and 1 of truth values, as f32
  Sizes shape;  // of a constant that is as many rows as the batch: with the batch, of which it holds one row
  // Where the batch is not the first dimension: what the dimensions are of [N, row...], which the layer gives.
  Parts parts = {};
  Shape row = {};
};

// The place of the batch among a value's dimensions: one of its own, or part of one, before or behind `others`; or
// outside of all dimensions.
struct BatchPlace {
  static constexpr std::size_t kOutside = static_cast<std::size_t>(-1);
  std::size_t dimension = 0;
  int64_t others = 1;
  bool is_outer = true;

  static BatchPlace outside() { return {.dimension = kOutside}; }
  bool operator==(const BatchPlace&) const = default;
  bool is_outside() const { return dimension == kOutside; }
  // Dimensions that a value has more with the batch in front.
  std::size_t shift() const { return others != 1 || is_outside() ? 1 : 0; }
};
Value constant_value(Constant constant);
// Of numbers that are known but for the size of the batch: as f32. Throws Unsupported where they depend on it.
Constant as_floats(const Constant& constant);
Shape row_of(const Value& x);  // of a layer: the shape of a row of it

// A layer's keys: a name and the texts of its values.
using Keys = std::vector<std::pair<std::string, std::vector<std::string>>>;
std::vector<std::string> texts(const std::vector<int64_t>& values);
std::string text(double value);  // that reads back as the same number
std::string text(bool value);

class Importer;

// A node with its inputs.
class Call {
 public:
  Call(Importer& importer, const FileNode& node, int64_t opset, std::vector<const Value*> inputs)
      : importer_(importer), node_(node), opset_(opset), inputs_(std::move(inputs)) {}

  const FileNode& node() const { return node_; }
  int64_t opset() const { return opset_; }

  std::size_t count() const { return inputs_.size(); }
  bool has(std::size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const Value& input(std::size_t i) const;
  // A value of a layer, whose first dimension is the batch. `data` throws Unsupported for others, and for constants.
  const Value& data(std::size_t i) const;
  // A value of a layer, wherever its batch is.
  const Value& data_anywhere(std::size_t i) const;
  Shape sample(std::size_t i) const;  // the shape of a row of it
  // Says that the inputs, whose batch is there, are given with the batch in front, and that so is what is given. extra:
  // dimensions of 1 that only layers have, since a row has at least one.
  void set_place(const BatchPlace& place, std::size_t extra = 0) {
    place_ = place;
    extra_ = extra;
  }
  const BatchPlace& place() const { return place_; }
  // Says that the first dimension of the inputs, of 1, stands for the batch, which is outside.
  void set_one_as_batch() { is_one_as_batch_ = true; }
  // Throws Unsupported where the batch is among the last dimensions of the inputs.
  void require_batch_before(std::size_t last) const;

  // The known value; `what` describes it in an error.
  const Constant& constant(std::size_t i, const char* what) const;
  const Constant& floats(std::size_t i, const char* what) const;
  std::vector<int64_t> integers(std::size_t i, const char* what) const;
  double scalar(std::size_t i, const char* what) const;

  bool has_attribute(const char* name) const { return find(name) != nullptr; }
  int64_t integer(const char* name, int64_t fallback) const;
  double number(const char* name, double fallback) const;
  std::string word(const char* name, const std::string& fallback) const;
  std::vector<int64_t> list(const char* name, const std::vector<int64_t>& fallback = {}) const;
  std::vector<float> numbers(const char* name) const;
  const Constant* tensor(const char* name) const;
  // Which of an input's dimensions: an attribute that counts negative ones from the end.
  std::size_t axis(const char* name, int64_t fallback, std::size_t rank) const;
  std::size_t dimension(int64_t given, std::size_t rank) const;

  // Throws Unsupported with this reason where more than the first output is used.
  void require_first_output_alone(const char* reason) const;
  void give(std::size_t output, Value value);
  void give(Value value) { give(0, std::move(value)); }
  void give_constant(Constant constant) { give(0, constant_value(std::move(constant))); }
  // A value with the batch where the inputs have it.
  Value in_place(Value value);
  // The first output is what this layer gives.
  void give_layer(const std::string& type, const Keys& keys, const Shape& row);

  // A layer for this node, not yet anybody's output: `row` is the shape of a row of what it gives.
  Value layer(const std::string& type, const std::vector<const Value*>& from, const Keys& keys, const Shape& row,
              const std::string& suffix = "");
  // A tensor of the layer that `value` is of.
  void set_tensor(const Value& value, const std::string& name, Shape shape, const Constant& values);

  // The first output of another operator of ONNX, in its form of kDefinitionOpset: for operators that ONNX defines by
  // others. What is known is computed.
  Value apply(const std::string& op, const std::vector<Value>& inputs, std::vector<Attribute> attributes = {});

  // Other shapes of a row.
  Value reshaped(const Value& x, const Shape& row);
  Value transposed(const Value& x, const std::vector<int64_t>& permutation);  // of a row's dimensions
  Value scaled(const Value& x, double factor);

  Importer& importer() { return importer_; }

 private:
  const Attribute* find(const char* name) const;

  Importer& importer_;
  const FileNode& node_;
  int64_t opset_;
  std::vector<const Value*> inputs_;
  BatchPlace place_;
  std::size_t extra_ = 0;
  bool is_one_as_batch_ = false;
};

// Where the batch of the inputs may be for an operator.
enum class BatchIn {
  any,     // it keeps account of the place itself
  rows,    // anywhere: it gets the batch in front, and gives it so
  front,   // in the first dimension
  frames,  // likewise, or a part of the first dimension: then it gets the batch in front, and gives it so
};

// How a node of one op type is imported, from one opset on up to the next row of that type.
struct OpRow {
  std::string_view op;  // with its domain, if that is not ONNX's own: "com.microsoft.QLinearAdd"
  int64_t since;
  void (*import)(Call&);
  BatchIn batch = BatchIn::any;
};

// A file a family.
std::vector<OpRow> activation_rows();
std::vector<OpRow> along_rows();
std::vector<OpRow> attention_rows();
std::vector<OpRow> cast_rows();
std::vector<OpRow> comparison_rows();
std::vector<OpRow> convolution_rows();
std::vector<OpRow> einsum_rows();
std::vector<OpRow> elementwise_rows();
std::vector<OpRow> linear_rows();
std::vector<OpRow> loss_rows();
std::vector<OpRow> normalization_rows();
std::vector<OpRow> piece_rows();
std::vector<OpRow> pooling_rows();
std::vector<OpRow> quantized_operator_rows();
std::vector<OpRow> rotary_rows();
std::vector<OpRow> quantized_product_rows();
std::vector<OpRow> quantization_rows();
std::vector<OpRow> recurrent_rows();
std::vector<OpRow> reduction_rows();
std::vector<OpRow> resizing_rows();
std::vector<OpRow> shape_rows();
std::vector<OpRow> suppression_rows();
// Of the nodes of fuse_suppression() and fuse_adaptive_pooling().
const OpRow& fused_suppression();
const OpRow& fused_adaptive_pooling();

// The places that a node moves its inputs to, as rows of one `gather`: of every operator that only moves numbers.
// Throws Unsupported where the numbers of a batch depend on each other, or an input is not known that says where they
// go.
void import_movement(Call& call);
// Whether that serves an op.
bool is_movement(const std::string& op);

// Computes what is known before anything runs: arithmetic on shapes, chiefly. False where the op is none that it knows
// or an input is not known yet. Throws Unsupported where it can't be computed.
bool fold(Call& call);
// Whether it knows an op.
bool is_folded(const std::string& op);

constexpr int64_t kFirstOpset = 6, kLastOpset = 28, kDefinitionOpset = 21;

// The row of an op for an opset; nullptr: none. `known` tells whether there are rows for other opsets.
const OpRow* find_row(const std::string& op, int64_t opset, bool& known);

class Importer {
 public:
  // has_batch: the first dimension of inputs is the batch; otherwise a whole input is one sample.
  Importer(std::filesystem::path file, FileModel model, ImportOptions options, bool has_batch);

  ImportedModel run();
  // Whether all inputs have sizes that could be one sample as a whole.
  bool may_be_one_sample() const { return may_be_one_sample_; }
  // The number of nodes that run() could not import.
  std::size_t problems() const { return problems_.size(); }

  // For calls.
  std::string unique_name(const FileNode& node, const std::string& suffix);
  void add_layer(LayerSpec layer);
  LayerSpec* find_layer(const std::string& name);
  std::map<std::string, ImportedTensor>& tensors_of(const std::string& layer) { return tensors_[layer]; }
  // The only node that reads a value, which is no output of the graph; nullptr: there are others, or none.
  const FileNode* only_reader(const std::string& value) const;
  // Whether a node reads a value, or the graph gives it.
  bool is_used(const std::string& value) const;
  bool is_output(const std::string& value) const;                                            // of the graph
  bool is_input(const std::string& source) const { return input_layers_.contains(source); }  // or its numbers as f32
  const Value* find_value(const std::string& name) const;
  void set_value(const std::string& name, Value value);
  // The size of the batch that the file was exported for; 0: any.
  int64_t baked_batch() const { return baked_batch_; }
  // See Call::apply().
  Value apply(const FileNode& origin, const std::string& op, const std::vector<Value>& inputs,
              std::vector<Attribute> attributes);
  // A node that another one took in, which gives the value of both.
  void take_in(const FileNode& node) { taken_.insert(&node); }
  // The number of elements of a constant that is computed. Throws Unsupported where all of them together would take
  // more memory than any network needs: a few bytes of a file may ask for any size.
  int64_t take_room(const Shape& shape);

 private:
  std::vector<const FileInput*> graph_inputs() const;
  std::vector<std::optional<int64_t>> with_known_sizes(std::vector<std::optional<int64_t>> sizes) const;
  std::vector<std::optional<int64_t>> input_sizes(const FileInput& input, bool is_only) const;
  void read_inputs();
  void read_input(const FileInput& input, const std::vector<std::optional<int64_t>>& sizes, bool has_rows);
  void take_turned_input(const std::string& name, Value& value);
  void drop_predictions();
  std::vector<Value> give_outputs();
  Value output_value(const std::string& output, const Value& last);
  Value constant_output(const std::string& output, const Constant& constant);
  void order();
  void import_node(const FileNode& node);
  // Folds a node or imports it by its row. Throws Unsupported.
  void import_by_row(const FileNode& node, int64_t opset, const OpRow* row, const std::vector<const Value*>& inputs);
  void import_rows(const OpRow& row, const Call& call, const std::vector<const Value*>& inputs);
  void import_in_place(const OpRow& row, const Call& call, std::vector<const Value*> inputs);
  void report(const FileNode& node, int64_t opset, const std::string& why);
  void remove_unused(const std::vector<Value>& outputs);
  [[noreturn]] void refuse(const std::string& why) const;

  std::filesystem::path file_;
  ImportOptions options_;
  bool has_batch_, may_be_one_sample_ = false;
  FileModel file_model_;
  ImportedModel result_;
  int64_t opset_ = 0, baked_batch_ = 0, computed_ = 0;
  std::vector<std::size_t> order_;  // the nodes such that each comes after its inputs
  std::map<std::string, Value> values_;
  std::map<std::string, std::vector<const FileNode*>> readers_;
  std::set<std::string> broken_;  // outputs of nodes that can't be imported
  std::set<const FileNode*> taken_;
  std::vector<LayerSpec> layers_;
  std::map<std::string, std::size_t> layer_index_;
  std::set<std::string> names_, input_layers_;
  std::map<std::string, int64_t> ordinals_;
  std::map<std::string, std::map<std::string, ImportedTensor>> tensors_;
  std::vector<std::string> problems_;
  std::deque<FileNode> applied_;  // whose names layers may have
};

}  // namespace gpunn::interchange
