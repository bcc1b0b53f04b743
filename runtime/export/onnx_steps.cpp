// Which ops of gpunn's graph are one node of ONNX's.
#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "export/onnx_builder.hpp"

namespace gpunn::interchange {

using graph::Graph;
using graph::kNoValue;
using graph::ValueId;

namespace {

class StepList {
 public:
  explicit StepList(const Graph& g) : g_(g) {
    for (const graph::Node& node : g.nodes()) {
      OnnxStep step{.node = &node, .inputs = node.inputs, .outputs = node.outputs};
      if (node.op == GPUNN_OP_AVG_POOL2D) {
        step.count_padding = node.attrs.as<gpunn_pool2d_attrs>().count_padding != 0;
      }
      for (const ValueId input : node.inputs) ++uses_[g.root(input)];
      for (const ValueId output : node.outputs) maker_[g.root(output)] = steps_.size();
      steps_.push_back(std::move(step));
    }
  }

  std::vector<OnnxStep> run() {
    for (OnnxStep& step : steps_) {
      switch (step.node->op) {
        case GPUNN_OP_CONV2D:
          take_padding(step, nullptr);
          break;
        case GPUNN_OP_AVG_POOL2D: {
          const auto attrs = step.node->attrs.as<gpunn_pool2d_attrs>();
          // Without padding of its own a window counts zeros around the image as it counts the image.
          if (attrs.pad[0] == 0 && attrs.pad[1] == 0 && take_padding(step, &attrs)) step.count_padding = true;
          break;
        }
        case GPUNN_OP_MAX_POOL2D:
          take_lowest_border(step);
          break;
        case GPUNN_OP_DIV:
          take_mean_within_image(step);
          break;
        case GPUNN_OP_BIAS_ADD:
          take_product(step);
          break;
        case GPUNN_OP_LAYER_NORM:
          leave_out_no_change(step);
          break;
        default:
          break;
      }
    }
    return needed();
  }

 private:
  OnnxStep* made_by(ValueId id, int32_t op) {
    const auto found = maker_.find(g_.root(id));
    if (found == maker_.end() || steps_[found->second].node->op != op) return nullptr;
    OnnxStep& step = steps_[found->second];
    return step.outputs.front() == id ? &step : nullptr;  // a view has another shape
  }

  static bool fits(const ImagePadding& p, const gpunn_pool2d_attrs& window) {
    return std::max(p.top, p.bottom) < window.window[0] && std::max(p.left, p.right) < window.window[1];
  }

  bool take_padding(OnnxStep& step, const gpunn_pool2d_attrs* window) {
    const OnnxStep* pad = made_by(step.inputs[0], GPUNN_OP_PAD);
    if (pad == nullptr) return false;
    const auto attrs = pad->node->attrs.as<gpunn_pad_attrs>();
    if (attrs.rank != 4 || attrs.before[0] + attrs.after[0] + attrs.before[1] + attrs.after[1] != 0) return false;
    const ImagePadding padding{attrs.before[2], attrs.after[2], attrs.before[3], attrs.after[3]};
    if (window != nullptr && !fits(padding, *window)) return false;
    step.padding = padding;
    step.inputs[0] = pad->inputs[0];
    return true;
  }

  std::optional<double> filled_with(ValueId id) {
    const OnnxStep* fill = made_by(id, GPUNN_OP_FILL);
    if (fill == nullptr) return std::nullopt;
    return fill->node->attrs.as<gpunn_fill_attrs>().value;
  }

  bool is_lowest(ValueId id) {
    const std::optional<double> value = filled_with(id);
    return value && std::isinf(*value) && *value < 0;
  }

