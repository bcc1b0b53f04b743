#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& optimizer_runner() {
  static const Runner made(gpunn::cpu::add_optimizer_kernels);
  return made;
}

constexpr float kLr = 0.05F;
constexpr int kSteps = 5;
const Shape kSizes[] = {{1}, {17}, {0}, {40000}};

// Parameters, their states and as many gradients as there are steps, on both sides.
struct Problem {
  explicit Problem(const Shape& shape) : w(shape), state1(shape), state2(shape) {
    Random random(81);
    for (float& value : w) value = random.number();
    std::fill(state1.begin(), state1.end(), 0.0F);
    std::fill(state2.begin(), state2.end(), 0.0F);
    for (int i = 0; i < kSteps; ++i) gradients.push_back(random.tensor(shape));
  }
  int64_t n() const { return w.size(); }

  Tensor<float> w;
  Tensor<float> state1;
  Tensor<float> state2;
  std::vector<Tensor<float>> gradients;
  Tensor<float> lr{{}, {kLr}};
};

// f64 parameters and states, updated by rule(w, g, state1, state2, decays, step).
template <class Rule>
std::vector<double> exact(const Problem& start, int64_t decayed, const Rule& rule) {
  std::vector<double> result;
  for (int64_t i = 0; i < start.n(); ++i) {
    auto w = static_cast<double>(start.w[i]);
    double state1 = 0.0;
    double state2 = 0.0;
    for (int step = 0; step < kSteps; ++step) {
      rule(w, static_cast<double>(start.gradients[static_cast<std::size_t>(step)][i]), state1, state2, i < decayed,
           step);
    }
    result.push_back(w);
  }
  return result;
}

// Runs all steps from the start on each machine, and compares the last parameters.
template <class Step>
void check(const Problem& start, const std::vector<double>& expected, const Step& step) {
  Tensor<float> result(start.w);
  on_each_machine(result, [&] {
    Problem now(start);
    for (int i = 0; i < kSteps; ++i) step(now, now.gradients[static_cast<std::size_t>(i)], i);
    std::copy(now.w.begin(), now.w.end(), result.begin());
    CHECK(now.w.intact());
    CHECK(now.state1.intact());
    CHECK(now.state2.intact());
    CHECK(worst_error(now.w, expected) < 2e-6);
  });
}

double wide(float value) { return static_cast<double>(value); }

}  // namespace

TEST_CASE("SGD with momentum, Nesterov and weight decay of the first elements") {
  for (const Shape& shape : kSizes) {
    const Problem start(shape);
    for (const float momentum : {0.0F, 0.9F}) {
      for (const int32_t nesterov : {0, 1}) {
        const int64_t decayed = start.n() - start.n() / 3;
        const gpunn_sgd_attrs attrs{sizeof(attrs), momentum, 0.1F, nesterov, decayed};
        const auto expected =
            exact(start, decayed, [&](double& w, double g, double& velocity, double&, bool decays, int) {
              g += decays ? wide(0.1F) * w : 0.0;
              velocity = wide(momentum) * velocity + g;
              w -= wide(kLr) * (nesterov != 0 ? g + wide(momentum) * velocity : velocity);
            });
        check(start, expected, [&](Problem& now, const Tensor<float>& g, int) {
          if (momentum == 0.0F) {
            optimizer_runner().run(GPUNN_OP_SGD_UPDATE, &attrs, {now.w, g, now.lr}, {now.w});
          } else {
            optimizer_runner().run(GPUNN_OP_SGD_UPDATE, &attrs, {now.w, g, now.lr, now.state1}, {now.w, now.state1});
          }
        });
      }
    }
  }
}

