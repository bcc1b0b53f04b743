#include "simd/random.hpp"

#include <gpunn/random.h>

#include <cmath>
#include <numbers>

#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& random_runner() {
  static const Runner made(gpunn::cpu::add_random_kernels);
  return made;
}

const gpunn::cpu::RandomKernels& random_kernels() { return GPUNN_SELECT_ISA(random_kernels); }

constexpr uint64_t kSeed = 0x0123456789abcdefULL;
constexpr uint64_t kStream = 0xfedcba9876543210ULL;

gpunn_random_attrs attrs_of(const Shape& shape, float low, float high) {
  gpunn_random_attrs attrs{};
  attrs.struct_size = sizeof(attrs);
  attrs.rank = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), attrs.dim);
  attrs.seed = kSeed;
  attrs.stream = kStream;
  attrs.low = low;
  attrs.high = high;
  return attrs;
}

// Word i of a tensor of n elements drawn at counter c, straight from the header's words.
uint32_t word_of(int64_t c, int64_t n, int64_t i) {
  const uint64_t block = static_cast<uint64_t>(c) * ((static_cast<uint64_t>(n) + 3) / 4) + static_cast<uint64_t>(i / 4);
  return gpunn_philox(kSeed, kStream, block).word[i % 4];
}

const Shape kShapes[] = {{}, {1}, {5}, {63}, {64}, {2047}, {2049}, {3, 7, 11}, {70001}, {0}};

}  // namespace

