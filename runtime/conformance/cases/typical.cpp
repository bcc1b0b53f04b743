// Each op as a training meets it, for the suite "perf": batches of 64 and images of 28 by 28, large enough to keep a
// device busy. Values matter little here, shapes much.
#include <gpunn/ops.h>

#include <algorithm>
#include <iterator>

#include "conformance/cases/case.hpp"

namespace gpunn::conformance {

namespace {

using graph::Attributes;

const Shape kImages{64, 64, 28, 28};
constexpr int64_t kChannels = 64;
const Shape kTypicalLogits{1024, 1000};
constexpr int64_t kTypicalRows = 1024, kClasses = 1000;
constexpr int64_t kParameters = 1 << 20;

CaseSpec images(int32_t op, int inputs, Attributes attrs = {}) {
  return {.op = op,
          .attrs = std::move(attrs),
          .inputs = std::vector<InputSpec>(static_cast<std::size_t>(inputs), f32(kImages))};
}

CaseSpec logits(int32_t op, int inputs) {
  return {.op = op,
          .inputs = std::vector<InputSpec>(static_cast<std::size_t>(inputs), f32(kTypicalLogits, uniform(-4, 4)))};
}

InputSpec scalar(double value) { return f32({}, constant(value)); }
InputSpec step(int64_t value) { return i64({}, constant(static_cast<double>(value))); }
InputSpec count(int64_t value) { return i32({}, constant(static_cast<double>(value))); }
InputSpec labels() { return i32({kTypicalRows}, integers(0, kClasses - 1)); }
InputSpec per_channel() { return f32({kChannels}); }

void add_elementwise(std::vector<CaseSpec>& specs) {
  for (const int32_t op : {GPUNN_OP_ADD, GPUNN_OP_SUB, GPUNN_OP_MUL, GPUNN_OP_DIV, GPUNN_OP_MAXIMUM, GPUNN_OP_MINIMUM,
                           GPUNN_OP_POW, GPUNN_OP_EQUAL, GPUNN_OP_LESS, GPUNN_OP_LESS_EQUAL}) {
    specs.push_back(images(op, 2));
  }
  specs.push_back(images(GPUNN_OP_SELECT, 3));
  for (const int32_t op : {GPUNN_OP_EXP, GPUNN_OP_LOG, GPUNN_OP_SQRT, GPUNN_OP_RSQRT, GPUNN_OP_ERF}) {
    specs.push_back(images(op, 1));
  }
  gpunn_expand_attrs expand{};
  expand.rank = 4;
  std::ranges::copy(kImages, expand.dim);
  specs.push_back({.op = GPUNN_OP_EXPAND, .attrs = Attributes::of(expand), .inputs = {f32({kChannels, 1, 1})}});
  specs.push_back(images(GPUNN_OP_SCALE, 1, Attributes::of(gpunn_scale_attrs{.struct_size = 0, .factor = 1.5F})));
  specs.push_back(
      images(GPUNN_OP_AXPBY, 2, Attributes::of(gpunn_axpby_attrs{.struct_size = 0, .alpha = 0.999F, .beta = 0.001F})));
  specs.push_back(
      images(GPUNN_OP_CLAMP, 1, Attributes::of(gpunn_clamp_attrs{.struct_size = 0, .low = -0.5F, .high = 0.5F})));
  specs.push_back(images(GPUNN_OP_COPY, 1));
  gpunn_fill_attrs fill{};
  fill.dtype = GPUNN_F32;
  fill.rank = 1;
  fill.dim[0] = element_count(kImages);
  specs.push_back({.op = GPUNN_OP_FILL, .attrs = Attributes::of(fill)});
  for (const int32_t op : {GPUNN_OP_RELU, GPUNN_OP_SIGMOID, GPUNN_OP_TANH, GPUNN_OP_SILU}) {
    specs.push_back(images(op, 1));
    specs.push_back(images(op + 1, 2));  // its backward
  }
  const auto slope = Attributes::of(gpunn_leaky_relu_attrs{.struct_size = 0, .slope = 0.01F});
  specs.push_back(images(GPUNN_OP_LEAKY_RELU, 1, slope));
  specs.push_back(images(GPUNN_OP_LEAKY_RELU_BACKWARD, 2, slope));
  const auto gelu = Attributes::of(gpunn_gelu_attrs{.struct_size = 0, .tanh = 0});
  specs.push_back(images(GPUNN_OP_GELU, 1, gelu));
  specs.push_back(images(GPUNN_OP_GELU_BACKWARD, 2, gelu));
}

void add_linear(std::vector<CaseSpec>& specs) {
  const InputSpec square = f32({1024, 1024});
  specs.push_back({.op = GPUNN_OP_MATMUL,
                   .attrs = Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = 0, .transpose_b = 0}),
                   .inputs = {square, square}});
  specs.push_back({.op = GPUNN_OP_BATCH_MATMUL,
                   .attrs = Attributes::of(gpunn_matmul_attrs{.struct_size = 0, .transpose_a = 0, .transpose_b = 1}),
                   .inputs = {f32({192, 197, 64}), f32({192, 197, 64})}});
  specs.push_back({.op = GPUNN_OP_MATMUL_BIAS_ACTIVATION,
                   .attrs = Attributes::of(gpunn_matmul_bias_activation_attrs{
                       .struct_size = 0, .transpose_a = 0, .transpose_b = 1, .activation = GPUNN_ACTIVATION_RELU}),
                   .inputs = {square, square, f32({1024})}});
  specs.push_back({.op = GPUNN_OP_BIAS_ADD, .inputs = {f32(kImages), per_channel()}});
  specs.push_back(images(GPUNN_OP_BIAS_BACKWARD, 1));
  specs.push_back(images(
      GPUNN_OP_BIAS_ACTIVATION_BACKWARD, 2,
      Attributes::of(gpunn_bias_activation_backward_attrs{.struct_size = 0, .activation = GPUNN_ACTIVATION_RELU})));
}

