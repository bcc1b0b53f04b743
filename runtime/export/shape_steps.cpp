// Layers that compute nothing, products and reductions.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <limits>

#include "export/onnx_builder.hpp"

namespace gpunn::interchange {

namespace {

using Numbers = std::vector<int64_t>;

std::string product(OnnxBuilder& b, const OnnxStep& step) {
  const auto attrs = step.node->attrs.as<gpunn_matmul_attrs>();
  return b.add(step.node->name, "Gemm", b.tensors(step.inputs),
               {{"transA", int64_t{attrs.transpose_a}}, {"transB", int64_t{attrs.transpose_b}}});
}

std::string batched_product(OnnxBuilder& b, const OnnxStep& step) {
  const auto attrs = step.node->attrs.as<gpunn_matmul_attrs>();
  std::vector<std::string> inputs = b.tensors(step.inputs);
  const auto turned = [&](const std::string& x) {
    return b.add(step.node->name, "Transpose", {x}, {{"perm", Numbers{0, 2, 1}}}, false);
  };
  if (attrs.transpose_a != 0) inputs[0] = turned(inputs[0]);
  if (attrs.transpose_b != 0) inputs[1] = turned(inputs[1]);
  return b.add(step.node->name, "MatMul", inputs);
}

// The heads of q[N,T,H,D] become a dimension of the batch for two products.
std::string attended(OnnxBuilder& b, const OnnxStep& step) {
  const std::string& layer = step.node->name;
  const double scale = step.node->attrs.as<gpunn_attention_attrs>().scale;
  const auto turned = [&](const std::string& x, const Numbers& permutation) {
    return b.add(layer, "Transpose", {x}, {{"perm", permutation}}, false);
  };
  const Numbers heads_first{0, 2, 1, 3}, keys_last{0, 2, 3, 1};
  const std::vector<std::string> inputs = b.tensors(step.inputs);
  const std::string queries = b.add(layer, "Mul", {turned(inputs[0], heads_first), b.number(layer, scale)}, {}, false);
  const std::string scores = b.add(layer, "MatMul", {queries, turned(inputs[1], keys_last)}, {}, false);
  const std::string weights = b.add(layer, "Softmax", {scores}, {{"axis", int64_t{-1}}}, false);
  return turned(b.add(layer, "MatMul", {weights, turned(inputs[2], heads_first)}), heads_first);
}

std::string reduction(OnnxBuilder& b, const OnnxStep& step) {
  const std::string& layer = step.node->name;
  const auto attrs = step.node->attrs.as<gpunn_reduce_attrs>();
  const char* op = attrs.kind == GPUNN_REDUCE_SUM    ? "ReduceSum"
                   : attrs.kind == GPUNN_REDUCE_MEAN ? "ReduceMean"
                                                     : "ReduceMax";
  Numbers axes;
  for (int64_t i = 0; i < std::ssize(b.shape(step.inputs[0])); ++i) {
    if ((attrs.axes >> i & 1U) != 0) axes.push_back(i);
  }
  const std::string x = b.tensor(step.inputs[0]);
  const OnnxAttribute keep{"keepdims", int64_t{attrs.keep_dims != 0 ? 1 : 0}};
  // Axes are an input from 13 on for sums, from 18 on for the others.
  const bool as_input = attrs.kind == GPUNN_REDUCE_SUM || b.opset() >= 18;
  if (as_input) return b.add(layer, op, {x, b.integers(layer, axes)}, {keep});
  return b.add(layer, op, {x}, {{"axes", axes}, keep});
}

std::string padding(OnnxBuilder& b, const OnnxStep& step) {
  const auto attrs = step.node->attrs.as<gpunn_pad_attrs>();
  Numbers around(attrs.before, attrs.before + attrs.rank);
  around.insert(around.end(), attrs.after, attrs.after + attrs.rank);
  return b.add(step.node->name, "Pad", {b.tensor(step.inputs[0]), b.integers(step.node->name, around)},
               {{"mode", std::string("constant")}});
}

std::string reflected(OnnxBuilder& b, const OnnxStep& step) {
  const auto a = step.node->attrs.as<gpunn_reflect_pad2d_attrs>();
  const Numbers around = {0, 0, a.before[0], a.before[1], 0, 0, a.after[0], a.after[1]};
  return b.add(step.node->name, "Pad", {b.tensor(step.inputs[0]), b.integers(step.node->name, around)},
               {{"mode", std::string("reflect")}});
}

// A part of an open dimension ends as far before its end for every image.
int64_t open_end(const std::string& layer, const BatchSize& from, const BatchSize& to, int64_t start) {
  const int64_t after = from.fixed - start - to.fixed;
  for (std::size_t i = 0; i < kOtherSizes; ++i) {
    if (from.elsewhere[i] - start - to.elsewhere[i] == after) continue;
    throw Error("layer '" + layer + "' takes a part of the image whose size is not a fixed number less than its own");
  }
  return after == 0 ? std::numeric_limits<int64_t>::max() : -after;
}

std::string box(OnnxBuilder& b, const OnnxStep& step) {
  const std::string& layer = step.node->name;
  const auto attrs = step.node->attrs.as<gpunn_slice_attrs>();
  const BatchShape from = b.shape(step.inputs[0]), to = b.shape(step.outputs.front());
  Numbers starts, ends, axes;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[i] && attrs.start[i] == 0) continue;
    if (to[i].per_row != 0) throw Error("layer '" + layer + "' takes some rows of the batch, which ONNX can't say");
    starts.push_back(attrs.start[i]);
    ends.push_back(to[i].depends_on_image() ? open_end(layer, from[i], to[i], attrs.start[i])
                                            : attrs.start[i] + to[i].fixed);
    axes.push_back(static_cast<int64_t>(i));
  }
  std::string x = b.tensor(step.inputs[0]);
  if (axes.empty()) return x;
  return b.add(layer, "Slice", {x, b.integers(layer, starts), b.integers(layer, ends), b.integers(layer, axes)});
}

