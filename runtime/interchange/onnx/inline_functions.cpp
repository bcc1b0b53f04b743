#include "interchange/onnx/inline_functions.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/text.hpp"

namespace gpunn::interchange {

namespace {

constexpr std::size_t kMostNodes = 100'000;
constexpr int kDeepest = 32;

using Names = std::map<std::string, std::string>;
using Attributes = std::vector<Attribute>;

class Inlining {
 public:
  explicit Inlining(const FileModel& model) {
    for (const FileFunction& function : model.functions) functions_[key(function)] = &function;
  }

  std::vector<FileNode> take(const std::vector<FileNode>& nodes) {
    for (const FileNode& node : nodes) add(node, 0);
    return std::move(result_);
  }

  const std::string& failure() const { return failure_; }

 private:
  using Key = std::tuple<std::string, std::string, std::string>;

  static Key key(const FileFunction& function) { return {function.domain, function.name, function.overload}; }

  void add(FileNode node, int depth) {
    if (!failure_.empty()) return;
    const auto found = functions_.find({node.domain, node.op, node.overload});
    if (found != functions_.end()) return add_body(*found->second, node, depth);
    if (result_.size() == kMostNodes) {
      failure_ = "the functions of the file make more than 100,000 nodes";
      return;
    }
    result_.push_back(std::move(node));
  }

  void add_body(const FileFunction& function, const FileNode& call, int depth) {
    if (depth == kDeepest) {
      failure_ = "the function " + in_quotes(function.name) + " calls others, or itself, more than 32 deep";
      return;
    }
    if (call.inputs.size() > function.inputs.size() || call.outputs.size() > function.outputs.size()) {
      failure_ = "the node " + in_quotes(call.name) + " has more inputs or outputs than its function " +
                 in_quotes(function.name);
      return;
    }
    constexpr std::size_t kLongestName = 100;
    const std::string& title = call.name.empty() ? function.name : call.name;
    const std::string own = title.substr(0, kLongestName) + "/" + std::to_string(++calls_) + "/";
    Names names;
    for (std::size_t i = 0; i < function.inputs.size(); ++i) {
      names[function.inputs[i]] = i < call.inputs.size() ? call.inputs[i] : "";
    }
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      if (!call.outputs[i].empty()) names[function.outputs[i]] = call.outputs[i];
    }
    const auto renamed = [&](const std::string& name) {
      if (name.empty()) return name;
      const auto found = names.find(name);
      return found == names.end() ? own + name : found->second;
    };
    const auto version = function.opsets.find("");
    for (FileNode node : function.nodes) {
      node.name = own + node.name;
      for (std::string& input : node.inputs) input = renamed(input);
      for (std::string& output : node.outputs) output = renamed(output);
      node.attributes = resolved(node.attributes, function, call.attributes);
      if (node.opset == 0 && version != function.opsets.end()) node.opset = version->second;
      add(std::move(node), depth + 1);
    }
  }

  // What refers to an attribute of the call has its value, or the default; else it is left out.
  static Attributes resolved(const Attributes& attributes, const FileFunction& function, const Attributes& given) {
    Attributes result;
    for (Attribute attribute : attributes) {
      if (!attribute.reference.empty()) {
        const Attribute* value = nullptr;
        for (const Attributes* source : {&given, &function.defaults}) {
          const auto found = std::ranges::find(*source, attribute.reference, &Attribute::name);
          if (value == nullptr && found != source->end()) value = &*found;
        }
        if (value == nullptr) continue;
        attribute.value = value->value;
        attribute.is_graph = value->is_graph;
        attribute.reference = value->reference;
      }
      result.push_back(std::move(attribute));
    }
    return result;
  }

  std::map<Key, const FileFunction*> functions_;
  std::vector<FileNode> result_;
  std::size_t calls_ = 0;
  std::string failure_;
};

}  // namespace

std::string inline_functions(FileModel& model) {
  if (model.functions.empty()) return "";
  Inlining inlining(model);
  model.nodes = inlining.take(model.nodes);
  return inlining.failure();
}

}  // namespace gpunn::interchange