void add_convolutions(std::vector<CaseSpec>& specs) {
  gpunn_conv2d_attrs attrs{};
  attrs.activation = GPUNN_ACTIVATION_NONE;
  attrs.groups = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    attrs.stride[i] = attrs.pad[i] = attrs.dilation[i] = 1;
    attrs.input_size[i] = 28;
    attrs.filter_size[i] = 3;
  }
  const InputSpec x = f32({64, 32, 28, 28}), y = f32(kImages), w = f32({kChannels, 32, 3, 3});
  specs.push_back({.op = GPUNN_OP_CONV2D, .attrs = Attributes::of(attrs), .inputs = {x, w}});
  specs.push_back({.op = GPUNN_OP_CONV2D_BACKWARD_DATA, .attrs = Attributes::of(attrs), .inputs = {y, w}});
  specs.push_back({.op = GPUNN_OP_CONV2D_BACKWARD_FILTER, .attrs = Attributes::of(attrs), .inputs = {y, x}});
  attrs.activation = GPUNN_ACTIVATION_RELU;
  specs.push_back(
      {.op = GPUNN_OP_CONV2D_BIAS_ACTIVATION, .attrs = Attributes::of(attrs), .inputs = {x, w, per_channel()}});

  const Attributes pool = Attributes::of(gpunn_pool2d_attrs{
      .struct_size = 0, .window = {2, 2}, .stride = {2, 2}, .pad = {0, 0}, .count_padding = 0, .input_size = {0, 0}});
  specs.push_back(images(GPUNN_OP_MAX_POOL2D, 1, pool));
  const InputSpec pooled = f32({64, 64, 14, 14});
  specs.push_back({.op = GPUNN_OP_MAX_POOL2D_BACKWARD,
                   .attrs = pool,
                   .inputs = {pooled, f32(kImages), pooled},
                   .derive = [pool](std::vector<OracleTensor>& inputs) {
                     inputs[2] = forward(GPUNN_OP_MAX_POOL2D, pool, {inputs[1]});
                   }});
  // The mean of each image, which is what ends a residual network.
  const Attributes whole = Attributes::of(gpunn_pool2d_attrs{.struct_size = 0,
                                                             .window = {28, 28},
                                                             .stride = {28, 28},
                                                             .pad = {0, 0},
                                                             .count_padding = 0,
                                                             .input_size = {28, 28}});
  specs.push_back(images(GPUNN_OP_AVG_POOL2D, 1, whole));
  specs.push_back({.op = GPUNN_OP_AVG_POOL2D_BACKWARD, .attrs = whole, .inputs = {f32({64, 64, 1, 1})}});
}

