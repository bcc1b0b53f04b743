#include "inference/tiles/reach.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "inference/tiles/image_lines.hpp"
#include "nn/model.hpp"
#include "ops/op.hpp"

namespace gpunn::inference {

using graph::Graph;
using graph::Node;
using graph::ValueId;

namespace {

constexpr std::size_t kRows = 2, kColumns = 3;  // dimensions of images

// What a value sees of the image.
struct Seen {
  bool image = false;    // it depends on the image, along the lines of its dimensions
  bool uniform = false;  // it does not, and is one number everywhere
  std::vector<Dimension> dimensions = {};
};

class Tracing {
 public:
  explicit Tracing(const Graph& g) : g_(g), seen_(g.values().size()) {}

  Sight run(ValueId image, ValueId result, int64_t ratio) {
    Seen& start = seen_[static_cast<std::size_t>(image)];
    const Shape& shape = g_.value(image).type.shape;
    start.image = true;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const int axis = d == kRows ? 0 : d == kColumns ? 1 : kNoAxis;
      start.dimensions.push_back(dimension_of(shape[d], {.axis = axis}));
    }
    for (const Node& node : g_.nodes()) {
      inputs_.clear();
      for (const ValueId input : node.inputs) inputs_.push_back(of(input));
      const std::optional<Seen> output = broken_ ? std::nullopt : outcome(node);
      if (!output || broken_) return whole(node);
      // Other outputs, such as statistics, have no dimensions here: who reads them ends the search.
      for (const ValueId id : node.outputs) seen_[static_cast<std::size_t>(id)] = {.image = output->image};
      seen_[static_cast<std::size_t>(node.outputs[0])] = *output;
    }
    return conclusion(of(result), ratio);
  }

 private:
  static std::string cause_of(const Node& node) {
    return "layer " + node.name + ", " + std::string(ops::op_info(node.op).name);
  }
  Sight whole(const Node& node) const { return {std::nullopt, cause_of(node)}; }

  // A value, or a view of one.
  Seen of(ValueId id) {
    const ValueId root = g_.root(id);
    const Seen& seen = seen_[static_cast<std::size_t>(root)];
    if (!seen.image) return seen;
    if (root == id) {
      broken_ = broken_ || seen.dimensions.size() != g_.value(id).type.shape.size();
      return seen;
    }
    auto dimensions = regrouped(seen.dimensions, g_.value(id).type.shape);
    if (g_.root_offset(id) != 0 || !dimensions) {
      broken_ = true;
      return seen;
    }
    return {.image = true, .dimensions = std::move(*dimensions)};
  }

  Shape shape(const Node& node, std::size_t input) const { return g_.value(node.inputs[input]).type.shape; }

  // What the outputs see; nothing where that is the whole image.
  std::optional<Seen> outcome(const Node& node) {
    const bool sees = std::ranges::any_of(inputs_, [](const Seen& one) { return one.image; });
    const bool elementwise = ops::op_info(node.op).row->signature.elementwise;
    if (!sees) {
      const bool uniform = node.op == GPUNN_OP_FILL ||
                           (elementwise && std::ranges::all_of(inputs_, [](const Seen& one) { return one.uniform; }));
      return Seen{.uniform = uniform};
    }
    std::optional<Seen> result = elementwise ? joined(node, std::nullopt) : of_op(node);
    // A line that ends in a single place has seen all of the image.
    if (result) require_lines(*result);
    return result;
  }

  void require_lines(const Seen& seen) {
    std::array<bool, 2> found{};
    for (const Dimension& dimension : seen.dimensions) {
      for (const Factor& factor : dimension) {
        if (factor.line.axis != kNoAxis) found[static_cast<std::size_t>(factor.line.axis)] = true;
      }
    }
    if (!found[0] || !found[1]) broken_ = true;
  }