TEST_CASE("Adam and AdamW") {
  for (const Shape& shape : kSizes) {
    const Problem start(shape);
    for (const int32_t decoupled : {0, 1}) {
      const int64_t decayed = start.n() / 2;
      const gpunn_adam_attrs attrs{sizeof(attrs), 0.9F, 0.999F, 1e-8F, 0.1F, decoupled, decayed};
      const auto expected =
          exact(start, decayed, [&](double& w, double g, double& m, double& v, bool decays, int step) {
            if (decays && decoupled != 0) w *= 1.0 - wide(kLr) * wide(0.1F);
            if (decays && decoupled == 0) g += wide(0.1F) * w;
            m = wide(0.9F) * m + (1.0 - wide(0.9F)) * g;
            v = wide(0.999F) * v + (1.0 - wide(0.999F)) * g * g;
            const double m_hat = m / (1.0 - std::pow(wide(0.9F), step + 1));
            const double v_hat = v / (1.0 - std::pow(wide(0.999F), step + 1));
            w -= wide(kLr) * m_hat / (std::sqrt(v_hat) + wide(1e-8F));
          });
      check(start, expected, [&](Problem& now, const Tensor<float>& g, int i) {
        const Tensor<int64_t> step({}, {i});
        optimizer_runner().run(GPUNN_OP_ADAM_UPDATE, &attrs, {now.w, g, now.lr, step, now.state1, now.state2},
                               {now.w, now.state1, now.state2});
      });
    }
  }
}

TEST_CASE("RMSprop with and without momentum") {
  for (const Shape& shape : kSizes) {
    const Problem start(shape);
    for (const float momentum : {0.0F, 0.8F}) {
      const int64_t decayed = start.n();
      const gpunn_rmsprop_attrs attrs{sizeof(attrs), 0.95F, 1e-6F, momentum, 0.01F, 0, decayed};
      const auto expected =
          exact(start, decayed, [&](double& w, double g, double& square, double& velocity, bool decays, int) {
            g += decays ? wide(0.01F) * w : 0.0;
            square = wide(0.95F) * square + (1.0 - wide(0.95F)) * g * g;
            const double u = g / (std::sqrt(square) + wide(1e-6F));
            velocity = wide(momentum) * velocity + u;
            w -= wide(kLr) * velocity;
          });
      check(start, expected, [&](Problem& now, const Tensor<float>& g, int) {
        if (momentum == 0.0F) {
          optimizer_runner().run(GPUNN_OP_RMSPROP_UPDATE, &attrs, {now.w, g, now.lr, now.state1}, {now.w, now.state1});
        } else {
          optimizer_runner().run(GPUNN_OP_RMSPROP_UPDATE, &attrs, {now.w, g, now.lr, now.state1, now.state2},
                                 {now.w, now.state1, now.state2});
        }
      });
    }
  }
}

TEST_CASE("Adagrad") {
  for (const Shape& shape : kSizes) {
    const Problem start(shape);
    const int64_t decayed = start.n() / 2;
    const gpunn_adagrad_attrs attrs{sizeof(attrs), 1e-6F, 0.1F, 0, decayed};
    const auto expected = exact(start, decayed, [&](double& w, double g, double& sum, double&, bool decays, int) {
      g += decays ? wide(0.1F) * w : 0.0;
      sum += g * g;
      w -= wide(kLr) * g / (std::sqrt(sum) + wide(1e-6F));
    });
    check(start, expected, [&](Problem& now, const Tensor<float>& g, int) {
      optimizer_runner().run(GPUNN_OP_ADAGRAD_UPDATE, &attrs, {now.w, g, now.lr, now.state1}, {now.w, now.state1});
    });
  }
}

TEST_CASE("Lion") {
  for (const Shape& shape : kSizes) {
    const Problem start(shape);
    const int64_t decayed = start.n() / 2;
    const gpunn_lion_attrs attrs{sizeof(attrs), 0.9F, 0.99F, 0.1F, decayed};
    const auto expected = exact(start, decayed, [&](double& w, double g, double& m, double&, bool decays, int) {
      const double mixed = wide(0.9F) * m + (1.0 - wide(0.9F)) * g;
      w = (decays ? 1.0 - wide(kLr) * wide(0.1F) : 1.0) * w - wide(kLr) * (mixed > 0.0 ? 1.0 : -1.0);
      m = wide(0.99F) * m + (1.0 - wide(0.99F)) * g;
    });
    check(start, expected, [&](Problem& now, const Tensor<float>& g, int) {
      optimizer_runner().run(GPUNN_OP_LION_UPDATE, &attrs, {now.w, g, now.lr, now.state1}, {now.w, now.state1});
    });
  }
}