void add_shapes(std::vector<CaseSpec>& specs) {
  const Attributes twice =
      Attributes::of(gpunn_upsample2d_attrs{.struct_size = 0, .factor = {2, 2}, .mode = GPUNN_UPSAMPLE_BILINEAR});
  specs.push_back({.op = GPUNN_OP_UPSAMPLE2D, .attrs = twice, .inputs = {f32({64, 64, 14, 14})}});
  specs.push_back(images(GPUNN_OP_UPSAMPLE2D_BACKWARD, 1, twice));
  gpunn_pad_attrs pad{};
  gpunn_slice_attrs slice{};
  gpunn_transpose_attrs transpose{};
  pad.rank = slice.rank = transpose.rank = 4;
  for (std::size_t i = 0; i < 4; ++i) {
    pad.before[i] = pad.after[i] = i < 2 ? 0 : 2;
    slice.size[i] = kImages[i];
  }
  slice.start[1] = slice.size[1] = kChannels / 2;
  const int32_t channels_last[] = {0, 2, 3, 1};
  std::copy(std::begin(channels_last), std::end(channels_last), transpose.permutation);
  specs.push_back(images(GPUNN_OP_PAD, 1, Attributes::of(pad)));
  specs.push_back(images(GPUNN_OP_SLICE, 1, Attributes::of(slice)));
  specs.push_back(images(GPUNN_OP_CONCAT, 2, Attributes::of(gpunn_concat_attrs{.struct_size = 0, .axis = 1})));
  specs.push_back(images(GPUNN_OP_TRANSPOSE, 1, Attributes::of(transpose)));
}

void add_normalizations(std::vector<CaseSpec>& specs) {
  const Attributes attrs = Attributes::of(gpunn_batch_norm_attrs{.struct_size = 0, .epsilon = 1e-5F, .momentum = 0.1F});
  const InputSpec x = f32(kImages), positive = f32({kChannels}, uniform(0.5, 2));
  specs.push_back({.op = GPUNN_OP_BATCH_NORM,
                   .attrs = attrs,
                   .inputs = {x, per_channel(), per_channel(), per_channel(), positive}});
  specs.push_back({.op = GPUNN_OP_BATCH_NORM_BACKWARD, .inputs = {x, x, per_channel(), per_channel(), positive}});
  specs.push_back({.op = GPUNN_OP_BATCH_NORM_INFERENCE,
                   .attrs = attrs,
                   .inputs = {x, per_channel(), per_channel(), per_channel(), positive}});
  const InputSpec rows = f32(kTypicalLogits), columns = f32({kClasses}), by_row = f32({kTypicalRows}, uniform(0.5, 2));
  specs.push_back({.op = GPUNN_OP_LAYER_NORM,
                   .attrs = Attributes::of(gpunn_layer_norm_attrs{.struct_size = 0, .epsilon = 1e-5F}),
                   .inputs = {rows, columns, columns}});
  specs.push_back({.op = GPUNN_OP_LAYER_NORM_BACKWARD, .inputs = {rows, rows, columns, by_row, by_row}});
  const Attributes response = Attributes::of(
      gpunn_local_response_norm_attrs{.struct_size = 0, .size = 5, .alpha = 1e-4F, .beta = 0.75F, .k = 1});
  specs.push_back(images(GPUNN_OP_LOCAL_RESPONSE_NORM, 1, response));
  specs.push_back(images(GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD, 2, response));
}