std::string filled(OnnxBuilder& b, const OnnxStep& step) {
  const std::string& layer = step.node->name;
  const auto value = static_cast<float>(step.node->attrs.as<gpunn_fill_attrs>().value);
  const std::string to = b.shape_tensor(layer, b.shape(step.outputs.front()));
  return b.add(layer, "Expand", {b.floats(layer, {value}, {}), to}, {}, false);
}

std::string expanded(OnnxBuilder& b, const OnnxStep& step) {
  const std::string& layer = step.node->name;
  return b.add(layer, "Expand", {b.tensor(step.inputs[0]), b.shape_tensor(layer, b.shape(step.outputs.front()))}, {},
               false);
}

// Blocks of channels that become blocks of pixels, [N, C * f * f, H, W] to [N, C, H * f, W * f], if the step is that.
bool add_pixel_shuffle(OnnxBuilder& b, const OnnxStep& step) {
  const auto attrs = step.node->attrs.as<gpunn_transpose_attrs>();
  const Numbers order(attrs.permutation, attrs.permutation + attrs.rank);
  const Emitted from = b.source(step.inputs[0]);
  const BatchShape blocks = b.shape(step.inputs[0]);
  if (order != Numbers{0, 1, 4, 2, 5, 3} || from.shape.size() != 4 || blocks[2] != blocks[3]) return false;
  const int64_t factor = blocks[2].fixed;
  const BatchSize channels = product(blocks[1], {factor * factor, 0}, b.rows());
  if (from.shape != BatchShape{blocks[0], channels, blocks[4], blocks[5]}) return false;
  const std::string y =
      b.add(step.node->name, "DepthToSpace", {from.name}, {{"blocksize", factor}, {"mode", std::string("CRD")}});
  b.define(step.outputs.front(), y,
           {blocks[0], blocks[1], product(blocks[4], blocks[2], b.rows()), product(blocks[5], blocks[3], b.rows())});
  return true;
}

std::string transposed(OnnxBuilder& b, const OnnxStep& step) {
  const auto attrs = step.node->attrs.as<gpunn_transpose_attrs>();
  return b.add(step.node->name, "Transpose", b.tensors(step.inputs),
               {{"perm", Numbers(attrs.permutation, attrs.permutation + attrs.rank)}});
}

DType dtype_of(const OnnxBuilder& b, graph::ValueId id) { return b.graph().value(id).type.dtype; }

void add_converted(OnnxBuilder& b, const OnnxStep& step) {
  const DType to = dtype_of(b, step.outputs.front());
  if (dtype_of(b, step.inputs[0]) == to) return b.define(step.outputs.front(), b.tensor(step.inputs[0]));
  const Emitted x = b.source(step.inputs[0]);
  b.define(step.outputs.front(),
           b.add(step.node->name, "Cast", {x.name}, {{"to", static_cast<int64_t>(onnx_type(to))}}), x.shape);
}

