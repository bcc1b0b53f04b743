#include "bench/op_request.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <sstream>
#include <utility>

#include "common/text.hpp"
#include "graph/op_info.hpp"

namespace gpunn::bench {

using graph::Attributes;
using graph::OpSignature;

namespace {

struct Request {
  std::string op;
  std::string text;
  std::vector<int64_t> sizes;
  std::map<std::string, int64_t> options;  // "stride=2"
};

[[noreturn]] void bad(const Request& request, const std::string& expected) {
  throw Error("bench op " + request.op + ": expected " + expected + ", got '" + request.text + "'", ExitCode::usage);
}

int64_t number(const Request& request, const std::string& text) {
  int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || value < 0 ||
      value > std::numeric_limits<int32_t>::max()) {
    bad(request, "numbers from 0 to 2^31 - 1 separated by 'x' or ','");
  }
  return value;
}

Request parse(const std::string& op, const std::string& shape) {
  Request request{.op = op, .text = shape, .sizes = {}, .options = {}};
  std::string normal = shape;
  std::ranges::replace(normal, 'x', ',');
  std::istringstream parts(normal);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      request.sizes.push_back(number(request, part));
    } else {
      request.options[part.substr(0, equals)] = number(request, part.substr(equals + 1));
    }
  }
  return request;
}

int64_t take(Request& request, const std::string& option, int64_t otherwise) {
  const auto found = request.options.find(option);
  if (found == request.options.end()) return otherwise;
  const int64_t value = found->second;
  request.options.erase(found);
  return value;
}

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }

OpSignature matmul(Request& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 3) bad(r, "MxNxK, with ta=1 or tb=1 for a transposed a or b");
  const int64_t m = r.sizes[0], n = r.sizes[1], k = r.sizes[2];
  const auto ta = static_cast<int32_t>(take(r, "ta", 0)), tb = static_cast<int32_t>(take(r, "tb", 0));
  OpSignature s{.op = info.id,
                .attrs = {},
                .inputs = {f32(ta != 0 ? Shape{k, m} : Shape{m, k}), f32(tb != 0 ? Shape{n, k} : Shape{k, n})},
                .outputs = {}};
  if (info.id == GPUNN_OP_MATMUL) {
    s.attrs = Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = ta, .transpose_b = tb});
  } else {
    s.inputs.push_back(f32({n}));
    s.attrs = Attributes::of(gpunn_matmul_bias_activation_attrs{
        .struct_size = 0, .transpose_a = ta, .transpose_b = tb, .activation = GPUNN_ACTIVATION_RELU});
  }
  return s;
}

OpSignature convolution(Request& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 7) bad(r, "N,C,H,W,K,R,S with stride=, pad=, dilation= and groups= if wanted");
  const auto stride = static_cast<int32_t>(take(r, "stride", 1)), pad = static_cast<int32_t>(take(r, "pad", 0));
  const auto dilation = static_cast<int32_t>(take(r, "dilation", 1)),
             groups = static_cast<int32_t>(take(r, "groups", 1));
  if (groups < 1) bad(r, "groups of at least 1");
  const auto& z = r.sizes;
  const gpunn_conv2d_attrs attrs{
      .struct_size = 0,
      .activation = info.id == GPUNN_OP_CONV2D_BIAS_ACTIVATION ? GPUNN_ACTIVATION_RELU : GPUNN_ACTIVATION_NONE,
      .stride = {stride, stride},
      .pad = {pad, pad},
      .dilation = {dilation, dilation},
      .groups = groups,
      .input_size = {static_cast<int32_t>(z[2]), static_cast<int32_t>(z[3])},
      .filter_size = {static_cast<int32_t>(z[5]), static_cast<int32_t>(z[6])},
      .reserved = 0};
  const TensorType x = f32({z[0], z[1], z[2], z[3]});
  const TensorType w = f32({z[4], z[1] / groups, z[5], z[6]});
  OpSignature s{.op = info.id, .attrs = Attributes::of(attrs), .inputs = {x, w}, .outputs = {}};
  if (info.id == GPUNN_OP_CONV2D_BIAS_ACTIVATION) s.inputs.push_back(f32({z[4]}));
  if (info.id == GPUNN_OP_CONV2D_BACKWARD_DATA || info.id == GPUNN_OP_CONV2D_BACKWARD_FILTER) {
    const TensorType dy = graph::op_info(GPUNN_OP_CONV2D).infer(s.attrs, s.inputs).front();
    s.inputs = info.id == GPUNN_OP_CONV2D_BACKWARD_DATA ? std::vector{dy, w} : std::vector{dy, x};
  }
  return s;
}