void add_losses(std::vector<CaseSpec>& specs) {
  specs.push_back(logits(GPUNN_OP_SOFTMAX, 1));
  specs.push_back(logits(GPUNN_OP_SOFTMAX_BACKWARD, 2));
  specs.push_back(logits(GPUNN_OP_LOG_SOFTMAX, 1));
  specs.push_back(logits(GPUNN_OP_LOG_SOFTMAX_BACKWARD, 2));
  const InputSpec x = f32(kTypicalLogits, uniform(-4, 4)), loss = f32({kTypicalRows});
  specs.push_back({.op = GPUNN_OP_NLL_LOSS, .inputs = {x, labels()}});
  specs.push_back({.op = GPUNN_OP_NLL_LOSS_BACKWARD,
                   .attrs = Attributes::of(gpunn_classes_attrs{.struct_size = 0, .classes = kClasses}),
                   .inputs = {loss, labels()}});
  specs.push_back(logits(GPUNN_OP_MSE_LOSS, 2));
  specs.push_back({.op = GPUNN_OP_MSE_LOSS_BACKWARD, .inputs = {loss, x, x}});
  specs.push_back({.op = GPUNN_OP_SOFTMAX_CROSS_ENTROPY, .inputs = {x, labels()}});
  specs.push_back({.op = GPUNN_OP_SOFTMAX_CROSS_ENTROPY_BACKWARD, .inputs = {loss, x, labels()}});
  const InputSpec target = f32(kTypicalLogits, constant(1.0 / static_cast<double>(kClasses)));
  specs.push_back({.op = GPUNN_OP_SOFT_CROSS_ENTROPY, .inputs = {x, target}});
  specs.push_back({.op = GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, .inputs = {loss, x, target}});
  specs.push_back({.op = GPUNN_OP_BCE_LOGITS_LOSS, .inputs = {x, target}});
  specs.push_back({.op = GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD, .inputs = {loss, x, target}});
  const auto huber = Attributes::of(gpunn_huber_attrs{.struct_size = 0, .delta = 1});
  specs.push_back({.op = GPUNN_OP_HUBER_LOSS, .attrs = huber, .inputs = {x, target}});
  specs.push_back({.op = GPUNN_OP_HUBER_LOSS_BACKWARD, .attrs = huber, .inputs = {loss, x, target}});
  const auto hinge = Attributes::of(gpunn_hinge_attrs{.struct_size = 0, .margin = 1, .power = 2});
  specs.push_back({.op = GPUNN_OP_HINGE_LOSS, .attrs = hinge, .inputs = {x, labels()}});
  specs.push_back({.op = GPUNN_OP_HINGE_LOSS_BACKWARD, .attrs = hinge, .inputs = {loss, x, labels()}});
  specs.push_back(images(GPUNN_OP_REDUCE, 1,
                         Attributes::of(gpunn_reduce_attrs{
                             .struct_size = 0, .kind = GPUNN_REDUCE_MEAN, .axes = 0b1101U, .keep_dims = 0})));
  specs.push_back({.op = GPUNN_OP_MEAN_ROWS, .inputs = {loss, count(kTypicalRows)}});
  specs.push_back({.op = GPUNN_OP_MEAN_ROWS_BACKWARD,
                   .attrs = Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = kTypicalRows}),
                   .inputs = {scalar(1), count(kTypicalRows)}});
  specs.push_back(
      {.op = GPUNN_OP_METRICS_ACCUMULATE, .inputs = {loss, count(kTypicalRows), f64({4}, constant(0)), x, labels()}});
}