TEST_CASE("Philox4x32-10 gives the published words") {
  // Random123's known answers: counter, key, words.
  struct Known {
    uint32_t counter[4];
    uint32_t key[2];
    uint32_t words[4];
  };
  const Known known[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                         {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                          {0xffffffff, 0xffffffff},
                          {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                         {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                          {0xa4093822, 0x299f31d0},
                          {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  const auto join = [](uint32_t low, uint32_t high) { return (static_cast<uint64_t>(high) << 32) | low; };
  Tensor<uint8_t> found({16});
  for (const Known& k : known) {
    on_each_machine(found, [&] {
      uint32_t words[4];
      random_kernels().words(join(k.key[0], k.key[1]), join(k.counter[2], k.counter[3]),
                             join(k.counter[0], k.counter[1]), words, 4);
      CHECK(std::equal(words, words + 4, k.words));
      std::memcpy(found.data(), words, 16);
    });
    const auto one =
        gpunn_philox(join(k.key[0], k.key[1]), join(k.counter[2], k.counter[3]), join(k.counter[0], k.counter[1]));
    CHECK(std::equal(one.word, one.word + 4, k.words));
  }
}

TEST_CASE("the words of many blocks are those of each, also where the block number carries") {
  Tensor<int32_t> found({1001});
  const uint64_t first = (uint64_t{1} << 32) - 100;
  on_each_machine(found, [&] {
    random_kernels().words(kSeed, kStream, first, reinterpret_cast<uint32_t*>(found.data()), found.size());
    bool right = true;
    for (int64_t i = 0; i < found.size(); ++i) {
      const auto block = gpunn_philox(kSeed, kStream, first + static_cast<uint64_t>(i / 4));
      right = right && static_cast<uint32_t>(found[i]) == block.word[i % 4];
    }
    CHECK(right);
  });
}

TEST_CASE("uniform numbers are random.h's, bit for bit") {
  for (const Shape& shape : kShapes) {
    for (const int64_t c : {int64_t{0}, int64_t{3}, int64_t{1} << 40}) {
      const auto attrs = attrs_of(shape, -0.3F, 0.7F);
      Tensor<float> y(shape);
      on_each_machine(y, [&] {
        random_runner().run(GPUNN_OP_RANDOM_UNIFORM, &attrs, {counter(c)}, {y});
        bool right = true;
        for (int64_t i = 0; i < y.size(); ++i) {
          const float product = gpunn_random_unit(word_of(c, y.size(), i)) * (0.7F - -0.3F);
          right = right && y[i] == -0.3F + product;
        }
        CHECK(right);
      });
    }
  }
}

TEST_CASE("normal numbers are pairs of Box and Muller") {
  for (const Shape& shape : kShapes) {
    const auto attrs = attrs_of(shape, 2.0F, 0.5F);
    Tensor<float> y(shape);
    on_each_machine(y, [&] {
      random_runner().run(GPUNN_OP_RANDOM_NORMAL, &attrs, {counter(9)}, {y});
      double worst = 0.0;
      for (int64_t i = 0; i < y.size(); ++i) {
        const auto u1 = static_cast<double>(gpunn_random_positive(word_of(9, y.size(), i / 2 * 2)));
        const auto u2 = static_cast<double>(gpunn_random_unit(word_of(9, y.size(), i / 2 * 2 + 1)));
        const double angle = 2.0 * std::numbers::pi * u2;
        const double z = std::sqrt(-2.0 * std::log(u1)) * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
        worst = std::max(worst, std::abs(static_cast<double>(y[i]) - (2.0 + 0.5 * z)));
      }
      CHECK(worst < 4e-7);
    });
  }
  Tensor<float> many({1000000});
  const auto attrs = attrs_of(many.shape(), 0.0F, 1.0F);
  random_runner().run(GPUNN_OP_RANDOM_NORMAL, &attrs, {counter(1)}, {many});
  double sum = 0.0;
  double squares = 0.0;
  int64_t beyond = 0;
  for (const float z : many) {
    sum += static_cast<double>(z);
    squares += static_cast<double>(z) * static_cast<double>(z);
    beyond += std::abs(z) > 1.959964F ? 1 : 0;
  }
  CHECK(std::abs(sum / 1e6) < 4e-3);
  CHECK(std::abs(squares / 1e6 - 1.0) < 6e-3);
  CHECK(std::abs(static_cast<double>(beyond) / 1e6 - 0.05) < 1e-3);
}

TEST_CASE("a permutation is one, and random.h's") {
  const int64_t n = GENERATE(0, 1, 2, 3, 4, 5, 31, 64, 65, 1000, 4097, 60000);
  const auto attrs = attrs_of({n}, 0, 0);
  Tensor<int32_t> y({n});
  on_each_machine(y, [&] {
    random_runner().run(GPUNN_OP_RANDOM_PERMUTATION, &attrs, {counter(4)}, {y});
    std::vector<int> seen(static_cast<std::size_t>(n), 0);
    bool right = true;
    for (int64_t i = 0; i < n; ++i) {
      REQUIRE(y[i] >= 0);
      REQUIRE(y[i] < n);
      ++seen[static_cast<std::size_t>(y[i])];
      if (i % 37 == 0 || n < 100) {
        right =
            right && static_cast<uint32_t>(y[i]) ==
                         gpunn_random_permute(kSeed, kStream, 4, static_cast<uint32_t>(n), static_cast<uint32_t>(i));
      }
    }
    CHECK(right);
    CHECK(std::count(seen.begin(), seen.end(), 1) == n);
  });
}

TEST_CASE("every place of a permutation is about equally likely") {
  // chi-squared over n x n cells of 20000 permutations; (n-1)^2 degrees of freedom.
  for (const int64_t n : {3, 7, 10}) {
    const auto attrs = attrs_of({n}, 0, 0);
    std::vector<double> cells(static_cast<std::size_t>(n * n), 0.0);
    constexpr int kDraws = 20000;
    Tensor<int32_t> y({n});
    for (int c = 0; c < kDraws; ++c) {
      random_kernels().permute(kSeed, kStream, c, static_cast<uint32_t>(n), 0, y.data(), n);
      for (int64_t i = 0; i < n; ++i) ++cells[static_cast<std::size_t>(i * n + y[i])];
    }
    const double expected = static_cast<double>(kDraws) / static_cast<double>(n);
    double chi = 0.0;
    for (const double cell : cells) chi += (cell - expected) * (cell - expected) / expected;
    const auto freedom = static_cast<double>((n - 1) * (n - 1));
    INFO("n " << n << " chi-squared " << chi);
    CHECK(chi < freedom + 5.0 * std::sqrt(2.0 * freedom));
    random_runner().run(GPUNN_OP_RANDOM_PERMUTATION, &attrs, {counter(0)}, {y});
  }
}

TEST_CASE("dropout keeps exactly the elements that random.h names") {
  Random random(91);
  for (const Shape& shape : kShapes) {
    const Tensor<float> x = random.tensor(shape);
    for (const float p : {0.0F, 0.25F, 0.999F}) {
      const gpunn_dropout_attrs attrs{sizeof(attrs), p, kSeed, kStream};
      Tensor<float> y(shape);
      on_each_machine(y, [&] {
        random_runner().run(GPUNN_OP_DROPOUT, &attrs, {x, counter(6)}, {y});
        bool right = true;
        for (int64_t i = 0; i < x.size(); ++i) {
          const bool dropped = word_of(6, x.size(), i) >> 8 < gpunn_dropout_threshold(p);
          right = right && y[i] == (dropped ? 0.0F : x[i] * (1.0F / (1.0F - p)));
        }
        CHECK(right);
      });
      Tensor<float> in_place(x);
      random_runner().run(GPUNN_OP_DROPOUT, &attrs, {in_place, counter(6)}, {in_place});
      CHECK(same_bits(in_place, y));
    }
  }
}

TEST_CASE("random ops refuse attributes out of range") {
  const Tensor<float> x({4});
  Tensor<float> y({4});
  Tensor<int32_t> places({2, 2});
  const Tensor<int64_t> c({});
  for (const float p : {1.0F, -0.1F, std::nanf("")}) {
    const gpunn_dropout_attrs attrs{sizeof(attrs), p, 0, 0};
    CHECK_THAT(random_runner().refusal(GPUNN_OP_DROPOUT, &attrs, {x, c}, {y}), Contains("must be in [0, 1)"));
  }
  const auto other = attrs_of({5}, 0, 1);
  CHECK_THAT(random_runner().refusal(GPUNN_OP_RANDOM_UNIFORM, &other, {c}, {y}), Contains("y must be"));
  const auto infinite = attrs_of({4}, 0, INFINITY);
  CHECK_THAT(random_runner().refusal(GPUNN_OP_RANDOM_NORMAL, &infinite, {c}, {y}), Contains("finite"));
  const auto square = attrs_of({2, 2}, 0, 0);
  CHECK_THAT(random_runner().refusal(GPUNN_OP_RANDOM_PERMUTATION, &square, {c}, {places}), Contains("one dimension"));
  const Shape vast{int64_t{1} << 32};
  const auto many = attrs_of(vast, 0, 0);
  CHECK_THAT(random_runner().refusal(GPUNN_OP_RANDOM_PERMUTATION, &many, {c}, {View(GPUNN_I32, vast)}),
             Contains("2^31"));
  CHECK_THAT(random_runner().refusal(GPUNN_OP_RANDOM_UNIFORM, &other, {x}, {View(GPUNN_F32, {5})}),
             Contains("counter"));
}