OpSignature pooling(Request& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 4) bad(r, "N,C,H,W with window=, stride= and pad= if wanted");
  const auto window = static_cast<int32_t>(take(r, "window", 2)),
             stride = static_cast<int32_t>(take(r, "stride", window));
  const auto pad = static_cast<int32_t>(take(r, "pad", 0));
  OpSignature s{.op = info.id,
                .attrs = Attributes::of(gpunn_pool2d_attrs{
                    .struct_size = 0,
                    .window = {window, window},
                    .stride = {stride, stride},
                    .pad = {pad, pad},
                    .count_padding = 0,
                    .input_size = {static_cast<int32_t>(r.sizes[2]), static_cast<int32_t>(r.sizes[3])}}),
                .inputs = {f32(r.sizes)},
                .outputs = {}};
  const TensorType y = graph::op_info(GPUNN_OP_MAX_POOL2D).infer(s.attrs, s.inputs).front();
  if (info.id == GPUNN_OP_MAX_POOL2D_BACKWARD) s.inputs = {y, s.inputs[0], y};
  if (info.id == GPUNN_OP_AVG_POOL2D_BACKWARD) s.inputs = {y};
  return s;
}

OpSignature upsampling(Request& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 4) bad(r, "N,C,H,W with factor= and bilinear=1 if wanted");
  const auto factor = static_cast<int32_t>(take(r, "factor", 2));
  const int32_t mode = take(r, "bilinear", 0) != 0 ? GPUNN_UPSAMPLE_BILINEAR : GPUNN_UPSAMPLE_NEAREST;
  OpSignature s{
      .op = info.id,
      .attrs = Attributes::of(gpunn_upsample2d_attrs{.struct_size = 0, .factor = {factor, factor}, .mode = mode}),
      .inputs = {f32(r.sizes)},
      .outputs = {}};
  if (info.id == GPUNN_OP_UPSAMPLE2D_BACKWARD) {
    s.inputs = graph::op_info(GPUNN_OP_UPSAMPLE2D).infer(s.attrs, s.inputs);
  }
  return s;
}

// A border of pad= around the last two dimensions, added or taken away.
OpSignature border(Request& r, const graph::OpInfo& info) {
  const std::size_t rank = r.sizes.size();
  if (rank < 2 || rank > GPUNN_MAX_RANK) bad(r, "2 to 8 dimensions with pad= if wanted");
  const int64_t pad = take(r, "pad", 1);
  gpunn_pad_attrs more{};
  gpunn_slice_attrs less{};
  more.rank = less.rank = static_cast<int32_t>(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    more.before[i] = more.after[i] = less.start[i] = i + 2 < rank ? 0 : pad;
    less.size[i] = r.sizes[i] - 2 * less.start[i];
  }
  return {.op = info.id,
          .attrs = info.id == GPUNN_OP_PAD ? Attributes::of(more) : Attributes::of(less),
          .inputs = {f32(r.sizes)},
          .outputs = {}};
}

// Along the channels.
OpSignature concatenation(Request& r, const graph::OpInfo& info) {
  const int64_t parts = take(r, "parts", 2);
  if (r.sizes.size() < 2 || parts < info.min_inputs || parts > info.max_inputs) {
    bad(r, "N,C and further dimensions of each part, with parts= from 2 to 16 if wanted");
  }
  return {.op = info.id,
          .attrs = Attributes::of(gpunn_concat_attrs{.struct_size = 0, .axis = 1}),
          .inputs = std::vector<TensorType>(static_cast<std::size_t>(parts), f32(r.sizes)),
          .outputs = {}};
}

