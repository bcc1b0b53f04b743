#include "session/check/op_comparison.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "ops/comparison.hpp"
#include "ops/op.hpp"
#include "ops/values.hpp"

namespace gpunn::training {

namespace {

using ops::Comparison;
using ops::Evaluation;
using ops::ReferenceTensor;
using ops::Tolerance;

// About a minute of the reference's plain loops.
constexpr double kMostReferenceFlops = 1e10;

bool is_product(int32_t op) {
  switch (op) {
    case GPUNN_OP_MATMUL:
    case GPUNN_OP_BATCH_MATMUL:
    case GPUNN_OP_MATMUL_BIAS_ACTIVATION:
    case GPUNN_OP_CONV2D:
    case GPUNN_OP_CONV2D_BACKWARD_DATA:
    case GPUNN_OP_CONV2D_BACKWARD_FILTER:
    case GPUNN_OP_CONV2D_BIAS_ACTIVATION:
      return true;
    default:
      return false;
  }
}

// How much coarser than f32 the factors of a product may be rounded. Those of half precision are not.
double coarseness(const graph::OpSignature& op, Precision precision) {
  if (precision == Precision::fp32 || !is_product(op.op) || is_half(op.inputs.at(0).dtype)) return 1;
  constexpr int kFp32Bits = 24, kTf32Bits = 11, kBf16Bits = 8;
  return std::ldexp(1.0, kFp32Bits - (precision == Precision::bf16 ? kBf16Bits : kTf32Bits));
}

Tolerance tolerance(const Evaluation& evaluation, std::size_t output, double factor) {
  Tolerance result = ops::tolerance_of(evaluation, output);
  for (double& bound : result.bound) bound *= factor;
  return result;
}

// One op with its values widened to float64.
class Comparer {
 public:
  Comparer(const ComparedOp& op, const Judging& judging)
      : op_(op), judging_(judging), coarseness_(coarseness(op.signature, judging.precision)) {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const TensorType& type = op.signature.inputs[i];
      inputs_.push_back(op.inputs[i].empty() ? ReferenceTensor{type, {}} : ops::decode(type, op.inputs[i]));
    }
    for (std::size_t i = 0; i < op.first.size(); ++i) {
      first_.push_back(ops::decode(op.signature.outputs[i], op.first[i]));
    }
  }

  OpDifference compare(std::size_t output) {
    second_ = ops::decode(op_.signature.outputs[output], op_.second[output]);
    const Evaluation evaluation{op_.signature, inputs_, first_, judging_.evaluate};
    const Tolerance allowed = tolerance(evaluation, output, 2 * coarseness_);
    const Comparison difference = ops::compare(first_[output], second_, allowed, "");
    OpDifference result;
    result.error = difference.error;
    result.departs = !difference.ok();
    result.output = output;
    fill(result, difference, allowed);
    if (result.departs) ask_reference(result);
    return result;
  }

 private:
  void fill(OpDifference& result, const Comparison& difference, const Tolerance& allowed) const {
    if (difference.wrong == 0) return;
    result.element = difference.worst;
    result.first = first_[result.output].values[difference.worst];
    result.second = second_.values[difference.worst];
    result.allowed = allowed.bound[difference.worst];
    result.wrong = difference.wrong;
    result.reason = allowed.reason;
  }

  void ask_reference(OpDifference& result) {
    if (ops::flops_of(op_.signature) > kMostReferenceFlops) return;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (op_.inputs[i].empty() && inputs_[i].type.bytes() > 0) {
        inputs_[i] = ops::decode(inputs_[i].type, judging_.fetch(i));
      }
    }
    const std::size_t output = result.output;
    const std::vector<ReferenceTensor> reference = ops::run_reference(op_.signature, inputs_);
    const Tolerance allowed = tolerance({op_.signature, inputs_, reference}, output, coarseness_);
    const Comparison first = ops::compare(reference[output], first_[output], allowed, "");
    const Comparison second = ops::compare(reference[output], second_, allowed, "");
    result.departs = !first.ok() || !second.ok();
    result.error = std::max(first.error, second.error);
    if (!result.departs) return;
    fill(result, second.ok() ? first : second, allowed);
    result.allowed *= 2;
    result.reference = reference[output].values[result.element];
    result.first_wrong = !first.ok();
    result.second_wrong = !second.ok();
  }

  const ComparedOp& op_;
  const Judging& judging_;
  double coarseness_;
  std::vector<ReferenceTensor> inputs_, first_;
  ReferenceTensor second_;
};

}  // namespace

OpDifference compare_op(const ComparedOp& op, const Judging& judging) {
  if (op.first == op.second) return {};
  Comparer comparer(op, judging);
  OpDifference largest;
  for (std::size_t i = 0; i < op.first.size(); ++i) {
    if (op.first[i] == op.second[i]) continue;
    OpDifference difference = comparer.compare(i);
    if (difference.departs) return difference;
    if (difference.error > largest.error) largest = std::move(difference);
  }
  return largest;
}

}  // namespace gpunn::training