TEST_CASE("LARS by parts, whose offsets are kept within the vectors") {
  for (const Shape& shape : kSizes) {
    const Problem start(shape);
    const int64_t n = start.n(), decayed = n - n / 3;
    const gpunn_lars_attrs attrs{sizeof(attrs), 0.9F, 0.1F, 0.05F, 1e-6F, 0, decayed};
    const Tensor<int64_t> offset({4}, {-5, n / 3, decayed, n + 1000000});
    const int64_t bounds[] = {0, n / 3, decayed, n};
    std::vector<double> expected, velocity(static_cast<std::size_t>(n), 0.0);
    for (int64_t i = 0; i < n; ++i) expected.push_back(wide(start.w[i]));
    for (const Tensor<float>& g : start.gradients) {
      for (int part = 0; part < 3; ++part) {
        double w_sum = 0.0, g_sum = 0.0;
        for (int64_t i = bounds[part]; i < bounds[part + 1]; ++i) {
          w_sum += expected[static_cast<std::size_t>(i)] * expected[static_cast<std::size_t>(i)];
          g_sum += wide(g[i]) * wide(g[i]);
        }
        const double norm = std::sqrt(w_sum);
        const double rate = part == 2
                                ? wide(kLr)
                                : wide(kLr) * wide(0.05F) * norm / (std::sqrt(g_sum) + wide(0.1F) * norm + wide(1e-6F));
        for (int64_t at = bounds[part]; at < bounds[part + 1]; ++at) {
          const auto i = static_cast<std::size_t>(at);
          const double decay = at < decayed ? wide(0.1F) : 0.0;
          velocity[i] = wide(0.9F) * velocity[i] + rate * (wide(g[at]) + decay * expected[i]);
          expected[i] -= velocity[i];
        }
      }
    }
    check(start, expected, [&](Problem& now, const Tensor<float>& g, int) {
      optimizer_runner().run(GPUNN_OP_LARS_UPDATE, &attrs, {now.w, g, now.lr, now.state1, offset}, {now.w, now.state1});
    });
  }
}

TEST_CASE("L-BFGS goes to the bottom of a bowl in few steps") {
  const Runner runner(gpunn::cpu::add_lbfgs_kernels);
  const Shape shape = {40000}, pairs = {3, 40000};
  const gpunn_lbfgs_attrs attrs{sizeof(attrs), 0.5F, 10000};
  const Problem start(shape);
  const Tensor<float> lr({}, {1.0F});
  Tensor<float> result(shape);
  on_each_machine(result, [&] {
    Problem now(start);
    Tensor<float> steps(pairs), changes(pairs), gradient(shape);
    std::fill(steps.begin(), steps.end(), 0.0F);
    std::fill(changes.begin(), changes.end(), 0.0F);
    // The slopes of the bowl are 1, 1.5 and 2 with the decay.
    for (int64_t step = 0; step < 12; ++step) {
      for (int64_t i = 0; i < now.n(); ++i) gradient[i] = (i < 20000 ? 1.0F : 2.0F) * now.w[i];
      runner.run(GPUNN_OP_LBFGS_UPDATE, &attrs,
                 {now.w, gradient, lr, counter(step), now.state1, now.state2, steps, changes},
                 {now.w, now.state1, now.state2, steps, changes});
    }
    std::copy(now.w.begin(), now.w.end(), result.begin());
    CHECK(now.state1.intact());
    CHECK(now.state2.intact());
    CHECK(steps.intact());
    CHECK(changes.intact());
  });
  double farthest = 0;
  for (const float w : result) farthest = std::max(farthest, std::abs(wide(w)));
  CHECK(farthest < 1e-4);
}