// The last two dimensions change places.
OpSignature transposition(Request& r, const graph::OpInfo& info) {
  const std::size_t rank = r.sizes.size();
  if (rank < 2 || rank > GPUNN_MAX_RANK) bad(r, "2 to 8 dimensions, of which the last two change places");
  gpunn_transpose_attrs attrs{};
  attrs.rank = static_cast<int32_t>(rank);
  for (std::size_t i = 0; i < rank; ++i) attrs.permutation[i] = static_cast<int32_t>(i);
  std::swap(attrs.permutation[rank - 1], attrs.permutation[rank - 2]);
  return {.op = info.id, .attrs = Attributes::of(attrs), .inputs = {f32(r.sizes)}, .outputs = {}};
}

// Ops whose inputs all have the one given shape.
OpSignature same_shape(Request& r, const graph::OpInfo& info) {
  OpSignature s{.op = info.id, .attrs = {}, .inputs = {}, .outputs = {}};
  for (int i = 0; i < info.min_inputs; ++i) s.inputs.push_back(f32(r.sizes));
  if (info.id == GPUNN_OP_SCALE) s.attrs = Attributes::of(gpunn_scale_attrs{.struct_size = 0, .factor = 1.5F});
  if (info.id == GPUNN_OP_AXPBY) {
    s.attrs = Attributes::of(gpunn_axpby_attrs{.struct_size = 0, .alpha = 0.999F, .beta = 0.001F});
  }
  if (info.id == GPUNN_OP_CLAMP) {
    s.attrs = Attributes::of(gpunn_clamp_attrs{.struct_size = 0, .low = -0.5F, .high = 0.5F});
  }
  if (info.id == GPUNN_OP_LEAKY_RELU || info.id == GPUNN_OP_LEAKY_RELU_BACKWARD) {
    s.attrs = Attributes::of(gpunn_leaky_relu_attrs{.struct_size = 0, .slope = 0.01F});
  }
  if (info.id == GPUNN_OP_GELU || info.id == GPUNN_OP_GELU_BACKWARD) {
    s.attrs = Attributes::of(gpunn_gelu_attrs{.struct_size = 0, .tanh = 0});
  }
  return s;
}

OpSignature bias(Request& r, const graph::OpInfo& info) {
  if (r.sizes.size() < 2) bad(r, "N,C and further dimensions");
  OpSignature s{.op = info.id, .attrs = {}, .inputs = {f32(r.sizes)}, .outputs = {}};
  if (info.id == GPUNN_OP_BIAS_ADD) s.inputs.push_back(f32({r.sizes[1]}));
  if (info.id == GPUNN_OP_BIAS_ACTIVATION_BACKWARD) {
    s.inputs.push_back(f32(r.sizes));
    s.attrs =
        Attributes::of(gpunn_bias_activation_backward_attrs{.struct_size = 0, .activation = GPUNN_ACTIVATION_RELU});
  }
  return s;
}

OpSignature batch_norm(Request& r, const graph::OpInfo& info) {
  if (r.sizes.size() < 2) bad(r, "N,C and further dimensions");
  const TensorType x = f32(r.sizes);
  OpSignature s{.op = info.id, .attrs = {}, .inputs = {x}, .outputs = {}};
  if (info.id == GPUNN_OP_BATCH_NORM_BACKWARD) {
    s.inputs.push_back(x);
  } else {
    s.attrs = Attributes::of(gpunn_batch_norm_attrs{.struct_size = 0, .epsilon = 1e-5F, .momentum = 0.1F});
  }
  while (s.inputs.size() < static_cast<std::size_t>(info.min_inputs)) s.inputs.push_back(f32({r.sizes[1]}));
  return s;
}

OpSignature layer_norm(Request& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 2) bad(r, "N,D");
  const TensorType x = f32(r.sizes), columns = f32({r.sizes[1]}), rows = f32({r.sizes[0]});
  OpSignature s{.op = info.id, .attrs = {}, .inputs = {x, columns, columns}, .outputs = {}};
  if (info.id == GPUNN_OP_LAYER_NORM_BACKWARD) {
    s.inputs = {x, x, columns, rows, rows};
  } else {
    s.attrs = Attributes::of(gpunn_layer_norm_attrs{.struct_size = 0, .epsilon = 1e-5F});
  }
  return s;
}

