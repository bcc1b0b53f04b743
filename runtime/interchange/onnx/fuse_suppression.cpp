#include "interchange/onnx/fuse_suppression.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace gpunn::interchange {

namespace {

constexpr int64_t kNumbers = 6;  // of a box that is found: its corners, score and class
using Integers = std::vector<int64_t>;

struct Mismatch {};
void require(bool holds) {
  if (!holds) throw Mismatch();
}

// Walks from a value to what it is made of. Its functions throw Mismatch where that is something else.
class Walk {
 public:
  explicit Walk(const FileModel& model) : model_(model) {
    for (const FileNode& node : model.nodes) {
      for (const std::string& output : node.outputs) producers_[output] = &node;
    }
  }

  const FileNode* producer(const std::string& value) const {
    const auto found = producers_.find(value);
    return found == producers_.end() || !found->second->domain.empty() ? nullptr : found->second;
  }
  // The node of this type whose first output the value is.
  const FileNode& node(const std::string& value, const char* op, std::size_t inputs) {
    const FileNode* found = producer(value);
    require(found != nullptr && found->op == op && found->inputs.size() == inputs && found->outputs.front() == value);
    passed_.insert(found);
    return *found;
  }
  // What is reshaped to this shape, or cast to this type.
  const std::string& reshaped(const std::string& value, const Integers& shape) {
    const FileNode& found = node(value, "Reshape", 2);
    require(integers(found.inputs[1]) == shape && attribute(found, "allowzero", 0) == 0);
    return found.inputs[0];
  }
  const std::string& cast(const std::string& value, Element to) {
    const FileNode& found = node(value, "Cast", 1);
    require(attribute(found, "to", 0) == static_cast<int64_t>(to));
    return found.inputs[0];
  }
  // The numbers from `begin` to `end` of the last of three dimensions.
  const std::string& sliced(const std::string& value, int64_t begin, int64_t end) {
    const FileNode& found = node(value, "Slice", 4);
    require(integers(found.inputs[1]) == Integers{begin} && integers(found.inputs[2]) == Integers{end} &&
            integers(found.inputs[3]) == Integers{2});
    return found.inputs[0];
  }

  const Constant& constant(const std::string& value) const {
    if (const auto found = model_.initializers.find(value); found != model_.initializers.end()) return found->second;
    const FileNode* node = producer(value);
    require(node != nullptr && node->op == "Constant" && node->attributes.size() == 1);
    const auto* held = std::get_if<Constant>(&node->attributes.front().value);
    require(held != nullptr);
    return *held;
  }
  Integers integers(const std::string& value) const {
    const Constant& found = constant(value);
    constexpr std::size_t kMost = 8;
    require(!is_floating(found.element) && found.integers.size() <= kMost);
    Integers result;
    for (const Size& size : found.integers) result.push_back(size.factor);
    return result;
  }
  int64_t integer(const std::string& value) const {
    const Integers found = integers(value);
    require(found.size() == 1);
    return found.front();
  }
  float number(const std::string& value) const {
    const Constant& found = constant(value);
    require(is_floating(found.element) && found.floats->size() == 1);
    return found.floats->front();
  }
  static int64_t attribute(const FileNode& node, const char* name, int64_t fallback) {
    const auto found = std::ranges::find(node.attributes, name, &Attribute::name);
    if (found == node.attributes.end()) return fallback;
    const auto* value = std::get_if<int64_t>(&found->value);
    require(value != nullptr);
    return *value;
  }
  static bool has_attribute(const FileNode& node, const char* name) {
    return std::ranges::find(node.attributes, name, &Attribute::name) != node.attributes.end();
  }
  static bool swaps_last(const FileNode& transpose) {
    const auto found = std::ranges::find(transpose.attributes, "perm", &Attribute::name);
    const auto* order = found == transpose.attributes.end() ? nullptr : std::get_if<Integers>(&found->value);
    return order != nullptr && *order == Integers{0, 2, 1};
  }

  std::set<const FileNode*>& passed() { return passed_; }