  // A maximum never sees a border of -inf, nor ONNX's padding.
  void take_lowest_border(OnnxStep& step) {
    const auto attrs = step.node->attrs.as<gpunn_pool2d_attrs>();
    ImagePadding padding;
    ValueId x = step.inputs[0];
    while (const OnnxStep* concat = made_by(x, GPUNN_OP_CONCAT)) {
      const int32_t axis = concat->node->attrs.as<gpunn_concat_attrs>().axis;
      const std::vector<ValueId>& parts = concat->inputs;
      if (axis < 2 || parts.size() > 3) return;
      const bool first = is_lowest(parts.front()), last = is_lowest(parts.back());
      if (static_cast<std::size_t>(first) + static_cast<std::size_t>(last) + 1 != parts.size()) return;
      const auto size = [&](ValueId id) { return g_.value(id).type.shape[static_cast<std::size_t>(axis)]; };
      if (first) (axis == 2 ? padding.top : padding.left) += size(parts.front());
      if (last) (axis == 2 ? padding.bottom : padding.right) += size(parts.back());
      x = parts[first ? 1 : 0];
    }
    if (padding.empty() || !fits(padding, attrs)) return;
    step.padding = padding;
    step.inputs[0] = x;
  }

  // The mean of a padded image over that of padded ones is the mean within the image.
  void take_mean_within_image(OnnxStep& step) {
    const OnnxStep *means = made_by(step.inputs[0], GPUNN_OP_AVG_POOL2D),
                   *shares = made_by(step.inputs[1], GPUNN_OP_AVG_POOL2D);
    if (means == nullptr || shares == nullptr || means->padding.empty() || uses_[step.inputs[0]] != 1 ||
        filled_with(shares->inputs[0]) != 1.0 || means->node->attrs != shares->node->attrs) {
      return;
    }
    // Ones of another size than the image's stand for a border too.
    const Shape &image = g_.value(means->inputs[0]).type.shape, &ones = g_.value(shares->inputs[0]).type.shape;
    if (!std::equal(image.begin() + 2, image.end(), ones.begin() + 2, ones.end())) return;
    const std::vector<ValueId> outputs = step.outputs;
    step = *means;
    step.outputs = outputs;
    step.count_padding = false;
  }

  // Of a norm that multiplies by 1 and adds 0.
  void leave_out_no_change(OnnxStep& step) {
    if (filled_with(step.inputs[1]) == 1.0 && filled_with(step.inputs[2]) == 0.0) step.inputs.resize(1);
  }

  void take_product(OnnxStep& step) {
    for (const int32_t op : {GPUNN_OP_MATMUL, GPUNN_OP_CONV2D, GPUNN_OP_CONV2D_BACKWARD_DATA}) {
      const OnnxStep* product = made_by(step.inputs[0], op);
      if (product == nullptr || uses_[g_.root(step.inputs[0])] != 1) continue;
      const std::vector<ValueId> outputs = step.outputs;
      const ValueId bias = step.inputs[1];
      step = *product;
      step.outputs = outputs;
      step.bias = bias;
      step.inputs.push_back(bias);
      return;
    }
  }

  std::vector<OnnxStep> needed() {
    std::set<ValueId> wanted;
    std::vector<OnnxStep> kept;
    for (std::size_t i = steps_.size(); i-- > 0;) {
      const OnnxStep& step = steps_[i];
      const bool is_output = std::ranges::any_of(
          step.outputs, [&](ValueId id) { return g_.value(g_.root(id)).storage == graph::Storage::state; });
      const bool is_read = std::ranges::any_of(step.outputs, [&](ValueId id) { return wanted.contains(g_.root(id)); });
      if (!is_output && !is_read) continue;
      for (const ValueId input : step.inputs) wanted.insert(g_.root(input));
      kept.push_back(step);
    }
    std::ranges::reverse(kept);
    return kept;
  }

  const Graph& g_;
  std::vector<OnnxStep> steps_;
  std::map<ValueId, std::size_t> maker_;
  std::map<ValueId, int> uses_;
};

}  // namespace

std::vector<OnnxStep> onnx_steps(const Graph& g) { return StepList(g).run(); }

}  // namespace gpunn::interchange
