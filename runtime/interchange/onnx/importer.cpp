#include "interchange/onnx/importer.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <iterator>

#include "common/parse_number.hpp"
#include "common/text.hpp"
#include "common/topological_order.hpp"
#include "interchange/onnx/channels_first.hpp"
#include "interchange/onnx/dimensions.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/fuse_adaptive_pooling.hpp"
#include "interchange/onnx/fuse_suppression.hpp"
#include "interchange/onnx/inline_functions.hpp"
#include "interchange/onnx/node_walk.hpp"
#include "interchange/onnx/operands.hpp"
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

std::map<std::string, std::vector<OpRow>> all_rows() {
  std::map<std::string, std::vector<OpRow>> table;
  for (const auto& rows : {activation_rows(),
                           along_rows(),
                           attention_rows(),
                           cast_rows(),
                           comparison_rows(),
                           einsum_rows(),
                           convolution_rows(),
                           elementwise_rows(),
                           linear_rows(),
                           loss_rows(),
                           normalization_rows(),
                           piece_rows(),
                           quantization_rows(),
                           quantized_product_rows(),
                           quantized_operator_rows(),
                           pooling_rows(),
                           recurrent_rows(),
                           reduction_rows(),
                           resizing_rows(),
                           rotary_rows(),
                           shape_rows(),
                           suppression_rows()}) {
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

std::vector<int64_t> read_input_shape(std::string_view text) {
  std::string plain_text(text);
  std::erase_if(plain_text, [](char c) { return c == '[' || c == ']' || c == ' '; });
  std::vector<int64_t> sizes;
  for (std::size_t begin = 0; begin <= plain_text.size();) {
    const std::size_t end = std::min(plain_text.find(',', begin), plain_text.size());
    const std::string_view one = std::string_view(plain_text).substr(begin, end - begin);
    const std::optional<int64_t> size = one == "n" ? 0 : parse_number<int64_t>(one);
    if (!size || (one != "n" && *size < 1)) {
      throw Error("input shape: expected sizes above 0 such as 3,64,64, found '" + std::string(text) + "'",
                  ExitCode::usage);
    }
    sizes.push_back(*size);
    begin = end + 1;
  }
  return sizes;
}

bool is_onnx(const std::filesystem::path& file) { return file.extension() == ".onnx"; }

// A file whose sizes are all fixed may be one sample as a whole. What the rows of a batch can't do is tried so.
ImportedModel import_onnx(const std::filesystem::path& file, const ImportOptions& options) {
  FileModel model = read_file_model(file);
  Importer by_rows(file, model, options, true);
  try {
    return by_rows.run();
  } catch (const Error&) {
    if (!by_rows.may_be_one_sample()) throw;
    const std::exception_ptr reason = std::current_exception();
    Importer whole(file, std::move(model), options, false);
    try {
      return whole.run();
    } catch (const Error&) {
      if (by_rows.problems() == 0 || whole.problems() <= by_rows.problems()) throw;
      std::rethrow_exception(reason);
    }
  }
}

Importer::Importer(std::filesystem::path file, FileModel model, ImportOptions options, bool has_batch)
    : file_(std::move(file)), options_(std::move(options)), has_batch_(has_batch), file_model_(std::move(model)) {}

void Importer::refuse(const std::string& why) const { throw Error(file_.string() + ": " + why, ExitCode::usage); }

ImportedModel Importer::run() {
  const auto own = file_model_.opsets.find("");
  if (own == file_model_.opsets.end()) {
    refuse(file_model_.opsets.empty()
               ? "the file does not say which version of ONNX's operators it uses"
               : "the file uses operators of the domain " + in_quotes(file_model_.opsets.begin()->first) +
                     " alone; ONNX's own operators are read");
  }
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
  turn_inputs_first(file_model_);
  for (auto& [name, constant] : file_model_.initializers) values_[name] = constant_value(std::move(constant));
  for (const FileNode& node : file_model_.nodes) {
    for (const std::string& input : node.inputs) {
      if (!input.empty()) readers_[input].push_back(&node);
    }
  }
  drop_predictions();
  if (file_model_.outputs.empty()) refuse("the graph has no outputs");
  read_inputs();
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
  remove_unused(give_outputs());
  result_.model.file = file_;
  result_.model.name = file_.stem().string();
  result_.outputs = file_model_.outputs;
  result_.metadata = std::move(file_model_.metadata);
  return std::move(result_);
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
  const OpRow* row = find_row(node.domain.empty() ? node.op : node.domain + "." + node.op, opset, known);
  const OpRow* const fused = find_fused_row(node);
  if (fused != nullptr) row = fused;
  std::vector<const Value*> inputs;
  bool complete = true;
  for (const std::string& input : node.inputs) {
    const Value* value = input.empty() ? nullptr : find_value(input);
    if (!input.empty() && value == nullptr) complete = false;  // of a node that was reported
    inputs.push_back(value);
  }
  if (!node.domain.empty() && row == nullptr) {
    report(node, opset,
           "this operator of the domain " + in_quotes(node.domain) + " is not known; export with ONNX's own operators");
    return give_up();
  }
  const bool has_graph = std::ranges::any_of(node.attributes, &Attribute::is_graph);
  if (has_graph) {
    report(node, opset,
           "it runs a graph of its own, which layers can't do; export the network without branches and "
           "loops that depend on data");
    return give_up();
  }
  if (!complete && (is_folded(node.op) || row != nullptr || is_movement(node.op))) return give_up();
  try {
    import_by_row(node, opset, row, inputs);
  } catch (const Unsupported& problem) {
    report(node, opset, problem.what());
    give_up();
  }
}

void Importer::import_by_row(const FileNode& node, int64_t opset, const OpRow* row,
                             const std::vector<const Value*>& inputs) {
  Call call(*this, node, opset, inputs);
  if (fold(call)) return;
  constexpr OpRow kMovement = {"", 0, import_movement};
  if (row == nullptr && node.domain.empty() && is_movement(node.op)) row = &kMovement;
  if (row == nullptr) {
    bool known = false;
    find_row(node.op, opset, known);
    throw Unsupported(known ? "its form in this opset is not read; export with a later one"
                            : "no layer computes this operator of data; export the network without it");
  }
  import_rows(*row, call, inputs);
}

Value Importer::apply(const FileNode& origin, const std::string& op, const std::vector<Value>& inputs,
                      std::vector<Attribute> attributes) {
  FileNode& node = applied_.emplace_back();
  node.name = origin.name;
  node.op = op;
  node.outputs = {origin.outputs.empty() ? op : origin.outputs.front() + "/" + op + std::to_string(applied_.size())};
  node.attributes = std::move(attributes);
  std::vector<const Value*> given;
  for (const Value& one : inputs)
    given.push_back(one.shape.empty() && one.layer.empty() && !one.constant ? nullptr : &one);
  bool known = false;
  import_by_row(node, kDefinitionOpset, find_row(op, kDefinitionOpset, known), given);
  const auto found = values_.find(node.outputs.front());
  Value result = std::move(found->second);
  values_.erase(found);
  return result;
}

// What one row of a batch can't do with the batch in its place may be done with it outside.
void Importer::import_rows(const OpRow& row, const Call& call, const std::vector<const Value*>& inputs) {
  std::vector<Value> all(inputs.size());
  std::vector<const Value*> whole(inputs.size(), nullptr);
  bool is_new = false;
  for (std::size_t i = 0; baked_batch_ == 1 && i < inputs.size(); ++i) {
    whole[i] = inputs[i];
    if (inputs[i] == nullptr || inputs[i]->constant) continue;
    is_new = is_new || !place_of(*inputs[i]).is_outside();
    Call own = call;
    all[i] = *outside(own, *inputs[i]);
    whole[i] = &all[i];
  }
  try {
    return import_in_place(row, call, inputs);
  } catch (const Unsupported&) {
    if (!is_new) throw;
    const std::exception_ptr reason = std::current_exception();
    try {
      return import_in_place(row, call, whole);
    } catch (const Unsupported&) {
      std::rethrow_exception(reason);
    }
  }
}

void Importer::import_in_place(const OpRow& row, const Call& call, std::vector<const Value*> inputs) {
  const auto is_elsewhere = [](const Value* value) {
    return value != nullptr && !value->constant && is_placed(*value);
  };
  const auto first = std::ranges::find_if(inputs, is_elsewhere);
  if (first == inputs.end() || row.batch == BatchIn::any) {
    Call as_it_is(*this, call.node(), call.opset(), std::move(inputs));
    return row.import(as_it_is);
  }
  const BatchPlace place = place_of(**first);
  const bool takes_one = row.batch == BatchIn::front ||
                         (row.batch == BatchIn::frames && place.is_outside() && (*first)->shape.front().factor == 1);
  const std::size_t given = (*first)->shape.size();
  Call scratch(*this, call.node(), call.opset(), {});
  std::vector<Value> turned(inputs.size());
  std::size_t rank = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr || inputs[i]->constant) continue;
    if (place_of(*inputs[i]) != place) {
      throw Unsupported("takes values of " + to_string((*first)->shape) + " and " + to_string(inputs[i]->shape) +
                        ", whose batches are in different places");
    }
    turned[i] = takes_one ? one_as_batch(scratch, *inputs[i]) : batch_first(scratch, *inputs[i]);
    inputs[i] = &turned[i];
    rank = std::max(rank, turned[i].shape.size());
  }
  Call with_batch_first(*this, call.node(), call.opset(), std::move(inputs));
  if (takes_one) {
    with_batch_first.set_one_as_batch();
  } else {
    with_batch_first.set_place(place, rank - place.shift() - given);
  }
  row.import(with_batch_first);
}

const FileNode* Importer::only_reader(const std::string& value) const {
  const auto found = readers_.find(value);
  if (found == readers_.end() || found->second.size() != 1) return nullptr;
  return is_output(value) ? nullptr : found->second.front();
}

bool Importer::is_output(const std::string& value) const {
  return std::ranges::find(file_model_.outputs, value) != file_model_.outputs.end();
}

bool Importer::is_used(const std::string& value) const { return readers_.contains(value) || is_output(value); }

const Value* Importer::find_value(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

void Importer::set_value(const std::string& name, Value value) { values_[name] = std::move(value); }

int64_t Importer::take_room(const Shape& shape) {
  const std::optional<int64_t> count = checked_count(shape);
  if (!count || *count > options_.computed - computed_) {
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

}  // namespace gpunn::interchange
