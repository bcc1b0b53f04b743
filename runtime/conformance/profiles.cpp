#include "conformance/profiles.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>
#include <gpunn/words.hpp>

#include <algorithm>

#include "common/text.hpp"

namespace gpunn::conformance {

namespace {

const std::vector<DType> kF32{DType::f32};

// The table.
std::vector<Profile> make_profiles() {
  // What models/ come to when they are evaluated and when they predict.
  std::vector<RequiredOp> inference{
      {GPUNN_OP_ADD, kF32},
      {GPUNN_OP_COPY, kF32},
      {GPUNN_OP_RELU, kF32},
      {GPUNN_OP_LEAKY_RELU, kF32},
      {GPUNN_OP_SIGMOID, kF32},
      {GPUNN_OP_TANH, kF32},
      {GPUNN_OP_GELU, kF32},
      {GPUNN_OP_SILU, kF32},
      {GPUNN_OP_MATMUL, kF32},
      {GPUNN_OP_BIAS_ADD, kF32},
      {GPUNN_OP_CONV2D, kF32},
      {GPUNN_OP_CONV2D_BACKWARD_DATA, kF32},  // the layer conv2d_transpose
      {GPUNN_OP_MAX_POOL2D, kF32},
      {GPUNN_OP_AVG_POOL2D, kF32},
      {GPUNN_OP_UPSAMPLE2D, kF32},
      {GPUNN_OP_PAD, kF32},
      {GPUNN_OP_SLICE, kF32},
      {GPUNN_OP_CONCAT, kF32},
      {GPUNN_OP_TRANSPOSE, kF32},
      {GPUNN_OP_BATCH_NORM_INFERENCE, kF32},
      {GPUNN_OP_LAYER_NORM, kF32},
      {GPUNN_OP_LOCAL_RESPONSE_NORM, kF32},
      {GPUNN_OP_SOFTMAX, kF32},
      {GPUNN_OP_LOG_SOFTMAX, kF32},
      {GPUNN_OP_NLL_LOSS, kF32},
      {GPUNN_OP_MSE_LOSS, kF32},
      {GPUNN_OP_BCE_LOGITS_LOSS, kF32},
      {GPUNN_OP_HINGE_LOSS, kF32},
      {GPUNN_OP_HUBER_LOSS, kF32},
      {GPUNN_OP_SAMPLE_INDICES, {}},
      {GPUNN_OP_GATHER_ROWS, {DType::i32, DType::f32}},
      {GPUNN_OP_GATHER_NORMALIZE, {DType::u8, DType::f32}},
      {GPUNN_OP_ADVANCE, {}},
      {GPUNN_OP_METRICS_ACCUMULATE, {}},
  };
  // And when they are trained, by any of the optimizers.
  std::vector<RequiredOp> train = inference;
  const std::vector<RequiredOp> more{
      {GPUNN_OP_FILL, {DType::f32, DType::i32}},
      {GPUNN_OP_COPY, {DType::i32}},
      {GPUNN_OP_SCALE, kF32},
      {GPUNN_OP_AXPBY, kF32},
      {GPUNN_OP_CLAMP, kF32},
      {GPUNN_OP_NORM, kF32},
      {GPUNN_OP_CLIP_NORM, kF32},
      {GPUNN_OP_L1_GRADIENT, kF32},
      {GPUNN_OP_RELU_BACKWARD, kF32},
      {GPUNN_OP_LEAKY_RELU_BACKWARD, kF32},
      {GPUNN_OP_SIGMOID_BACKWARD, kF32},
      {GPUNN_OP_TANH_BACKWARD, kF32},
      {GPUNN_OP_GELU_BACKWARD, kF32},
      {GPUNN_OP_SILU_BACKWARD, kF32},
      {GPUNN_OP_BIAS_BACKWARD, kF32},
      {GPUNN_OP_CONV2D_BACKWARD_FILTER, kF32},
      {GPUNN_OP_MAX_POOL2D_BACKWARD, kF32},
      {GPUNN_OP_AVG_POOL2D_BACKWARD, kF32},
      {GPUNN_OP_UPSAMPLE2D_BACKWARD, kF32},
      {GPUNN_OP_BATCH_NORM, kF32},
      {GPUNN_OP_BATCH_NORM_BACKWARD, kF32},
      {GPUNN_OP_LAYER_NORM_BACKWARD, kF32},
      {GPUNN_OP_LOCAL_RESPONSE_NORM_BACKWARD, kF32},
      {GPUNN_OP_SOFTMAX_BACKWARD, kF32},
      {GPUNN_OP_LOG_SOFTMAX_BACKWARD, kF32},
      {GPUNN_OP_NLL_LOSS_BACKWARD, kF32},
      {GPUNN_OP_MSE_LOSS_BACKWARD, kF32},
      {GPUNN_OP_BCE_LOGITS_LOSS_BACKWARD, kF32},
      {GPUNN_OP_HINGE_LOSS_BACKWARD, kF32},
      {GPUNN_OP_HUBER_LOSS_BACKWARD, kF32},
      {GPUNN_OP_SOFT_CROSS_ENTROPY, kF32},
      {GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD, kF32},
      {GPUNN_OP_MEAN_ROWS, kF32},
      {GPUNN_OP_MEAN_ROWS_BACKWARD, kF32},
      {GPUNN_OP_SGD_UPDATE, kF32},
      {GPUNN_OP_ADAM_UPDATE, kF32},
      {GPUNN_OP_RMSPROP_UPDATE, kF32},
      {GPUNN_OP_ADAGRAD_UPDATE, kF32},
      {GPUNN_OP_LION_UPDATE, kF32},
      {GPUNN_OP_LARS_UPDATE, kF32},
      {GPUNN_OP_LBFGS_UPDATE, kF32},
      {GPUNN_OP_DROPOUT, kF32},
      {GPUNN_OP_RANDOM_SHIFT, kF32},
      {GPUNN_OP_RANDOM_AFFINE, kF32},
      {GPUNN_OP_RANDOM_COLOR, kF32},
      {GPUNN_OP_RANDOM_ERASE, kF32},
      {GPUNN_OP_MIX_ROWS, kF32},
      {GPUNN_OP_TABLE_LOAD, kF32},
      {GPUNN_OP_TABLE_STORE, kF32},
  };
  train.insert(train.end(), more.begin(), more.end());
  // What LeNet, ResNet-18 and an MLP come to, trained by SGD or Adam, where all that can be composed is.
  std::vector<RequiredOp> core{
      {GPUNN_OP_ADD, kF32},
      {GPUNN_OP_SUB, kF32},
      {GPUNN_OP_MUL, kF32},
      {GPUNN_OP_DIV, kF32},
      {GPUNN_OP_MAXIMUM, kF32},
      {GPUNN_OP_LESS, kF32},
      {GPUNN_OP_SELECT, kF32},
      {GPUNN_OP_EXP, kF32},
      {GPUNN_OP_LOG, kF32},
      {GPUNN_OP_SQRT, kF32},
      {GPUNN_OP_RSQRT, kF32},
      {GPUNN_OP_TANH, kF32},
      {GPUNN_OP_FILL, {DType::f32, DType::i32}},
      {GPUNN_OP_COPY, {DType::f32, DType::i32}},
      {GPUNN_OP_REDUCE, kF32},
      {GPUNN_OP_MATMUL, kF32},
      {GPUNN_OP_CONV2D, kF32},
      {GPUNN_OP_CONV2D_BACKWARD_DATA, kF32},
      {GPUNN_OP_CONV2D_BACKWARD_FILTER, kF32},
      {GPUNN_OP_MAX_POOL2D, kF32},
      {GPUNN_OP_MAX_POOL2D_BACKWARD, kF32},
      {GPUNN_OP_AVG_POOL2D, kF32},
      {GPUNN_OP_AVG_POOL2D_BACKWARD, kF32},
      {GPUNN_OP_PAD, kF32},
      {GPUNN_OP_SLICE, kF32},
      {GPUNN_OP_BATCH_NORM, kF32},
      {GPUNN_OP_BATCH_NORM_BACKWARD, kF32},
      {GPUNN_OP_NLL_LOSS, kF32},
      {GPUNN_OP_NLL_LOSS_BACKWARD, kF32},
      {GPUNN_OP_MEAN_ROWS, kF32},
      {GPUNN_OP_MEAN_ROWS_BACKWARD, kF32},
      {GPUNN_OP_SAMPLE_INDICES, {}},
      {GPUNN_OP_GATHER_ROWS, {DType::i32, DType::f32}},
      {GPUNN_OP_GATHER_NORMALIZE, {DType::u8, DType::f32}},
      {GPUNN_OP_ADVANCE, {}},
      {GPUNN_OP_TABLE_LOAD, kF32},
      {GPUNN_OP_TABLE_STORE, kF32},
      {GPUNN_OP_METRICS_ACCUMULATE, {}},
  };
  return {{"all", "every op of the catalogue, at every type that it has", {}},
          {"core", "the ops that LeNet, ResNet-18 and an MLP can be trained with, composing all others", core},
          {"train-cnn", "all that training, evaluating and predicting with the shipped kinds of layers needs", train},
          {"inference", "all that evaluating and predicting with them needs", inference}};
}

}  // namespace

const std::vector<Profile>& profiles() {
  static const std::vector<Profile> table = make_profiles();
  return table;
}

const Profile& find_profile(const std::string& name) {
  std::vector<std::string> known;
  for (const Profile& profile : profiles()) {
    if (profile.name == name) return profile;
    known.emplace_back(profile.name);
  }
  throw Error("there is no profile '" + name + "'" + advice_or_list(name, known, ""), ExitCode::usage);
}

bool demands(const Profile& profile, std::string_view op, std::string_view type) {
  if (op == "training") return demands(profile, "DROPOUT", "f32");  // the trainings of a suite use dropout
  const ops::OpInfo* info = ops::find_op(op);
  if (info == nullptr) return true;
  if (info->composite) return false;
  if (profile.ops.empty()) return true;
  return std::ranges::any_of(profile.ops, [&](const RequiredOp& required) {
    return required.op == info->id && (required.types.empty() || std::ranges::any_of(required.types, [&](DType one) {
                                         return name_of(one) == type;
                                       }));
  });
}

}  // namespace gpunn::conformance