  std::optional<Seen> of_op(const Node& node) {
    const Seen& x = inputs_[0];
    const auto rest_sees = [&] {
      return std::any_of(inputs_.begin() + 1, inputs_.end(), [](const Seen& one) { return one.image; });
    };
    switch (node.op) {
      case GPUNN_OP_COPY:
      case GPUNN_OP_DROPOUT:
        return x;
      case GPUNN_OP_BIAS_ADD:
      case GPUNN_OP_BATCH_NORM_INFERENCE:
      case GPUNN_OP_LOCAL_RESPONSE_NORM:
      case GPUNN_OP_SOFTMAX:
      case GPUNN_OP_LOG_SOFTMAX:
      case GPUNN_OP_LAYER_NORM:
        if (rest_sees() || has_line(x.dimensions[1])) return std::nullopt;
        return x;
      case GPUNN_OP_CONV2D: {
        const auto a = node.attrs.as<gpunn_conv2d_attrs>();
        const Shape w = shape(node, 1);
        if (rest_sees()) return std::nullopt;
        return windows(node, [&](const Line& line, std::size_t i) {
          const auto pad = static_cast<double>(a.pad[i]);
          const auto last = static_cast<double>(a.dilation[i] * (w[kRows + i] - 1));
          return line.seen(-pad, last - pad, a.stride[i], 1);
        });
      }
      case GPUNN_OP_CONV2D_BACKWARD_DATA: {
        const auto a = node.attrs.as<gpunn_conv2d_attrs>();
        const Shape w = shape(node, 1);
        if (rest_sees()) return std::nullopt;
        return windows(node, [&](const Line& line, std::size_t i) {
          const auto pad = static_cast<double>(a.pad[i]), stride = static_cast<double>(a.stride[i]);
          const auto last = static_cast<double>(a.dilation[i] * (w[kRows + i] - 1));
          return line.seen((pad - last) / stride, pad / stride, 1, a.stride[i]);
        });
      }
      case GPUNN_OP_MAX_POOL2D:
      case GPUNN_OP_AVG_POOL2D: {
        const auto a = node.attrs.as<gpunn_pool2d_attrs>();
        return windows(node, [&](const Line& line, std::size_t i) {
          const auto pad = static_cast<double>(a.pad[i]);
          return line.seen(-pad, static_cast<double>(a.window[i] - 1) - pad, a.stride[i], 1);
        });
      }
      case GPUNN_OP_UPSAMPLE2D: {
        const auto a = node.attrs.as<gpunn_upsample2d_attrs>();
        return windows(node, [&](const Line& line, std::size_t i) {
          const auto factor = static_cast<double>(a.factor[i]);
          if (a.mode == GPUNN_UPSAMPLE_NEAREST) return line.seen((1 - factor) / factor, 0, 1, a.factor[i]);
          const double middle = 0.5 / factor - 0.5;
          return line.seen(middle - 1, middle + 1, 1, a.factor[i]);
        });
      }
      case GPUNN_OP_REFLECT_PAD2D: {
        const auto a = node.attrs.as<gpunn_reflect_pad2d_attrs>();
        return windows(node, [&](const Line& line, std::size_t i) {
          // What is mirrored at the border lies on the other side of it.
          Line mirrored = line;
          mirrored.last = std::max(line.last, -line.first);
          mirrored.first = -mirrored.last;
          return mirrored.seen(-a.before[i], -a.before[i], 1, 1);
        });
      }
      case GPUNN_OP_PAD: {
        const auto a = node.attrs.as<gpunn_pad_attrs>();
        return moved(node, [&](std::size_t d) { return -a.before[d]; });
      }
      case GPUNN_OP_SLICE: {
        const auto a = node.attrs.as<gpunn_slice_attrs>();
        return moved(node, [&](std::size_t d) { return a.start[d]; });
      }
      case GPUNN_OP_CONCAT:
        return joined(node, static_cast<std::size_t>(node.attrs.as<gpunn_concat_attrs>().axis));
      case GPUNN_OP_TRANSPOSE: {
        const auto a = node.attrs.as<gpunn_transpose_attrs>();
        Seen result{.image = true};
        for (std::size_t d = 0; d < x.dimensions.size(); ++d) {
          result.dimensions.push_back(x.dimensions[static_cast<std::size_t>(a.permutation[d])]);
        }
        return result;
      }
      case GPUNN_OP_REDUCE: {
        const auto a = node.attrs.as<gpunn_reduce_attrs>();
        Seen result{.image = true};
        for (std::size_t d = 0; d < x.dimensions.size(); ++d) {
          const bool reduced = (a.axes >> d & 1U) != 0;
          if (reduced && has_line(x.dimensions[d])) return std::nullopt;
          if (!reduced) result.dimensions.push_back(x.dimensions[d]);
          if (reduced && a.keep_dims != 0) result.dimensions.emplace_back();
        }
        return result;
      }
      case GPUNN_OP_MATMUL: {
        const auto a = node.attrs.as<gpunn_matmul_attrs>();
        if (inputs_[0].image == inputs_[1].image) return std::nullopt;
        const bool left = inputs_[0].image;
        const std::vector<Dimension>& given = inputs_[left ? 0 : 1].dimensions;
        const bool turned = (left ? a.transpose_a : a.transpose_b) != 0;
        const std::size_t summed = left == turned ? 0 : 1;
        if (has_line(given[summed])) return std::nullopt;
        const Shape y = g_.value(node.outputs[0]).type.shape;
        Seen result{.image = true, .dimensions = {dimension_of(y[0]), dimension_of(y[1])}};
        result.dimensions[left ? 0 : 1] = given[1 - summed];
        return result;
      }
      default:
        return std::nullopt;
    }
  }

