// Divisions by a multiplication: what the host works out for them, against what the GPU then does with it.
#include "divider.cuh"

#include <cstdint>
#include <random>

#include "catch.hpp"

namespace {

using gpunn::cuda_tiled::Divider;
using gpunn::cuda_tiled::Divisor;

uint32_t quotient(const Divider& by, uint32_t n) {
  const Divider::Result result = by(static_cast<int>(n));
  REQUIRE(static_cast<uint32_t>(result.quotient) * by.by + static_cast<uint32_t>(result.rest) == n);
  return static_cast<uint32_t>(result.quotient);
}

// As divide() of subgraphs/step/shared.cuh.
uint32_t quotient(const Divisor& by, uint32_t n) { return gpunn::cuda_tiled::high_word(n, by.magic) + (n & by.whole); }

// Around the multiples of d, where a quotient that is off by one shows, at the beginning, the end and in between.
template <class By>
bool divides(const By& by, uint32_t d, uint32_t most, std::mt19937& random) {
  const auto right = [&](uint64_t n) { return n > most || quotient(by, static_cast<uint32_t>(n)) == n / d; };
  bool all = right(0) && right(most) && right(most - 1);
  const uint32_t last = most / d;
  for (int i = 0; i < 16; ++i) {
    const uint64_t multiple =
        uint64_t{i < 2 ? last - static_cast<uint32_t>(i) % (last + 1) : random() % (last + 1)} * d;
    all = all && right(multiple) && right(multiple + 1) && right(multiple + d - 1) &&
          (multiple == 0 || right(multiple - 1));
  }
  return all;
}

}  // namespace

TEST_CASE("Divider divides all numbers below 2^31") {
  constexpr uint32_t kMost = 0x7FFFFFFFU;
  std::mt19937 random(1);
  bool right = true;
  for (uint32_t d = 1; d <= 5000; ++d) right = right && divides(Divider(d), d, kMost, random);
  for (int i = 0; i < 5000; ++i) {
    const uint32_t d = 1 + random() % kMost;
    right = right && divides(Divider(d), d, kMost, random);
  }
  for (const uint32_t d : {kMost, kMost - 1, 1U << 30U, (1U << 30U) + 1, (1U << 30U) - 1}) {
    right = right && divides(Divider(d), d, kMost, random);
  }
  CHECK(right);
}

TEST_CASE("Divisor divides all numbers below 2^16") {
  constexpr uint32_t kMost = 0xFFFFU;
  std::mt19937 random(1);
  bool right = true;
  for (uint32_t d = 1; d <= kMost; ++d) right = right && divides(Divisor(static_cast<int>(d)), d, kMost, random);
  CHECK(right);
}
