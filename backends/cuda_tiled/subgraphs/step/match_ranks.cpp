#include "subgraphs/step/match_ranks.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <string>

#include "common/requirements.hpp"

namespace gpunn::cuda_tiled {
namespace {

using backends::Refusal;
using backends::require;

bool adds_over_ranks(const Pattern& pattern, std::size_t i, int world) {
  const plugin::OpDesc op = pattern.desc().op(i);
  return op.attrs<gpunn_all_reduce_attrs>().parts == world && op.input(0).dtype == GPUNN_F32;
}

struct Elements {
  int64_t from, to;
};

Elements elements_of(const Pattern& pattern, int32_t value) {
  const int64_t from = static_cast<int64_t>(pattern.desc().value(value).offset) / 4;
  return {.from = from, .to = from + plugin::element_count(pattern.desc().tensor(value))};
}

}  // namespace

GradientSums take_gradient_sums(Pattern& pattern, int world, const std::function<bool(int32_t)>& is_gradient,
                                const std::vector<int32_t>& gradients) {
  GradientSums sums{.values = {}, .last = pattern.begin()};
  for (std::size_t i = pattern.begin(); i < pattern.end(); ++i) {
    if (pattern.taken(i) || pattern.op(i) != GPUNN_OP_ALL_REDUCE || !is_gradient(pattern.input(i, 0))) continue;
    require(pattern.same(pattern.input(i, 0), pattern.output(i)) && adds_over_ranks(pattern, i, world),
            "a sum over ranks elsewhere than in place, or of several parts a rank");
    sums.values.push_back(pattern.output(i));
    sums.last = pattern.take(i, "");
  }
  require(!sums.values.empty(), "gradients that no ranks add");
  for (const int32_t gradient : gradients) {
    const Elements wanted = elements_of(pattern, gradient);
    int64_t covered = 0;
    for (const int32_t value : sums.values) {
      const Elements part = elements_of(pattern, value);
      covered += std::max<int64_t>(0, std::min(part.to, wanted.to) - std::max(part.from, wanted.from));
    }
    require(covered == wanted.to - wanted.from, "gradients that the ranks add in part");
  }
  return sums;
}

LossSum take_loss_sum(Pattern& pattern, int world, int32_t mean) {
  LossSum loss;
  loss.product = pattern.find({GPUNN_OP_MUL}, {mean});
  require(loss.product != Pattern::kNone, "a loss without this rank's share of the rows");
  pattern.take(loss.product, "");
  loss.share = pattern.input(loss.product, 1);
  const std::size_t sum = pattern.find({GPUNN_OP_ALL_REDUCE}, {pattern.output(loss.product)});
  require(sum != Pattern::kNone && adds_over_ranks(pattern, sum, world), "a loss that no ranks add");
  loss.sum = pattern.output(pattern.take(sum, ""));
  return loss;
}

std::size_t take_pass_advance(Pattern& pattern, int32_t step) {
  const std::size_t advance = pattern.find({GPUNN_OP_ADVANCE}, {});
  if (advance == Pattern::kNone || pattern.same(pattern.input(advance, 0), step)) return Pattern::kNone;
  return pattern.take(advance, "");
}

void require_no_other_exchange(const Pattern& pattern) {
  for (std::size_t i = 0; i < pattern.desc().ops(); ++i) {
    const int32_t kind = pattern.op(i);
    const bool exchange = kind == GPUNN_OP_ALL_REDUCE || kind == GPUNN_OP_REDUCE_SCATTER || kind == GPUNN_OP_ALL_GATHER;
    if (exchange && !pattern.taken(i)) {
      throw Refusal(op_text(pattern.desc(), i) + " exchanges something else between ranks");
    }
  }
}

}  // namespace gpunn::cuda_tiled
