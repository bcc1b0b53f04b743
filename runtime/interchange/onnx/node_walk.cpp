#include "interchange/onnx/node_walk.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace gpunn::interchange {

NodeWalk::NodeWalk(const FileModel& model) : model_(model) {
  for (const FileNode& node : model.nodes) {
    for (const std::string& output : node.outputs) producers_[output] = &node;
  }
}

const FileNode* NodeWalk::producer(const std::string& value) const {
  const auto found = producers_.find(value);
  return found == producers_.end() || !found->second->domain.empty() ? nullptr : found->second;
}

const FileNode& NodeWalk::node(const std::string& value, const char* op, std::size_t inputs) {
  const FileNode* found = producer(value);
  match(found != nullptr && found->op == op && found->inputs.size() == inputs && found->outputs.front() == value);
  passed_.insert(found);
  return *found;
}

const std::string& NodeWalk::reshaped(const std::string& value, const Integers& shape) {
  const FileNode& found = node(value, "Reshape", 2);
  match(integers(found.inputs[1]) == shape && attribute(found, "allowzero", 0) == 0);
  return found.inputs[0];
}

const std::string& NodeWalk::cast(const std::string& value, Element to) {
  const FileNode& found = node(value, "Cast", 1);
  match(attribute(found, "to", 0) == static_cast<int64_t>(to));
  return found.inputs[0];
}

const std::string& NodeWalk::transposed(const std::string& value, const Integers& order) {
  const FileNode& found = node(value, "Transpose", 1);
  match(list(found, "perm") == order);
  return found.inputs[0];
}

const std::string& NodeWalk::sliced(const std::string& value, int64_t begin, int64_t end) {
  const FileNode& found = node(value, "Slice", 4);
  match(integers(found.inputs[1]) == Integers{begin} && integers(found.inputs[2]) == Integers{end} &&
        integers(found.inputs[3]) == Integers{2});
  return found.inputs[0];
}

const Constant& NodeWalk::constant(const std::string& value) const {
  if (const auto found = model_.initializers.find(value); found != model_.initializers.end()) return found->second;
  const FileNode* node = producer(value);
  match(node != nullptr && node->op == "Constant" && node->attributes.size() == 1);
  const auto* held = std::get_if<Constant>(&node->attributes.front().value);
  match(held != nullptr);
  return *held;
}

Integers NodeWalk::integers(const std::string& value) const {
  const Constant& found = constant(value);
  constexpr std::size_t kMost = 8;
  match(!is_floating(found.element) && found.integers.size() <= kMost);
  Integers result;
  for (const Size& size : found.integers) result.push_back(size.factor);
  return result;
}

int64_t NodeWalk::integer(const std::string& value) const {
  const Integers found = integers(value);
  match(found.size() == 1);
  return found.front();
}

float NodeWalk::number(const std::string& value) const {
  const Constant& found = constant(value);
  match(is_floating(found.element) && found.floats->size() == 1);
  return found.floats->front();
}

int64_t NodeWalk::attribute(const FileNode& node, const char* name, int64_t fallback) {
  const auto found = std::ranges::find(node.attributes, name, &Attribute::name);
  if (found == node.attributes.end()) return fallback;
  const auto* value = std::get_if<int64_t>(&found->value);
  match(value != nullptr);
  return *value;
}

bool NodeWalk::has_attribute(const FileNode& node, const char* name) {
  return std::ranges::find(node.attributes, name, &Attribute::name) != node.attributes.end();
}

Integers NodeWalk::list(const FileNode& node, const char* name) {
  const auto found = std::ranges::find(node.attributes, name, &Attribute::name);
  const auto* value = found == node.attributes.end() ? nullptr : std::get_if<Integers>(&found->value);
  return value == nullptr ? Integers() : *value;
}

FileNode fused_node(const std::string& name, const char* op, std::vector<std::string> inputs,
                    const std::string& output) {
  FileNode node;
  node.name = name;
  node.op = op;
  node.domain = kFusedDomain;
  node.inputs = std::move(inputs);
  node.outputs = {output};
  return node;
}

void set_attribute(FileNode& node, const char* name, int64_t value) {
  node.attributes.push_back({.name = name, .reference = {}, .value = value});
}

void set_attribute(FileNode& node, const char* name, float value) {
  node.attributes.push_back({.name = name, .reference = {}, .value = value});
}

void remove_unread(FileModel& model, std::set<const FileNode*> nodes) {
  std::map<std::string, int> readers;
  for (const std::string& output : model.outputs) ++readers[output];
  for (const FileNode& node : model.nodes) {
    for (const std::string& input : node.inputs) ++readers[input];
  }
  std::set<const FileNode*> removed;
  for (bool changes = true; changes;) {
    changes = false;
    for (auto it = nodes.begin(); it != nodes.end();) {
      const FileNode& node = **it;
      if (std::ranges::any_of(node.outputs, [&](const std::string& output) { return readers[output] > 0; })) {
        ++it;
        continue;
      }
      for (const std::string& input : node.inputs) --readers[input];
      removed.insert(&node);
      it = nodes.erase(it);
      changes = true;
    }
  }
  std::vector<FileNode> kept;
  for (FileNode& node : model.nodes) {
    if (!removed.contains(&node)) kept.push_back(std::move(node));
  }
  model.nodes = std::move(kept);
}

}  // namespace gpunn::interchange