OpSignature local_response_norm(Request& r, const graph::OpInfo& info) {
  if (r.sizes.size() < 2) bad(r, "N,C and further dimensions, with window= if wanted");
  const auto size = static_cast<int32_t>(take(r, "window", 5));
  return {.op = info.id,
          .attrs = Attributes::of(
              gpunn_local_response_norm_attrs{.struct_size = 0, .size = size, .alpha = 1e-4F, .beta = 0.75F, .k = 1}),
          .inputs = std::vector<TensorType>(static_cast<std::size_t>(info.min_inputs), f32(r.sizes)),
          .outputs = {}};
}

OpSignature optimizer(Request& r, const graph::OpInfo& info) {
  if (r.sizes.size() != 1) bad(r, "the number of parameters");
  const TensorType w = f32({r.sizes[0]});
  const TensorType scalar = f32({});
  OpSignature s{.op = info.id, .attrs = {}, .inputs = {w, w, scalar}, .outputs = {}};
  const int64_t decayed = r.sizes[0];
  if (info.id == GPUNN_OP_SGD_UPDATE) {
    s.inputs.push_back(w);
    s.attrs = Attributes::of(
        gpunn_sgd_attrs{.struct_size = 0, .momentum = 0.9F, .weight_decay = 1e-4F, .nesterov = 1, .decayed = decayed});
  } else if (info.id == GPUNN_OP_ADAM_UPDATE) {
    s.inputs.insert(s.inputs.end(), {TensorType{DType::i64, {}}, w, w});
    s.attrs = Attributes::of(gpunn_adam_attrs{.struct_size = 0,
                                              .beta1 = 0.9F,
                                              .beta2 = 0.999F,
                                              .epsilon = 1e-8F,
                                              .weight_decay = 1e-4F,
                                              .decoupled = 1,
                                              .decayed = decayed});
  } else if (info.id == GPUNN_OP_ADAGRAD_UPDATE) {
    s.inputs.push_back(w);
    s.attrs = Attributes::of(gpunn_adagrad_attrs{
        .struct_size = 0, .epsilon = 1e-8F, .weight_decay = 1e-4F, .reserved = 0, .decayed = decayed});
  } else if (info.id == GPUNN_OP_LION_UPDATE) {
    s.inputs.push_back(w);
    s.attrs = Attributes::of(
        gpunn_lion_attrs{.struct_size = 0, .beta1 = 0.9F, .beta2 = 0.99F, .weight_decay = 1e-4F, .decayed = decayed});
  } else {
    s.inputs.insert(s.inputs.end(), {w, w});
    s.attrs = Attributes::of(gpunn_rmsprop_attrs{.struct_size = 0,
                                                 .alpha = 0.99F,
                                                 .epsilon = 1e-8F,
                                                 .momentum = 0.9F,
                                                 .weight_decay = 1e-4F,
                                                 .reserved = 0,
                                                 .decayed = decayed});
  }
  return s;
}

using Builder = OpSignature (*)(Request&, const graph::OpInfo&);