void add_optimizers(std::vector<CaseSpec>& specs) {
  specs.push_back({.op = GPUNN_OP_NORM, .inputs = {f32({kParameters})}});
  specs.push_back(
      {.op = GPUNN_OP_CLIP_NORM,
       .attrs = Attributes::of(gpunn_clip_norm_attrs{.struct_size = 0, .max_norm = 1, .epsilon = 1e-6F, .rescale = 0}),
       .inputs = {f32({kParameters}), scalar(2)}});
  specs.push_back({.op = GPUNN_OP_L1_GRADIENT,
                   .attrs = Attributes::of(gpunn_l1_attrs{.struct_size = 0, .weight = 1e-4F, .decayed = kParameters}),
                   .inputs = {f32({kParameters}), f32({kParameters})}});
  const InputSpec w = f32({kParameters}), state = f32({kParameters}, constant(0)), rate = scalar(1e-4);
  specs.push_back(
      {.op = GPUNN_OP_SGD_UPDATE,
       .attrs = Attributes::of(gpunn_sgd_attrs{
           .struct_size = 0, .momentum = 0.9F, .weight_decay = 1e-4F, .nesterov = 1, .decayed = kParameters}),
       .inputs = {w, w, rate, state}});
  specs.push_back({.op = GPUNN_OP_ADAM_UPDATE,
                   .attrs = Attributes::of(gpunn_adam_attrs{.struct_size = 0,
                                                            .beta1 = 0.9F,
                                                            .beta2 = 0.999F,
                                                            .epsilon = 1e-8F,
                                                            .weight_decay = 1e-4F,
                                                            .decoupled = 1,
                                                            .decayed = kParameters}),
                   .inputs = {w, w, rate, step(3), state, state}});
  specs.push_back({.op = GPUNN_OP_RMSPROP_UPDATE,
                   .attrs = Attributes::of(gpunn_rmsprop_attrs{.struct_size = 0,
                                                               .alpha = 0.99F,
                                                               .epsilon = 1e-8F,
                                                               .momentum = 0,
                                                               .weight_decay = 0,
                                                               .reserved = 0,
                                                               .decayed = 0}),
                   .inputs = {w, w, rate, state}});
  specs.push_back({.op = GPUNN_OP_ADAGRAD_UPDATE,
                   .attrs = Attributes::of(gpunn_adagrad_attrs{
                       .struct_size = 0, .epsilon = 1e-8F, .weight_decay = 0, .reserved = 0, .decayed = 0}),
                   .inputs = {w, w, rate, state}});
  specs.push_back({.op = GPUNN_OP_LION_UPDATE,
                   .attrs = Attributes::of(gpunn_lion_attrs{
                       .struct_size = 0, .beta1 = 0.9F, .beta2 = 0.99F, .weight_decay = 1e-2F, .decayed = kParameters}),
                   .inputs = {w, w, rate, state}});
  constexpr int64_t kParts = 64, kPart = kParameters / kParts;
  std::vector<double> offset;
  for (int64_t i = 0; i <= kParts; ++i) offset.push_back(static_cast<double>(i * kPart));
  specs.push_back({.op = GPUNN_OP_LARS_UPDATE,
                   .attrs = Attributes::of(gpunn_lars_attrs{.struct_size = 0,
                                                            .momentum = 0.9F,
                                                            .weight_decay = 1e-4F,
                                                            .trust = 1e-3F,
                                                            .epsilon = 1e-8F,
                                                            .reserved = 0,
                                                            .decayed = kParameters}),
                   .inputs = {w, w, rate, state, i64({65}, listed(offset))}});
}

Attributes random(Shape shape, float low, float high) {
  gpunn_random_attrs attrs{};
  attrs.rank = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), attrs.dim);
  attrs.seed = 1;
  attrs.low = low;
  attrs.high = high;
  return Attributes::of(attrs);
}

