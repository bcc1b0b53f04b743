#include "interchange/onnx/fuse_suppression.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "interchange/onnx/node_walk.hpp"

namespace gpunn::interchange {

namespace {

constexpr int64_t kNumbers = 6;  // of a box that is found: its corners, score and class
struct Suppression {
  std::string name, boxes, scores;
  int64_t count = 0, classes = 0, most = 0;
  float overlap = 0, least_score = 0;
};

// `value` without the `otherwise` in rows behind the last box.
const std::string& where_found(NodeWalk& walk, const std::string& value, float otherwise, std::string& found) {
  const FileNode& where = walk.node(value, "Where", 3);
  match(walk.number(where.inputs[2]) == otherwise && (found.empty() || found == where.inputs[0]));
  found = where.inputs[0];
  return where.inputs[1];
}

// What Pad puts behind the rows of [N, some]; nothing: there is no Pad.
int64_t padding_behind(NodeWalk& walk, std::string& value, std::optional<float> with) {
  const FileNode* producer = walk.producer(value);
  if (producer == nullptr || producer->op != "Pad") return 0;
  const FileNode& pad = walk.node(value, "Pad", with ? 3 : 2);
  const Integers pads = walk.integers(pad.inputs[1]);
  match(pads.size() == 4 && pads[0] == 0 && pads[1] == 0 && pads[2] == 0 && pads[3] > 0);
  match(!NodeWalk::has_attribute(pad, "mode") && (!with || walk.number(pad.inputs[2]) == *with));
  value = pad.inputs[0];
  return pads[3];
}

// The scores of the boxes that NonMaxSuppression keeps, at their places among all of an image, -1 at others.
void kept_scores(NodeWalk& walk, const std::string& value, Suppression& result) {
  const FileNode& scatter = walk.node(value, "ScatterND", 3);
  match(!NodeWalk::has_attribute(scatter, "reduction"));
  const FileNode& none = walk.node(scatter.inputs[0], "Expand", 2);
  const std::string& scores = walk.node(none.inputs[1], "Shape", 1).inputs[0];
  const FileNode& places = walk.node(scatter.inputs[1], "Gather", 2);
  match(walk.number(none.inputs[0]) == -1 && NodeWalk::attribute(places, "axis", 0) == 1 &&
        walk.integers(places.inputs[1]) == Integers{0, 2, 1});
  const FileNode& kept = walk.node(scatter.inputs[2], "GatherND", 2);
  match(kept.inputs[0] == scores && kept.inputs[1] == scatter.inputs[1] &&
        NodeWalk::attribute(kept, "batch_dims", 0) == 0);
  const FileNode& suppression = walk.node(places.inputs[0], "NonMaxSuppression", 5);
  match(suppression.inputs[0] == result.boxes && walk.transposed(suppression.inputs[1], {0, 2, 1}) == scores &&
        NodeWalk::attribute(suppression, "center_point_box", 0) == 0);
  match(walk.integer(suppression.inputs[2]) == result.most);
  result.name = suppression.name;
  result.scores = scores;
  result.overlap = walk.number(suppression.inputs[3]);
  result.least_score = walk.number(suppression.inputs[4]);
}

// The best boxes of an image with their scores and classes, which `concat` puts side by side.
Suppression suppression_of(NodeWalk& walk, const FileNode& concat) {
  const int64_t axis = NodeWalk::attribute(concat, "axis", 0);
  match(concat.inputs.size() == 3 && concat.outputs.size() == 1 && (axis == 2 || axis == -1));
  Suppression result;
  std::string found;
  const std::string& box = where_found(walk, concat.inputs[0], 0, found);
  const std::string& score = where_found(walk, concat.inputs[1], 0, found);
  const std::string& category = where_found(walk, concat.inputs[2], -1, found);
  const Integers shape = walk.integers(walk.node(found, "Reshape", 2).inputs[1]);
  match(shape.size() == 3 && shape[1] > 0);
  result.most = shape[1];
  const Integers by_box = {0, result.most, 1};
  const FileNode& is_found = walk.node(walk.reshaped(found, by_box), "LessOrEqual", 2);
  std::string best = is_found.inputs[1];
  match(walk.number(is_found.inputs[0]) == 0 && walk.reshaped(score, by_box) == best);

  const FileNode& number = walk.node(walk.cast(walk.reshaped(category, by_box), Element::f32), "Mod", 2);
  const FileNode& corners = walk.node(box, "GatherND", 2);
  const FileNode& row = walk.node(walk.reshaped(corners.inputs[1], by_box), "Div", 2);
  std::string place = number.inputs[0];
  result.classes = walk.integer(number.inputs[1]);
  result.boxes = corners.inputs[0];
  match(row.inputs[0] == place && walk.integer(row.inputs[1]) == result.classes && result.classes > 0);
  match(NodeWalk::attribute(corners, "batch_dims", 0) == 1);

  const int64_t behind = padding_behind(walk, best, -1.0F);
  match(padding_behind(walk, place, std::nullopt) == behind);
  const FileNode& top = walk.node(best, "TopK", 2);
  match(top.outputs.size() == 2 && top.outputs[1] == place && NodeWalk::attribute(top, "axis", -1) == -1 &&
        NodeWalk::attribute(top, "largest", 1) == 1 && NodeWalk::attribute(top, "sorted", 1) == 1);
  const Integers flat = walk.integers(walk.node(top.inputs[0], "Reshape", 2).inputs[1]);
  match(flat.size() == 2 && flat[1] > 0 && flat[1] % result.classes == 0);
  result.count = flat[1] / result.classes;
  match(walk.integer(top.inputs[1]) == std::min(result.most, flat[1]) &&
        behind == std::max<int64_t>(0, result.most - flat[1]));
  kept_scores(walk, walk.reshaped(top.inputs[0], {0, flat[1]}), result);
  return result;
}

FileNode node_of(const Suppression& from, const std::string& output) {
  FileNode node = fused_node(from.name, "NonMaximumSuppression", {from.boxes, from.scores}, output);
  set_attribute(node, "count", from.count);
  set_attribute(node, "classes", from.classes);
  set_attribute(node, "most", from.most);
  set_attribute(node, "overlap", from.overlap);
  set_attribute(node, "least_score", from.least_score);
  return node;
}

// The value [N, most, 6] of which the outputs are the boxes, scores and labels.
const std::string& source_of_outputs(NodeWalk& walk, const std::vector<std::string>& outputs, int64_t most) {
  const std::string& rows = walk.sliced(outputs.at(0), 0, 4);
  const Integers one = {0, most};
  match(walk.sliced(walk.reshaped(outputs.at(1), one), 4, 5) == rows);
  match(walk.sliced(walk.reshaped(walk.cast(outputs.at(2), Element::i64), one), 5, 6) == rows);
  const std::string& flat = walk.reshaped(rows, {0, most, kNumbers});
  const FileNode* flatten = walk.producer(flat);
  if (flatten == nullptr || flatten->op != "Flatten") return flat;
  match(NodeWalk::attribute(*flatten, "axis", 1) == 1);
  return walk.node(flat, "Flatten", 1).inputs[0];
}

// Makes the rows of boxes that are found the only output where the graph's outputs are parts of them.
void take_outputs(FileModel& model, const std::string& rows, int64_t most, std::set<const FileNode*>& passed) {
  if (model.outputs.size() != 3) return;
  NodeWalk walk(model);
  try {
    if (source_of_outputs(walk, model.outputs, most) != rows) return;
  } catch (const Mismatch&) {
    return;  // other outputs, which the import refuses
  }
  model.outputs = {rows};
  passed.insert(walk.passed().begin(), walk.passed().end());
}

bool fuse_one(FileModel& model) {
  NodeWalk walk(model);
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