 private:
  const FileModel& model_;
  std::map<std::string, const FileNode*> producers_;
  std::set<const FileNode*> passed_;
};

struct Suppression {
  std::string name, boxes, scores;
  int64_t count = 0, classes = 0, most = 0;
  float overlap = 0, least_score = 0;
};

// `value` without the `otherwise` in rows behind the last box.
const std::string& where_found(Walk& walk, const std::string& value, float otherwise, std::string& found) {
  const FileNode& where = walk.node(value, "Where", 3);
  require(walk.number(where.inputs[2]) == otherwise && (found.empty() || found == where.inputs[0]));
  found = where.inputs[0];
  return where.inputs[1];
}

// What Pad puts behind the rows of [N, some]; nothing: there is no Pad.
int64_t padding_behind(Walk& walk, std::string& value, std::optional<float> with) {
  const FileNode* producer = walk.producer(value);
  if (producer == nullptr || producer->op != "Pad") return 0;
  const FileNode& pad = walk.node(value, "Pad", with ? 3 : 2);
  const Integers pads = walk.integers(pad.inputs[1]);
  require(pads.size() == 4 && pads[0] == 0 && pads[1] == 0 && pads[2] == 0 && pads[3] > 0);
  require(!Walk::has_attribute(pad, "mode") && (!with || walk.number(pad.inputs[2]) == *with));
  value = pad.inputs[0];
  return pads[3];
}

// The scores of the boxes that NonMaxSuppression keeps, at their places among all of an image, -1 at others.
void kept_scores(Walk& walk, const std::string& value, Suppression& result) {
  const FileNode& scatter = walk.node(value, "ScatterND", 3);
  require(!Walk::has_attribute(scatter, "reduction"));
  const FileNode& none = walk.node(scatter.inputs[0], "Expand", 2);
  const std::string& scores = walk.node(none.inputs[1], "Shape", 1).inputs[0];
  const FileNode& places = walk.node(scatter.inputs[1], "Gather", 2);
  require(walk.number(none.inputs[0]) == -1 && Walk::attribute(places, "axis", 0) == 1 &&
          walk.integers(places.inputs[1]) == Integers{0, 2, 1});
  const FileNode& kept = walk.node(scatter.inputs[2], "GatherND", 2);
  require(kept.inputs[0] == scores && kept.inputs[1] == scatter.inputs[1] &&
          Walk::attribute(kept, "batch_dims", 0) == 0);
  const FileNode& suppression = walk.node(places.inputs[0], "NonMaxSuppression", 5);
  const FileNode& by_class = walk.node(suppression.inputs[1], "Transpose", 1);
  require(suppression.inputs[0] == result.boxes && by_class.inputs[0] == scores && Walk::swaps_last(by_class) &&
          Walk::attribute(suppression, "center_point_box", 0) == 0);
  require(walk.integer(suppression.inputs[2]) == result.most);
  result.name = suppression.name;
  result.scores = scores;
  result.overlap = walk.number(suppression.inputs[3]);
  result.least_score = walk.number(suppression.inputs[4]);
}

// The best boxes of an image with their scores and classes, which `concat` puts side by side.
Suppression suppression_of(Walk& walk, const FileNode& concat) {
  const int64_t axis = Walk::attribute(concat, "axis", 0);
  require(concat.inputs.size() == 3 && concat.outputs.size() == 1 && (axis == 2 || axis == -1));
  Suppression result;
  std::string found;
  const std::string& box = where_found(walk, concat.inputs[0], 0, found);
  const std::string& score = where_found(walk, concat.inputs[1], 0, found);
  const std::string& category = where_found(walk, concat.inputs[2], -1, found);
  const Integers shape = walk.integers(walk.node(found, "Reshape", 2).inputs[1]);
  require(shape.size() == 3 && shape[1] > 0);
  result.most = shape[1];
  const Integers by_box = {0, result.most, 1};
  const FileNode& is_found = walk.node(walk.reshaped(found, by_box), "LessOrEqual", 2);
  std::string best = is_found.inputs[1];
  require(walk.number(is_found.inputs[0]) == 0 && walk.reshaped(score, by_box) == best);

  const FileNode& number = walk.node(walk.cast(walk.reshaped(category, by_box), Element::f32), "Mod", 2);
  const FileNode& corners = walk.node(box, "GatherND", 2);
  const FileNode& row = walk.node(walk.reshaped(corners.inputs[1], by_box), "Div", 2);
  std::string place = number.inputs[0];
  result.classes = walk.integer(number.inputs[1]);
  result.boxes = corners.inputs[0];
  require(row.inputs[0] == place && walk.integer(row.inputs[1]) == result.classes && result.classes > 0);
  require(Walk::attribute(corners, "batch_dims", 0) == 1);

  const int64_t behind = padding_behind(walk, best, -1.0F);
  require(padding_behind(walk, place, std::nullopt) == behind);
  const FileNode& top = walk.node(best, "TopK", 2);
  require(top.outputs.size() == 2 && top.outputs[1] == place && Walk::attribute(top, "axis", -1) == -1 &&
          Walk::attribute(top, "largest", 1) == 1 && Walk::attribute(top, "sorted", 1) == 1);
  const Integers flat = walk.integers(walk.node(top.inputs[0], "Reshape", 2).inputs[1]);
  require(flat.size() == 2 && flat[1] > 0 && flat[1] % result.classes == 0);
  result.count = flat[1] / result.classes;
  require(walk.integer(top.inputs[1]) == std::min(result.most, flat[1]) &&
          behind == std::max<int64_t>(0, result.most - flat[1]));
  kept_scores(walk, walk.reshaped(top.inputs[0], {0, flat[1]}), result);
  return result;
}

FileNode node_of(const Suppression& from, const std::string& output) {
  FileNode node;
  node.name = from.name;
  node.op = "NonMaximumSuppression";
  node.domain = kFusedDomain;
  node.inputs = {from.boxes, from.scores};
  node.outputs = {output};
  const auto set = [&](const char* name, auto value) {
    node.attributes.push_back({.name = name, .reference = {}, .value = value});
  };
  set("count", from.count);
  set("classes", from.classes);
  set("most", from.most);
  set("overlap", from.overlap);
  set("least_score", from.least_score);
  return node;
}

// The value [N, most, 6] of which the outputs are the boxes, scores and labels.
const std::string& source_of_outputs(Walk& walk, const std::vector<std::string>& outputs, int64_t most) {
  const std::string& rows = walk.sliced(outputs.at(0), 0, 4);
  const Integers one = {0, most};
  require(walk.sliced(walk.reshaped(outputs.at(1), one), 4, 5) == rows);
  require(walk.sliced(walk.reshaped(walk.cast(outputs.at(2), Element::i64), one), 5, 6) == rows);
  const std::string& flat = walk.reshaped(rows, {0, most, kNumbers});
  const FileNode* flatten = walk.producer(flat);
  if (flatten == nullptr || flatten->op != "Flatten") return flat;
  require(Walk::attribute(*flatten, "axis", 1) == 1);
  return walk.node(flat, "Flatten", 1).inputs[0];
}

// Of these nodes those that nothing reads.
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

// Makes the rows of boxes that are found the only output where the graph's outputs are parts of them.
void take_outputs(FileModel& model, const std::string& rows, int64_t most, std::set<const FileNode*>& passed) {
  if (model.outputs.size() != 3) return;
  Walk walk(model);
  try {
    if (source_of_outputs(walk, model.outputs, most) != rows) return;
  } catch (const Mismatch&) {
    return;  // other outputs, which the import refuses
  }
  model.outputs = {rows};
  passed.insert(walk.passed().begin(), walk.passed().end());
}

bool fuse_one(FileModel& model) {
  Walk walk(model);
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    if (model.nodes[i].op != "Concat" || !model.nodes[i].domain.empty() || model.nodes[i].inputs.size() != 3) continue;
    walk.passed().clear();
    try {
      const Suppression found = suppression_of(walk, model.nodes[i]);
      const std::string rows = model.nodes[i].outputs.front();
      std::set<const FileNode*> passed = walk.passed();
      take_outputs(model, rows, found.most, passed);
      passed.erase(&model.nodes[i]);
      model.nodes[i] = node_of(found, rows);
      remove_unread(model, std::move(passed));
      return true;
    } catch (const Mismatch&) {
      continue;
    }
  }
  return false;
}

}  // namespace

void fuse_suppression(FileModel& model) {
  if (std::ranges::find(model.nodes, "NonMaxSuppression", &FileNode::op) == model.nodes.end()) return;
  while (fuse_one(model)) {
  }
}

}  // namespace gpunn::interchange
