#include "interchange/onnx/importer.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "common/text.hpp"
#include "common/topological_order.hpp"
#include "interchange/onnx/channels_first.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/fuse_adaptive_pooling.hpp"
#include "interchange/onnx/fuse_suppression.hpp"
#include "interchange/onnx/inline_functions.hpp"
#include "interchange/onnx/node_walk.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

namespace {

constexpr std::size_t kMostProblems = 50;

// Of a node that stands for several of ONNX's; nullptr: it does not.
const OpRow* find_fused_row(const FileNode& node) {
  for (const OpRow* row : {&fused_suppression(), &fused_adaptive_pooling()}) {
    if (node.domain == kFusedDomain && node.op == row->op) return row;
  }
  return nullptr;
}

std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool kept =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    result += kept ? c : c == '/' ? '.' : '_';
  }
  // As the names of layers in YAML: not too long, and without empty parts.
  constexpr std::size_t kLongest = 160;
  std::string kept;
  for (const char c : result) {
    if (c != '.' || (!kept.empty() && kept.back() != '.')) kept += c;
  }
  kept.resize(std::min(kept.size(), kLongest));
  while (!kept.empty() && kept.back() == '.') kept.pop_back();
  return kept;
}

std::string title(const FileNode& node) {
  const std::string name = !node.name.empty() ? node.name : node.outputs.empty() ? "" : node.outputs.front();
  return (node.domain.empty() ? "" : node.domain + ".") + node.op + " " + in_quotes(name);
}

// Whether what it gives has the batch where its inputs have it, wherever that is.
bool leaves_batch_in_place(std::string_view op) {
  constexpr std::string_view kOps[] = {"Abs",         "Add",       "BatchNormalization",
                                       "Celu",        "Clip",      "Concat",
                                       "Div",         "Dropout",   "Elu",
                                       "Erf",         "Erfc",      "Exp",
                                       "Gather",      "Gelu",      "Gemm",
                                       "HardSigmoid", "HardSwish", "LayerNormalization",
                                       "LeakyRelu",   "Log",       "LogSoftmax",
                                       "MatMul",      "Max",       "Mean",
                                       "Min",         "Mish",      "Mul",
                                       "Neg",         "Pow",       "RMSNormalization",
                                       "Reciprocal",  "Relu",      "Selu",
                                       "Sigmoid",     "Slice",     "Softmax",
                                       "Softplus",    "Softsign",  "Split",
                                       "Sqrt",        "Sub",       "Sum",
                                       "Swish",       "Tanh",      "Where"};
  return std::ranges::find(kOps, op) != std::end(kOps);
}

// The shape of a sample, for sizes that the graph leaves open; empty if the metadata do not name it.
Shape open_sizes(const std::map<std::string, std::string>& metadata, const std::vector<int64_t>& image_size) {
  const auto told = metadata.find(kSampleKey);
  if (told == metadata.end()) return {};
  Shape sample;
  const std::string& text = told->second;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error == std::errc()) sample.push_back(size);
    at = error == std::errc() ? next : at + 1;
  }
  if (sample.size() == 3 && image_size.size() == 2) sample = {sample[0], image_size[0], image_size[1]};
  return sample;
}

std::map<std::string, std::vector<OpRow>> all_rows() {
  std::map<std::string, std::vector<OpRow>> table;
  for (const auto& rows : {activation_rows(), attention_rows(), einsum_rows(), convolution_rows(), elementwise_rows(),
                           linear_rows(), normalization_rows(), piece_rows(), quantization_rows(), pooling_rows(),
                           reduction_rows(), resizing_rows(), shape_rows(), suppression_rows()}) {
    for (const OpRow& row : rows) table[std::string(row.op)].push_back(row);
  }
  return table;
}

}  // namespace

const OpRow* find_row(const std::string& op, int64_t opset, bool& known) {
  static const std::map<std::string, std::vector<OpRow>> table = all_rows();
  const auto found = table.find(op);
  known = found != table.end();
  if (!known) return nullptr;
  const OpRow* best = nullptr;
  for (const OpRow& row : found->second) {
    if (row.since <= opset && (best == nullptr || row.since > best->since)) best = &row;
  }
  return best;
}

bool is_onnx(const std::filesystem::path& file) { return file.extension() == ".onnx"; }

ImportedModel import_onnx(const std::filesystem::path& file, const ImportLimits& limits) {
  return Importer(file, read_file_model(file), limits).run();
}

Importer::Importer(std::filesystem::path file, FileModel model, ImportLimits limits)
    : file_(std::move(file)), limits_(std::move(limits)), file_model_(std::move(model)) {}

void Importer::refuse(const std::string& why) const { throw Error(file_.string() + ": " + why, ExitCode::usage); }

