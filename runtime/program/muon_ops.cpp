#include "program/muon_ops.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gpunn::training {

using graph::Attributes;
using graph::Graph;
using graph::ValueId;

namespace {

// Of x -> a x + b x^3 + c x^5 on the singular values: five rounds bring any that is not tiny to between 0.7 and 1.2.
constexpr float kA = 3.4445F, kB = -4.7750F, kC = 2.0315F;
constexpr int kRounds = 5;
constexpr float kEpsilon = 1e-7F;

// Ops of one matrix, by the name of its parameter.
class MatrixStep {
 public:
  MatrixStep(Graph& g, std::string name, int64_t rows, int64_t columns)
      : g_(g), name_(std::move(name)), rows_(rows), columns_(columns) {}

  ValueId matrix(ValueId of, int64_t offset) const {
    return g_.add_view(name_, of, {DType::f32, {rows_, columns_}}, offset * static_cast<int64_t>(sizeof(float)));
  }
  ValueId vector(ValueId of, int64_t offset = 0) const {
    return g_.add_view(name_, of, {DType::f32, {rows_ * columns_}}, offset * static_cast<int64_t>(sizeof(float)));
  }
  ValueId sum(float alpha, ValueId a, float beta, ValueId b) const {
    return g_.add1(GPUNN_OP_AXPBY, name_, mix(alpha, beta), {a, b});
  }
  void sum_into(float alpha, ValueId a, float beta, ValueId b, ValueId into) const {
    g_.add_into(GPUNN_OP_AXPBY, name_, mix(alpha, beta), {a, b}, {into});
  }

  // Of a matrix whose singular values are at most 1: the iteration on its smaller side, so that a tall matrix is
  // multiplied from the right where PyTorch transposes it.
  ValueId orthogonal(ValueId x) const {
    const bool tall = rows_ > columns_;
    for (int round = 0; round < kRounds; ++round) {
      const ValueId gram = product(x, x, tall, !tall);
      const ValueId by = sum(kB, gram, kC, product(gram, gram));
      x = sum(kA, x, 1, tall ? product(x, by) : product(by, x));
    }
    return x;
  }

  // By its norm, which no singular value is above.
  ValueId normalised(ValueId x) const {
    const ValueId flat = vector(x);
    const ValueId norm = g_.add1(GPUNN_OP_NORM, name_, {}, {flat});
    const gpunn_clip_norm_attrs to_one{.struct_size = 0, .max_norm = 1, .epsilon = kEpsilon, .rescale = 1};
    return matrix(g_.add1(GPUNN_OP_CLIP_NORM, name_, Attributes::of(to_one), {flat, norm}), 0);
  }

 private:
  static Attributes mix(float alpha, float beta) {
    return Attributes::of(gpunn_axpby_attrs{.struct_size = 0, .alpha = alpha, .beta = beta});
  }
  ValueId product(ValueId a, ValueId b, bool transpose_a = false, bool transpose_b = false) const {
    const gpunn_matmul_attrs attrs{.struct_size = 0, .transpose_a = transpose_a, .transpose_b = transpose_b};
    return g_.add1(GPUNN_OP_MATMUL, name_, Attributes::of(attrs), {a, b});
  }

  Graph& g_;
  std::string name_;
  int64_t rows_, columns_;
};

// How much of the learning rate a matrix of that shape takes.
double share_of_rate(MuonScale scale, int64_t rows, int64_t columns) {
  const auto r = static_cast<double>(rows), c = static_cast<double>(columns);
  if (scale == MuonScale::match_rms_adamw) return 0.2 * std::sqrt(std::max(r, c));
  return std::sqrt(std::max(1.0, r / c));
}

}  // namespace

void add_muon(Graph& g, const OptimizerConfig& o, const ParameterLayout& layout, const UpdateRange& range,
              const UpdateValues& values, ValueId mean) {
  const Muon& muon = std::get<Muon>(o.kind);
  const auto momentum = static_cast<float>(muon.momentum), rest = static_cast<float>(1 - muon.momentum);
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    if (!layout.rules[i].matrix || layout.rules[i].group != range.group) continue;
    const nn::Parameter& parameter = layout.parameters[i];
    const int64_t elements = element_count(parameter.shape), rows = parameter.shape[0], columns = elements / rows;
    const MatrixStep step(g, "optimizer." + parameter.name, rows, columns);
    const ValueId gradient = step.matrix(values.gradients, layout.offset[i]);
    const ValueId running = step.matrix(mean, layout.offset[i]);
    step.sum_into(momentum, running, rest, gradient, running);
    const ValueId ahead = muon.nesterov ? step.sum(momentum, running, rest, gradient) : running;
    const ValueId direction = step.orthogonal(step.normalised(ahead));

    const double share = share_of_rate(muon.scale, rows, columns);
    const gpunn_scale_attrs scale{.struct_size = 0, .factor = static_cast<float>(share)};
    const ValueId rate = g.add1(GPUNN_OP_SCALE, "optimizer." + parameter.name, Attributes::of(scale), {values.rate});
    // The decay goes by the learning rate itself. SGD multiplies it with the share; here it is divided by that.
    const double decay = group_update(o, range.group).weight_decay / share;
    const gpunn_sgd_attrs update{.struct_size = 0,
                                 .momentum = 0,
                                 .weight_decay = static_cast<float>(decay),
                                 .nesterov = 0,
                                 .decayed = layout.rules[i].decays ? elements : 0};
    g.add(GPUNN_OP_SGD_UPDATE, "optimizer." + parameter.name, Attributes::of(update),
          {step.vector(values.parameters, layout.offset[i]), step.vector(direction), rate});
  }
}

}  // namespace gpunn::training