TEST_CASE("optimizers refuse attributes out of range") {
  Problem p({4});
  const Tensor<float>& g = p.gradients[0];
  const auto sgd = [&](gpunn_sgd_attrs attrs, bool velocity) {
    return velocity ? optimizer_runner().refusal(GPUNN_OP_SGD_UPDATE, &attrs, {p.w, g, p.lr, p.state1}, {p.w, p.state1})
                    : optimizer_runner().refusal(GPUNN_OP_SGD_UPDATE, &attrs, {p.w, g, p.lr}, {p.w});
  };
  const uint32_t size = sizeof(gpunn_sgd_attrs);
  CHECK(sgd({size, 0.0F, 0.0F, 0, 4}, false).empty());
  CHECK_THAT(sgd({size, 0.0F, 0.0F, 0, 4}, true), Contains("a velocity goes with a momentum"));
  CHECK_THAT(sgd({size, 0.9F, 0.0F, 0, 4}, false), Contains("a velocity goes with a momentum"));
  CHECK_THAT(sgd({size, -0.9F, 0.0F, 0, 4}, true), Contains("momentum"));
  CHECK_THAT(sgd({size, std::nanf(""), 0.0F, 0, 4}, true), Contains("momentum"));
  CHECK_THAT(sgd({size, 0.0F, INFINITY, 0, 4}, false), Contains("weight_decay"));
  CHECK_THAT(sgd({size, 0.0F, 0.0F, 0, 5}, false), Contains("decayed"));
  CHECK_THAT(sgd({size, 0.0F, 0.0F, 0, -1}, false), Contains("decayed"));
  const Tensor<int64_t> step({}, {0});
  const auto adam = [&](float beta1, float beta2, float epsilon) {
    const gpunn_adam_attrs attrs{sizeof(attrs), beta1, beta2, epsilon, 0.0F, 0, 0};
    return optimizer_runner().refusal(GPUNN_OP_ADAM_UPDATE, &attrs, {p.w, g, p.lr, step, p.state1, p.state2},
                                      {p.w, p.state1, p.state2});
  };
  CHECK(adam(0.9F, 0.999F, 1e-8F).empty());
  CHECK_THAT(adam(1.0F, 0.999F, 1e-8F), Contains("beta1"));
  CHECK_THAT(adam(0.9F, std::nanf(""), 1e-8F), Contains("beta2"));
  CHECK_THAT(adam(0.9F, 0.999F, -1.0F), Contains("epsilon"));
  const gpunn_rmsprop_attrs rmsprop{sizeof(rmsprop), 1.5F, 0.0F, 0.0F, 0.0F, 0, 0};
  CHECK_THAT(optimizer_runner().refusal(GPUNN_OP_RMSPROP_UPDATE, &rmsprop, {p.w, g, p.lr, p.state1}, {p.w, p.state1}),
             Contains("alpha"));
  const gpunn_adagrad_attrs adagrad{sizeof(adagrad), -1.0F, 0.0F, 0, 0};
  CHECK_THAT(optimizer_runner().refusal(GPUNN_OP_ADAGRAD_UPDATE, &adagrad, {p.w, g, p.lr, p.state1}, {p.w, p.state1}),
             Contains("epsilon"));
  const gpunn_lion_attrs lion{sizeof(lion), 0.9F, 1.0F, 0.0F, 0};
  CHECK_THAT(optimizer_runner().refusal(GPUNN_OP_LION_UPDATE, &lion, {p.w, g, p.lr, p.state1}, {p.w, p.state1}),
             Contains("beta2"));
  const gpunn_lars_attrs lars{sizeof(lars), 0.9F, 0.0F, INFINITY, 0.0F, 0, 0};
  const Tensor<int64_t> offset({2}, {0, 4}), none({0}, {});
  CHECK_THAT(optimizer_runner().refusal(GPUNN_OP_LARS_UPDATE, &lars, {p.w, g, p.lr, p.state1, offset}, {p.w, p.state1}),
             Contains("trust"));
  const gpunn_lars_attrs sound{sizeof(sound), 0.9F, 0.0F, 1.0F, 0.0F, 0, 0};
  CHECK_THAT(optimizer_runner().refusal(GPUNN_OP_LARS_UPDATE, &sound, {p.w, g, p.lr, p.state1, none}, {p.w, p.state1}),
             Contains("P must not be 0"));
}