  // Windows over rows and columns of images [N, C, H, W].
  template <class Move>
  std::optional<Seen> windows(const Node& node, Move move) const {
    const Seen& x = inputs_[0];
    if (!x.image || x.dimensions.size() != 4 || has_line(x.dimensions[1])) return std::nullopt;
    const Shape& y = g_.value(node.outputs[0]).type.shape;
    Seen result{.image = true, .dimensions = {x.dimensions[0], dimension_of(y[1])}};
    for (std::size_t i = 0; i < 2; ++i) {
      const std::optional<Factor> one = as_one(x.dimensions[kRows + i]);
      if (!one) return std::nullopt;
      Line line = one->line;
      if (line.axis != kNoAxis) line = move(line, i);
      result.dimensions.push_back(dimension_of(y[kRows + i], line));
    }
    return result;
  }

  // Place i of dimension d is place i + offset(d) of the input.
  template <class Offset>
  std::optional<Seen> moved(const Node& node, Offset offset) const {
    const Shape& y = g_.value(node.outputs[0]).type.shape;
    const Seen& x = inputs_[0];
    Seen result{.image = true};
    for (std::size_t d = 0; d < y.size(); ++d) {
      const bool same = offset(d) == 0 && y[d] == shape(node, 0)[d];
      if (same || !has_line(x.dimensions[d])) {
        result.dimensions.push_back(same ? x.dimensions[d] : dimension_of(y[d]));
        continue;
      }
      const std::optional<Factor> one = as_one(x.dimensions[d]);
      if (!one) return std::nullopt;
      const auto by = static_cast<double>(offset(d));
      result.dimensions.push_back(dimension_of(y[d], one->line.seen(by, by, 1, 1)));
    }
    return result;
  }

  // Values side by side, as of elementwise ops, which broadcast, or one behind the other along `axis`.
  std::optional<Seen> joined(const Node& node, std::optional<std::size_t> axis) const {
    const Shape& y = g_.value(node.outputs[0]).type.shape;
    Seen result{.image = true};
    for (const int64_t size : y) result.dimensions.push_back(dimension_of(size));
    for (const bool image : {true, false}) {  // what depends on the image first, to have all lines
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        if (inputs_[i].image != image || inputs_[i].uniform) continue;
        const Shape x = shape(node, i);
        for (std::size_t d = 0; d < x.size(); ++d) {
          const std::size_t to = d + y.size() - x.size();
          if (axis == to) {
            if (image && has_line(inputs_[i].dimensions[d])) return std::nullopt;
          } else if (image ? !join(inputs_[i].dimensions[d], x[d], y[to], result.dimensions[to])
                           : x[d] > 1 && has_line(result.dimensions[to])) {
            return std::nullopt;  // numbers of a place in the image, which a part would have at another place
          }
        }
      }
    }
    return result;
  }