ImportedModel Importer::run() {
  const auto own = file_model_.opsets.find("");
  if (own == file_model_.opsets.end()) refuse("the file does not say which version of ONNX's operators it uses");
  opset_ = own->second;
  if (opset_ < kFirstOpset || opset_ > kLastOpset) {
    refuse("the file uses opset " + std::to_string(opset_) + "; opsets " + std::to_string(kFirstOpset) + " to " +
           std::to_string(kLastOpset) + " are read. Export it again with one of these, or convert it with " +
           "onnx.version_converter");
  }
  for (const FileFunction& function : file_model_.functions) {
    if (function.domain.empty())
      refuse("the file has an operator " + in_quotes(function.name) + " of its own in ONNX's domain");
  }
  if (const std::string failure = inline_functions(file_model_); !failure.empty()) refuse(failure);
  fuse_suppression(file_model_);
  fuse_adaptive_pooling(file_model_);
  turn_input_first(file_model_);
  for (auto& [name, constant] : file_model_.initializers) values_[name] = constant_value(std::move(constant));
  for (const FileNode& node : file_model_.nodes) {
    for (const std::string& input : node.inputs) {
      if (!input.empty()) readers_[input].push_back(&node);
    }
  }
  // A model of gpunn's gives, behind what its layers give, what the task makes of that.
  const bool own_export = file_model_.producer == "gpunn" && file_model_.outputs.size() == 2;
  if (own_export) file_model_.outputs.pop_back();
  if (file_model_.outputs.size() != 1) {
    refuse("the graph has " + std::to_string(file_model_.outputs.size()) +
           " outputs; a network of one output is expected. Export it without the others");
  }
  names_ = {"input"};
  read_input();
  order();
  for (const std::size_t i : order_) {
    if (!taken_.contains(&file_model_.nodes[i])) import_node(file_model_.nodes[i]);
  }
  if (!problems_.empty()) {
    const std::size_t shown = std::min(problems_.size(), kMostProblems);
    std::string message =
        std::to_string(problems_.size()) + (problems_.size() == 1 ? " node" : " nodes") + " can't be imported:";
    for (std::size_t i = 0; i < shown; ++i) message += "\n  " + problems_[i];
    if (shown < problems_.size()) message += "\n  and " + std::to_string(problems_.size() - shown) + " more";
    refuse(message);
  }
  const std::string& output = file_model_.outputs.front();
  const Value* last = find_value(output);
  if (last == nullptr) refuse("no node gives the output " + in_quotes(output));
  if (last->constant) refuse("the output " + in_quotes(output) + " does not depend on the input");
  if (is_placed(*last)) {
    refuse("the output " + in_quotes(output) + " is " + to_string(last->shape) +
           "; expected one whose first dimension is the batch");
  }
  constexpr std::string_view kTruths[] = {"And", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Not", "Or"};
  for (const FileNode& node : file_model_.nodes) {
    if (node.outputs.empty() || node.outputs.front() != output) continue;
    if (std::ranges::find(kTruths, node.op) != std::end(kTruths)) {
      refuse("the output " + in_quotes(output) + " is truth values; expected floats, as a Cast makes of them");
    }
  }
  if (last->layer == "input") refuse("the output " + in_quotes(output) + " is the input itself: there is no layer");
  remove_unused(last->layer);
  result_.model.file = file_;
  result_.model.name = file_.stem().string();
  result_.model.input.assign(result_.sample.begin(), result_.sample.end());
  result_.output = output;
  result_.metadata = std::move(file_model_.metadata);
  return std::move(result_);
}

void Importer::read_input() {
  const FileInput* input = nullptr;
  for (const FileInput& one : file_model_.inputs) {
    if (values_.contains(one.name)) continue;  // up to IR version 3 initializers were inputs too
    if (input != nullptr) {
      refuse("the graph has more than one input, " + in_quotes(input->name) + " and " + in_quotes(one.name) +
             "; a network of one input is expected");
    }
    input = &one;
  }
  if (input == nullptr) refuse("the graph has no input");
  if (!is_floating(input->element)) {
    refuse("the input " + in_quotes(input->name) + " is " + name_of(input->element) +
           ", expected float32. A file of `gpunn export` must be written without --raw-input and --with-preprocessing");
  }
  if (!input->has_shape || input->shape.size() < 2) {
    refuse("the input " + in_quotes(input->name) + " has no shape of [batch, ...]; export the network with one");
  }
  Value value{.constant = {}, .layer = "input", .shape = {{1, true}}};
  const Shape told = open_sizes(file_model_.metadata, limits_.image_size);
  for (std::size_t i = 1; i < input->shape.size(); ++i) {
    std::optional<int64_t> size = input->shape[i];
    if (!size && told.size() + 1 == input->shape.size()) {
      size = told[i - 1];
      result_.has_open_sizes = true;
    }
    if (!size || *size < 1 || *size > (int64_t{1} << 31)) {
      refuse("dimension " + std::to_string(i) + " of the input " + in_quotes(input->name) + " is " +
             (size ? std::to_string(*size) : "open") +
             "; only the first, the batch's, may be open. Export the network " + "with a fixed size of its samples");
    }
    value.shape.push_back({*size, false});
  }
  const std::optional<int64_t> batch = input->shape.front();
  baked_batch_ = batch && *batch > 0 ? *batch : 0;
  // Networks of Keras take channels last, which they turn round at once: the input is then as after that.
  const FileNode* reader = only_reader(input->name);
  if (reader != nullptr && reader->op == "Transpose" && value.shape.size() == 4 && reader->outputs.size() == 1) {
    const auto permutation = std::ranges::find(reader->attributes, "perm", &Attribute::name);
    if (permutation != reader->attributes.end()) {
      const auto* order = std::get_if<std::vector<int64_t>>(&permutation->value);
      if (order != nullptr && *order == std::vector<int64_t>{0, 3, 1, 2}) {
        value.shape = {value.shape[0], value.shape[3], value.shape[1], value.shape[2]};
        take_in(*reader);
        set_value(reader->outputs.front(), value);
      }
    }
  }
  for (std::size_t i = 1; i < value.shape.size(); ++i) result_.sample.push_back(value.shape[i].factor);
  if (!checked_count(result_.sample)) {
    refuse("the input " + in_quotes(input->name) + " of " + to_string(value.shape) + " is larger than any memory");
  }
  result_.input = input->name;
  values_[input->name] = std::move(value);
}

// Files should be in order, but need not be sound.
void Importer::order() {
  std::map<std::string, std::size_t> producers;
  for (std::size_t i = 0; i < file_model_.nodes.size(); ++i) {
    for (const std::string& output : file_model_.nodes[i].outputs) {
      if (output.empty()) continue;
      if (values_.contains(output) && !taken_.contains(&file_model_.nodes[i])) {
        refuse("the value " + in_quotes(output) + " of node " + title(file_model_.nodes[i]) + " is an input, too");
      }
      if (!producers.emplace(output, i).second) refuse("two nodes give the value " + in_quotes(output));
    }
  }
  std::vector<std::vector<std::size_t>> inputs(file_model_.nodes.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (const std::string& input : file_model_.nodes[i].inputs) {
      if (input.empty() || values_.contains(input)) continue;
      const auto producer = producers.find(input);
      if (producer == producers.end()) {
        refuse("the input " + in_quotes(input) + " of node " + title(file_model_.nodes[i]) +
               " is neither an initializer nor the output of a node");
      }
      inputs[i].push_back(producer->second);
    }
  }
  order_ = topological_order(inputs);
  if (order_.size() == inputs.size()) return;
  std::vector<bool> sorted(inputs.size(), false);
  for (const std::size_t i : order_) sorted[i] = true;
  const auto left = static_cast<std::size_t>(std::ranges::find(sorted, false) - sorted.begin());
  refuse("the nodes form a cycle; " + title(file_model_.nodes[left]) + " is in it or behind it");
}

void Importer::report(const FileNode& node, int64_t opset, const std::string& why) {
  problems_.push_back(title(node) + " (opset " + std::to_string(opset) + "): " + why);
}

void Importer::import_node(const FileNode& node) {
  if (node.outputs.empty()) return report(node, node.opset == 0 ? opset_ : node.opset, "gives nothing");
  const auto give_up = [&] {
    for (const std::string& output : node.outputs) broken_.insert(output);
  };
  bool known = false;
  const int64_t opset = node.opset == 0 ? opset_ : node.opset;
  const OpRow* row = node.domain.empty() ? find_row(node.op, opset, known) : nullptr;
  const OpRow* const fused = find_fused_row(node);
  if (fused != nullptr) row = fused;
  std::vector<const Value*> inputs;
  bool complete = true;
  for (const std::string& input : node.inputs) {
    const Value* value = input.empty() ? nullptr : find_value(input);
    if (!input.empty() && value == nullptr) complete = false;  // of a node that was reported
    inputs.push_back(value);
  }
  if (!node.domain.empty() && fused == nullptr) {
    report(node, opset,
           "operators of the domain " + in_quotes(node.domain) + " are not known; export with ONNX's own operators");
    return give_up();
  }
  const bool has_graph = std::ranges::any_of(node.attributes, &Attribute::is_graph);
  if (has_graph) {
    report(node, opset,
           "it runs a graph of its own, which layers can't do; export the network without branches and "
           "loops that depend on data");
    return give_up();
  }
  Call call(*this, node, opset, inputs);
  try {
    if (complete && fold(call)) return;
    if (!complete && is_folded(node.op)) return give_up();
    if (row == nullptr) {
      throw Unsupported(known ? "its form in this opset is not read; export with a later one"
                              : "no layer computes this operator of data; export the network without it");
    }
    if (!complete) return give_up();
    import_rows(*row, std::move(call), std::move(inputs));
  } catch (const Unsupported& problem) {
    report(node, opset, problem.what());
    give_up();
  }
}

// Values whose batch is not in front, as of tokens of all samples together, go with the batch in front through
// operators that leave it in its place.
void Importer::import_rows(const OpRow& row, Call call, std::vector<const Value*> inputs) {
  const auto is_elsewhere = [](const Value* value) { return value != nullptr && is_placed(*value); };
  const auto first = std::ranges::find_if(inputs, is_elsewhere);
  if (first == inputs.end() || !leaves_batch_in_place(row.op)) return row.import(call);
  const Sizes shape = (*first)->shape;
  const BatchPlace place = place_of(**first);
  std::vector<Value> turned(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || inputs[i]->constant) continue;
    if (place_of(*inputs[i]) != place) {
      throw Unsupported("takes values of " + to_string(shape) + " and " + to_string(inputs[i]->shape) +
                        ", whose batches are in different places");
    }
    turned[i] = batch_first(call, *inputs[i]);
    inputs[i] = &turned[i];
  }
  Call with_batch_first(*this, call.node(), call.opset(), std::move(inputs));
  with_batch_first.set_place(place);
  row.import(with_batch_first);
}

