#include "interchange/onnx/channels_first.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace gpunn::interchange {

namespace {

const std::vector<int64_t> kChannelsFirst = {0, 3, 1, 2};
constexpr std::size_t kMostSteps = 16;  // of a normalisation

bool is_turn(const FileNode& node) {
  const auto order = std::ranges::find(node.attributes, "perm", &Attribute::name);
  if (node.op != "Transpose" || order == node.attributes.end()) return false;
  const auto* list = std::get_if<std::vector<int64_t>>(&order->value);
  return list != nullptr && *list == kChannelsFirst;
}

// The only node that reads a value, which is no output; nullptr: there are others, or none.
FileNode* only_reader(FileModel& model, const std::string& value) {
  if (std::ranges::find(model.outputs, value) != model.outputs.end()) return nullptr;
  FileNode* found = nullptr;
  for (FileNode& node : model.nodes) {
    const auto reads = std::ranges::count(node.inputs, value);
    if (reads == 0) continue;
    if (found != nullptr || reads > 1) return nullptr;
    found = &node;
  }
  return found;
}

// Whether a constant is one number, or one for each of the last dimension.
bool is_by_channel(const Constant& constant) {
  if (!is_floating(constant.element)) return false;
  const auto count = static_cast<int64_t>(constant.floats->size());
  return count == 1 || (!constant.shape.empty() && constant.shape.size() <= 4 && constant.shape.back() == count);
}

// The constants among the inputs of arithmetic that may come behind the turn; false: it is something else.
bool is_arithmetic(const FileModel& model, const FileNode& node, const std::string& value) {
  constexpr std::array<std::string_view, 6> kOps = {"Add", "Sub", "Mul", "Div", "Cast", "Identity"};
  if (!node.domain.empty() || node.outputs.size() != 1 || std::ranges::find(kOps, node.op) == kOps.end()) return false;
  return std::ranges::all_of(node.inputs, [&](const std::string& input) {
    const auto constant = model.initializers.find(input);
    return input == value || (constant != model.initializers.end() && is_by_channel(constant->second));
  });
}

}  // namespace

namespace {

void turn_input_first(FileModel& model, const FileInput& input) {
  std::vector<FileNode*> arithmetic;
  std::string value = input.name;
  FileNode* node = only_reader(model, value);
  while (node != nullptr && arithmetic.size() < kMostSteps && is_arithmetic(model, *node, value)) {
    arithmetic.push_back(node);
    value = node->outputs.front();
    node = only_reader(model, value);
  }
  if (node == nullptr || arithmetic.empty() || !node->domain.empty() || node->outputs.size() != 1 || !is_turn(*node))
    return;
  const std::string turned = input.name + "/channels_first";
  for (FileNode* one : arithmetic) {
    for (std::string& name : one->inputs) {
      const auto constant = model.initializers.find(name);
      if (constant == model.initializers.end()) continue;
      const auto count = static_cast<int64_t>(constant->second.floats->size());
      if (count == 1) continue;
      Constant by_channel = constant->second;
      by_channel.shape = {count, 1, 1};
      name += "/channels_first";
      model.initializers[name] = std::move(by_channel);
    }
  }
  std::ranges::replace(arithmetic.front()->inputs, input.name, turned);
  arithmetic.back()->outputs.front() = node->outputs.front();
  node->inputs.front() = input.name;
  node->outputs.front() = turned;
}

}  // namespace

void turn_inputs_first(FileModel& model) {
  for (const FileInput& input : model.inputs) {
    const bool is_image = input.shape.size() == kChannelsFirst.size() && computes_in(input.element);
    if (is_image && !model.initializers.contains(input.name)) turn_input_first(model, input);
  }
}

}  // namespace gpunn::interchange