  // Adds what one input sees along a dimension to what the output sees.
  static bool join(const Dimension& from, int64_t size, int64_t to_size, Dimension& to) {
    if (!has_line(from)) return true;
    if (size != to_size) return false;
    if (!has_line(to)) {
      to = from;
      return true;
    }
    const auto same_factors = [&] {
      return std::equal(from.begin(), from.end(), to.begin(), to.end(), [](const Factor& a, const Factor& b) {
        return a.size == b.size && a.line.axis == b.line.axis && a.line.up == b.line.up && a.line.down == b.line.down;
      });
    };
    Dimension other = from;
    if (!same_factors()) {
      const std::optional<Factor> a = as_one(from), b = as_one(to);
      if (!a || !b || a->line.axis != b->line.axis || a->line.up != b->line.up || a->line.down != b->line.down) {
        return false;
      }
      other = {*a};
      to = {*b};
    }
    for (std::size_t i = 0; i < to.size(); ++i) {
      to[i].line.first = std::min(to[i].line.first, other[i].line.first);
      to[i].line.last = std::max(to[i].line.last, other[i].line.last);
    }
    return true;
  }

  Sight conclusion(const Seen& result, int64_t ratio) const {
    Sight all{std::nullopt, g_.nodes().empty() ? "" : cause_of(g_.nodes().back())};
    if (broken_ || !result.image || result.dimensions.size() != 4) return all;
    double pixels = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::optional<Factor> one = as_one(result.dimensions[kRows + i]);
      if (!one || one->line.axis != static_cast<int>(i) || one->line.up != ratio || one->line.down != 1) return all;
      // The last of the pixels that an input's pixel becomes lies almost one pixel further.
      pixels = std::max({pixels, -one->line.first, one->line.last + 1 - one->line.pace()});
    }
    int64_t step = 1;
    for (const Seen& seen : seen_) {
      for (const Dimension& dimension : seen.dimensions) {
        for (const Factor& factor : dimension) step = std::lcm(step, factor.line.down);
      }
    }
    constexpr double kRounding = 1e-6;
    return {Reach{static_cast<int64_t>(std::ceil(pixels - kRounding)), step}, ""};
  }

  const Graph& g_;
  std::vector<Seen> seen_;
  std::vector<Seen> inputs_;  // of the node at hand
  bool broken_ = false;
};

}  // namespace

Sight sight_of(const Graph& g, ValueId image, ValueId result, int64_t ratio) {
  return Tracing(g).run(image, result, ratio);
}

Sight sight_of(const TrainedModel& trained, int64_t channels, int64_t ratio) {
  // Sides that strides divide, all of them different.
  constexpr std::array<std::array<int64_t, 2>, 2> kSizes = {{{192, 320}, {384, 448}}};
  std::vector<Sight> sights;
  for (const auto& [height, width] : kSizes) {
    const training::TrainedFile file = training::read_trained(trained.path, trained.overrides, {height, width});
    const Shape sample = {channels, height, width};
    Graph g;
    const ValueId image = g.add_value("image", {DType::f32, batch_shape(sample, 1)}, graph::Storage::data);
    const auto values_of = [&](const std::vector<nn::Parameter>& tensors) {
      std::vector<ValueId> values;
      for (const nn::Parameter& one : tensors) {
        values.push_back(g.add_value(one.name, {DType::f32, one.shape}, graph::Storage::data));
      }
      return values;
    };
    const ModelSpec& model = file.experiment.model;
    const std::vector<ValueId> parameters = values_of(nn::model_parameters(model, sample));
    const std::vector<ValueId> buffers = values_of(nn::model_buffers(model, sample));
    const ValueId result =
        nn::build_forward(g, model, {{.value = image}}, parameters, {.training = false, .buffers = buffers}).front();
    sights.push_back(sight_of(g, image, result, ratio));
    if (!sights.back().reach) return sights.back();
  }
  if (sights[0].reach == sights[1].reach) return sights[0];
  return {std::nullopt, "a layer whose window grows with the image"};
}

}  // namespace gpunn::inference