const FileNode* Importer::only_reader(const std::string& value) const {
  const auto found = readers_.find(value);
  if (found == readers_.end() || found->second.size() != 1) return nullptr;
  return std::ranges::find(file_model_.outputs, value) == file_model_.outputs.end() ? found->second.front() : nullptr;
}

bool Importer::is_used(const std::string& value) const {
  return readers_.contains(value) || std::ranges::find(file_model_.outputs, value) != file_model_.outputs.end();
}

const Value* Importer::find_value(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

void Importer::set_value(const std::string& name, Value value) { values_[name] = std::move(value); }

int64_t Importer::take_room(const Shape& shape) {
  const std::optional<int64_t> count = checked_count(shape);
  if (!count || *count > limits_.computed - computed_) {
    throw Unsupported("would compute a constant of " + gpunn::to_string(shape) + ", larger than any network's");
  }
  computed_ += *count;
  return *count;
}

LayerSpec* Importer::find_layer(const std::string& name) {
  const auto found = layer_index_.find(name);
  return found == layer_index_.end() ? nullptr : &layers_[found->second];
}

void Importer::add_layer(LayerSpec layer) {
  layer.where = {file_.string(), 0, 0};
  layer_index_[layer.name] = layers_.size();
  layers_.push_back(std::move(layer));
}

// As the weights are called, since other programs know these names; else as the node is.
std::string Importer::unique_name(const FileNode& node, const std::string& suffix) {
  constexpr std::string_view kWeight = ".weight";
  std::string base;
  for (const std::string& input : node.inputs) {
    const Value* value = find_value(input);
    if (base.empty() && value != nullptr && value->constant && input.ends_with(kWeight)) {
      base = plain(std::string_view(input).substr(0, input.size() - kWeight.size()));
    }
  }
  if (base.empty()) {
    base = plain(node.name);
    const std::string own = "." + node.op;
    if (base.ends_with(own)) base.resize(base.size() - own.size());
  }
  if (base.empty() && !node.outputs.empty()) base = plain(node.outputs.front());
  if (base.empty()) base = plain(node.op);
  if (!suffix.empty()) base += "." + suffix;
  std::string name = base;
  int64_t& ordinal = ordinals_[base];
  while (!names_.insert(name).second) name = base + "_" + std::to_string(++ordinal + 1);
  return name;
}

// What does not lead to the output, as a sigmoid that became part of a SiLU; and the output's layer comes last.
void Importer::remove_unused(const std::string& output) {
  std::set<std::string> used = {output};
  for (std::size_t i = layers_.size(); i-- > 0;) {
    if (used.contains(layers_[i].name)) used.insert(layers_[i].from.begin(), layers_[i].from.end());
  }
  LayerSpec last;
  for (LayerSpec& layer : layers_) {
    if (!used.contains(layer.name)) continue;
    for (auto& [name, tensor] : tensors_[layer.name]) result_.tensors.push_back(std::move(tensor));
    if (layer.name == output) {
      last = std::move(layer);
    } else {
      result_.model.layers.push_back(std::move(layer));
    }
  }
  result_.model.layers.push_back(std::move(last));
}

}  // namespace gpunn::interchange