void add_data(std::vector<CaseSpec>& specs) {
  specs.push_back({.op = GPUNN_OP_RANDOM_UNIFORM, .attrs = random(kImages, -1, 1), .inputs = {step(1)}});
  specs.push_back({.op = GPUNN_OP_RANDOM_NORMAL, .attrs = random(kImages, 0, 1), .inputs = {step(1)}});
  specs.push_back({.op = GPUNN_OP_RANDOM_PERMUTATION, .attrs = random({60'000}, 0, 0), .inputs = {step(1)}});
  specs.push_back({.op = GPUNN_OP_DROPOUT,
                   .attrs = Attributes::of(gpunn_dropout_attrs{.struct_size = 0, .p = 0.5F, .seed = 1, .stream = 1}),
                   .inputs = {f32(kImages), step(1)}});
  gpunn_random_shift_attrs shift{};
  shift.reach[0] = shift.reach[1] = 4;
  shift.flip = 0.5F;
  specs.push_back(
      {.op = GPUNN_OP_RANDOM_SHIFT, .attrs = Attributes::of(shift), .inputs = {f32(kImages), step(1), per_channel()}});
  gpunn_random_affine_attrs affine{};
  affine.rotate = 15;
  affine.scale_low = 0.9F;
  affine.scale_high = 1.1F;
  specs.push_back({.op = GPUNN_OP_RANDOM_AFFINE,
                   .attrs = Attributes::of(affine),
                   .inputs = {f32(kImages), step(1), per_channel()}});
  const Shape pictures{128, 3, 64, 64};
  gpunn_random_color_attrs color{};
  color.brightness = color.contrast = color.saturation = 0.4F;
  color.white = 255;
  specs.push_back({.op = GPUNN_OP_RANDOM_COLOR,
                   .attrs = Attributes::of(color),
                   .inputs = {f32(pictures), step(1), f32({3}, constant(0.016)), f32({3}, constant(-2))}});
  gpunn_random_erase_attrs erase{};
  erase.size[0] = erase.size[1] = 8;
  erase.p = 1;
  specs.push_back(
      {.op = GPUNN_OP_RANDOM_ERASE, .attrs = Attributes::of(erase), .inputs = {f32(kImages), step(1), per_channel()}});
  specs.push_back({.op = GPUNN_OP_MIX_ROWS, .inputs = {f32(kImages), scalar(0.3), count(kImages[0])}});
  constexpr int64_t kSamples = 10'000;
  constexpr int32_t kBatch = 512;
  specs.push_back(
      {.op = GPUNN_OP_SAMPLE_INDICES,
       .attrs = Attributes::of(gpunn_sample_attrs{
           .struct_size = 0, .shuffle = 1, .rows = kSamples, .batch = kBatch, .drop_last = 1, .seed = 1, .stream = 1}),
       .inputs = {step(7)}});
  const InputSpec index = i32({kBatch}, integers(0, kSamples - 1));
  specs.push_back({.op = GPUNN_OP_SCATTER_ADD,
                   .attrs = Attributes::of(gpunn_rows_attrs{.struct_size = 0, .reserved = 0, .rows = kTypicalRows}),
                   .inputs = {f32({kTypicalRows, 256}), i32({kTypicalRows}, integers(0, kTypicalRows - 1))}});
  specs.push_back({.op = GPUNN_OP_GATHER_ROWS, .inputs = {i32({kSamples}, integers(0, 9)), index}});
  specs.push_back({.op = GPUNN_OP_GATHER_NORMALIZE,
                   .inputs = {u8({kSamples, 1, 28, 28}), index, f32({1}, constant(0.01)), f32({1}, constant(-1))}});
  specs.push_back({.op = GPUNN_OP_ADVANCE,
                   .attrs = Attributes::of(gpunn_advance_attrs{.struct_size = 0, .reserved = 0, .increment = 1}),
                   .inputs = {step(0)}});
  specs.push_back({.op = GPUNN_OP_TABLE_LOAD, .inputs = {f32({4096}), step(17)}});
  specs.push_back({.op = GPUNN_OP_TABLE_STORE, .inputs = {f32({4096}), step(17), scalar(1)}});
}

}  // namespace

std::vector<Case> typical_cases() {
  std::vector<CaseSpec> specs;
  for (auto add : {add_elementwise, add_linear, add_convolutions, add_shapes, add_normalizations, add_losses,
                   add_optimizers, add_data})
    add(specs);
  std::vector<Case> cases;
  for (CaseSpec& spec : specs) cases.push_back(make_case(std::move(spec)));
  return cases;
}

}  // namespace gpunn::conformance
