#include <cmath>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

struct Sizes {
  int64_t samples, queries, keys, heads, width;

  Shape query() const { return {samples, queries, heads, width}; }
  Shape key() const { return {samples, keys, heads, width}; }
};

// Row t of head h of the first sample.
const float* row(const Tensor<float>& x, const Sizes& s, int64_t t, int64_t h) {
  return x.data() + (t * s.heads + h) * s.width;
}

double dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

}  // namespace

TEST_CASE("attention has the same bits at any number of threads, in blocks of any size") {
  const Runner runner(gpunn::cpu::add_attention_kernels);
  constexpr gpunn_attention_attrs attrs{sizeof(gpunn_attention_attrs), 0.25F};
  const Sizes s = GENERATE(Sizes{1, 1, 1, 1, 1}, Sizes{3, 65, 65, 3, 64}, Sizes{2, 300, 130, 1, 7},
                           Sizes{1, 129, 257, 2, 48}, Sizes{2, 5, 7, 2, 2100});
  Random random(5);
  const Tensor<float> q = random.tensor(s.query()), k = random.tensor(s.key()), v = random.tensor(s.key());
  const Tensor<float> dy = random.tensor(s.query());
  Tensor<float> y(s.query()), lse({s.samples, s.heads, s.queries});
  on_each_machine(y, [&] { runner.run(GPUNN_OP_ATTENTION, &attrs, {q, k, v}, {y, lse}); });
  on_each_machine(lse, [&] { runner.run(GPUNN_OP_ATTENTION, &attrs, {q, k, v}, {y, lse}); });

  const int64_t t = s.queries - 1, h = s.heads - 1;
  double sum = 0, mixed = 0;
  for (int64_t j = 0; j < s.keys; ++j) {
    const double weight = std::exp(0.25 * dot(row(q, s, t, h), row(k, s, j, h), s.width));
    sum += weight;
    mixed += weight * static_cast<double>(*row(v, s, j, h));
  }
  CHECK(std::abs(*row(y, s, t, h) - mixed / sum) < 1e-5);
  CHECK(std::abs(lse[h * s.queries + t] - std::log(sum)) < 1e-5 * (1 + std::abs(std::log(sum))));

  Tensor<float> dq(s.query()), dk(s.key()), dv(s.key());
  const auto backward = [&] { runner.run(GPUNN_OP_ATTENTION_BACKWARD, &attrs, {dy, q, k, v, y, lse}, {dq, dk, dv}); };
  on_each_machine(dq, backward);
  on_each_machine(dk, backward);
  on_each_machine(dv, backward);
  // The weights of a query sum to 1, and so dv to dy.
  double of_dv = 0, of_dy = 0;
  for (int64_t j = 0; j < s.keys; ++j) of_dv += static_cast<double>(*row(dv, s, j, h));
  for (int64_t i = 0; i < s.queries; ++i) of_dy += static_cast<double>(*row(dy, s, i, h));
  CHECK(std::abs(of_dv - of_dy) < 1e-4 * (1 + std::abs(of_dy)));
}

TEST_CASE("attention of no queries leaves gradients of 0") {
  const Runner runner(gpunn::cpu::add_attention_kernels);
  constexpr gpunn_attention_attrs attrs{sizeof(gpunn_attention_attrs), 1.0F};
  const Shape none{1, 0, 1, 3}, keys{1, 2, 1, 3};
  const Tensor<float> q(none), k(keys, {1, 2, 3, 4, 5, 6}), lse({1, 1, 0});
  Tensor<float> dq(none), dk(keys), dv(keys);
  runner.run(GPUNN_OP_ATTENTION_BACKWARD, &attrs, {q, q, k, k, q, lse}, {dq, dk, dv});
  CHECK(dk.values() == std::vector<float>(6, 0.0F));
  CHECK(dv.values() == std::vector<float>(6, 0.0F));
}