const std::map<int32_t, Builder>& builders() {
  static const std::map<int32_t, Builder> table{
      {GPUNN_OP_MATMUL, matmul},
      {GPUNN_OP_MATMUL_BIAS_ACTIVATION, matmul},
      {GPUNN_OP_CONV2D, convolution},
      {GPUNN_OP_CONV2D_BACKWARD_DATA, convolution},
      {GPUNN_OP_CONV2D_BACKWARD_FILTER, convolution},
      {GPUNN_OP_CONV2D_BIAS_ACTIVATION, convolution},
      {GPUNN_OP_MAX_POOL2D, pooling},
      {GPUNN_OP_MAX_POOL2D_BACKWARD, pooling},
      {GPUNN_OP_AVG_POOL2D, pooling},
      {GPUNN_OP_AVG_POOL2D_BACKWARD, pooling},
      {GPUNN_OP_UPSAMPLE2D, upsampling},
      {GPUNN_OP_UPSAMPLE2D_BACKWARD, upsampling},
      {GPUNN_OP_PAD, border},
      {GPUNN_OP_SLICE, border},
      {GPUNN_OP_CONCAT, concatenation},
      {GPUNN_OP_TRANSPOSE, transposition},
      {GPUNN_OP_ADD, same_shape},
      {GPUNN_OP_SCALE, same_shape},
      {GPUNN_OP_AXPBY, same_shape},
      {GPUNN_OP_CLAMP, same_shape},
      {GPUNN_OP_NORM, same_shape},
      {GPUNN_OP_COPY, same_shape},
      {GPUNN_OP_RELU, same_shape},
      {GPUNN_OP_RELU_BACKWARD, same_shape},
      {GPUNN_OP_LEAKY_RELU, same_shape},
      {GPUNN_OP_LEAKY_RELU_BACKWARD, same_shape},
      {GPUNN_OP_GELU, same_shape},
      {GPUNN_OP_GELU_BACKWARD, same_shape},
      {GPUNN_OP_SIGMOID, same_shape},
      {GPUNN_OP_SIGMOID_BACKWARD, same_shape},
      {GPUNN_OP_TANH, same_shape},
      {GPUNN_OP_TANH_BACKWARD, same_shape},
      {GPUNN_OP_SILU, same_shape},
      {GPUNN_OP_SILU_BACKWARD, same_shape},
      {GPUNN_OP_SOFTMAX, same_shape},
      {GPUNN_OP_SOFTMAX_BACKWARD, same_shape},
      {GPUNN_OP_LOG_SOFTMAX, same_shape},
      {GPUNN_OP_LOG_SOFTMAX_BACKWARD, same_shape},
      {GPUNN_OP_MSE_LOSS, same_shape},
      {GPUNN_OP_SOFT_CROSS_ENTROPY, same_shape},
      {GPUNN_OP_BCE_LOGITS_LOSS, same_shape},
      {GPUNN_OP_BIAS_ADD, bias},
      {GPUNN_OP_BIAS_BACKWARD, bias},
      {GPUNN_OP_BIAS_ACTIVATION_BACKWARD, bias},
      {GPUNN_OP_BATCH_NORM, batch_norm},
      {GPUNN_OP_BATCH_NORM_BACKWARD, batch_norm},
      {GPUNN_OP_BATCH_NORM_INFERENCE, batch_norm},
      {GPUNN_OP_LAYER_NORM, layer_norm},
      {GPUNN_OP_LAYER_NORM_BACKWARD, layer_norm},
      {GPUNN_OP_LOCAL_RESPONSE_NORM, local_response_norm},
      {GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD, local_response_norm},
      {GPUNN_OP_SGD_UPDATE, optimizer},
      {GPUNN_OP_ADAM_UPDATE, optimizer},
      {GPUNN_OP_RMSPROP_UPDATE, optimizer},
      {GPUNN_OP_ADAGRAD_UPDATE, optimizer},
      {GPUNN_OP_LION_UPDATE, optimizer},
  };
  return table;
}

}  // namespace

graph::OpSignature parse_request(const std::string& op, const std::string& shape) {
  const graph::OpInfo* info = graph::find_op(op);
  const auto builder = info == nullptr ? builders().end() : builders().find(info->id);
  if (builder == builders().end()) {
    std::vector<std::string> names;
    for (const auto& [id, unused] : builders()) names.emplace_back(graph::op_info(id).name);
    throw Error("bench: no op '" + op + "' to measure" + suggestion(op, names), ExitCode::usage);
  }
  Request request = parse(op, shape);
  try {
    OpSignature signature = builder->second(request, *info);
    if (!request.options.empty()) bad(request, "no option '" + request.options.begin()->first + "'");
    signature.outputs = info->infer(signature.attrs, signature.inputs);
    return signature;
  } catch (const Error& error) {
    if (error.code() == ExitCode::usage) throw;
    throw Error("bench op " + op + " " + shape + ": " + error.what(), ExitCode::usage);
  }
}

}  // namespace gpunn::bench
