#include <gpunn/ops.h>
#include <gpunn/random.h>

#include <cmath>
#include <numbers>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

// The block that holds element i of a tensor of n elements drawn at `counter`.
gpunn_random_words block_of(uint64_t seed, uint64_t stream, double counter, std::size_t n, std::size_t i) {
  const uint64_t first = gpunn_random_block(static_cast<int64_t>(counter), static_cast<int64_t>(n));
  return gpunn_philox(seed, stream, first + i / 4);
}

void random_uniform(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_random_attrs>();
  const double low = attrs.low, high = attrs.high;
  Values& y = call.out();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const gpunn_random_words words = block_of(attrs.seed, attrs.stream, call.in(0).at(0), y.size(), i);
    y[i] = low + gpunn_random_unit(words.word[i % 4]) * (high - low);
  }
}

void random_normal(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_random_attrs>();
  Values& y = call.out();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const gpunn_random_words words = block_of(attrs.seed, attrs.stream, call.in(0).at(0), y.size(), i);
    const std::size_t pair = i % 4 / 2 * 2;
    const double u1 = gpunn_random_positive(words.word[pair]);
    const double u2 = gpunn_random_unit(words.word[pair + 1]);
    const double radius = std::sqrt(-2 * std::log(u1)), angle = 2 * std::numbers::pi * u2;
    const double normal = radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
    y[i] = attrs.low + attrs.high * normal;
  }
}

void random_permutation(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_random_attrs>();
  const auto n = static_cast<uint32_t>(call.out().size());
  const auto counter = static_cast<int64_t>(call.in(0).at(0));
  for (uint32_t i = 0; i < n; ++i) call.out()[i] = gpunn_random_permute(attrs.seed, attrs.stream, counter, n, i);
}

void dropout(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_dropout_attrs>();
  const Values& x = call.in(0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const gpunn_random_words words = block_of(attrs.seed, attrs.stream, call.in(1).at(0), x.size(), i);
    const bool dropped = (words.word[i % 4] >> 8) < gpunn_dropout_threshold(attrs.p);
    call.out()[i] = dropped ? 0 : x[i] / (1 - static_cast<double>(attrs.p));
  }
}

}  // namespace

std::vector<OracleEntry> random_oracle() {
  return {{GPUNN_OP_RANDOM_UNIFORM, random_uniform},
          {GPUNN_OP_RANDOM_NORMAL, random_normal},
          {GPUNN_OP_RANDOM_PERMUTATION, random_permutation},
          {GPUNN_OP_DROPOUT, dropout}};
}

}  // namespace gpunn::conformance