// ONNX's places are i64.
std::string largest_class(OnnxBuilder& b, const OnnxStep& step) {
  const std::string& layer = step.node->name;
  const std::string places =
      b.add(layer, "ArgMax", b.tensors(step.inputs), {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}, false);
  return b.add(layer, "Cast", {places}, {{"to", static_cast<int64_t>(onnx_type(dtype_of(b, step.outputs.front())))}});
}

// An index that names no row gives zeros, where ONNX would fail or count from the end. Indices keep the shape that they
// had before they became one dimension, [rows, ...].
void add_gathered(OnnxBuilder& b, const OnnxStep& step) {
  const std::string& layer = step.node->name;
  const BatchShape data = b.shape(step.inputs[0]);
  const Emitted index = b.source(step.inputs[1]);
  const int64_t count = data.front().fixed;
  const std::string places = b.add(layer, "Cast", {index.name}, {{"to", static_cast<int64_t>(OnnxType::i64)}}, false);
  const std::string inside =
      b.add(layer, "Clip", {places, b.integer(layer, 0), b.integer(layer, count - 1)}, {}, false);
  const std::string rows = b.add(layer, "Gather", {b.tensor(step.inputs[0]), inside}, {{"axis", int64_t{0}}});
  BatchShape by_row = index.shape, shape = index.shape;
  by_row.insert(by_row.end(), data.size() - 1, {1, 0});
  shape.insert(shape.end(), data.begin() + 1, data.end());
  const std::string is_inside =
      b.reshaped(layer, {b.add(layer, "Equal", {places, inside}, {}, false), index.shape}, by_row);
  b.define(step.outputs.front(), b.add(layer, "Where", {is_inside, rows, b.number(layer, 0)}, {}, false), shape);
}

}  // namespace

bool add_shape_step(OnnxBuilder& b, const OnnxStep& step) {
  std::string name;
  switch (step.node->op) {
    case GPUNN_OP_MATMUL:
      name = product(b, step);
      break;
    case GPUNN_OP_BATCH_MATMUL:
      name = batched_product(b, step);
      break;
    case GPUNN_OP_ATTENTION:
      name = attended(b, step);
      break;
    case GPUNN_OP_REDUCE:
      name = reduction(b, step);
      break;
    case GPUNN_OP_PAD:
      name = padding(b, step);
      break;
    case GPUNN_OP_REFLECT_PAD2D:
      name = reflected(b, step);
      break;
    case GPUNN_OP_SLICE:
      name = box(b, step);
      break;
    case GPUNN_OP_FILL:
      name = filled(b, step);
      break;
    case GPUNN_OP_EXPAND:
      name = expanded(b, step);
      break;
    case GPUNN_OP_TRANSPOSE:
      if (add_pixel_shuffle(b, step)) return true;
      name = transposed(b, step);
      break;
    case GPUNN_OP_CONCAT:
      name = b.add(step.node->name, "Concat", b.tensors(step.inputs),
                   {{"axis", int64_t{step.node->attrs.as<gpunn_concat_attrs>().axis}}});
      break;
    case GPUNN_OP_CUMSUM: {
      const auto attrs = step.node->attrs.as<gpunn_cumsum_attrs>();
      name = b.add(step.node->name, "CumSum", {b.tensor(step.inputs[0]), b.integer(step.node->name, attrs.axis)},
                   {{"exclusive", int64_t{attrs.exclusive}}, {"reverse", int64_t{attrs.reverse}}});
      break;
    }
    case GPUNN_OP_TRIL: {
      const auto attrs = step.node->attrs.as<gpunn_tril_attrs>();
      name = b.add(step.node->name, "Trilu", {b.tensor(step.inputs[0]), b.integer(step.node->name, attrs.diagonal)},
                   {{"upper", int64_t{attrs.upper}}});
      break;
    }
    case GPUNN_OP_GATHER_ROWS:
      if (dtype_of(b, step.inputs[0]) != DType::f32) return false;
      add_gathered(b, step);
      return true;
    case GPUNN_OP_ARGMAX:
      name = largest_class(b, step);
      break;
    case GPUNN_OP_COPY:
      add_converted(b, step);
      return true;
    default:
      return false;
  }
  b.define(step.outputs.front(), name);
  return true;
}

}  // namespace gpunn::interchange
