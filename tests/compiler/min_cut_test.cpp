#include "compiler/min_cut.hpp"

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "catch.hpp"

using gpunn::compiler::MinCut;

namespace {

struct Problem {
  std::vector<std::array<MinCut::Cost, 2>> unary;  // clear, set
  std::vector<std::vector<MinCut::Cost>> difference;

  MinCut::Cost cost(const std::vector<bool>& set) const {
    MinCut::Cost sum = 0;
    for (std::size_t i = 0; i < unary.size(); ++i) {
      sum += unary[i][set[i] ? 1 : 0];
      for (std::size_t j = 0; j < unary.size(); ++j) sum += set[i] && !set[j] ? difference[i][j] : 0;
    }
    return sum;
  }
};

}  // namespace

TEST_CASE("a minimum cut costs what the best of all choices does, and sets no more than it has to",
          "[compiler][min_cut]") {
  std::mt19937 random(1);
  std::uniform_int_distribution<MinCut::Cost> costs(0, 9);
  constexpr std::size_t kItems = 8;
  for (int round = 0; round < 300; ++round) {
    Problem problem;
    MinCut cut;
    for (std::size_t i = 0; i < kItems; ++i) {
      problem.unary.push_back({costs(random), costs(random)});
      CHECK(cut.add(problem.unary[i][1], problem.unary[i][0]) == i);
    }
    problem.difference.assign(kItems, std::vector<MinCut::Cost>(kItems));
    for (std::size_t i = 0; i < kItems; ++i) {
      for (std::size_t j = 0; j < kItems; ++j) {
        if (i == j || random() % 3 != 0) continue;
        problem.difference[i][j] = random() % 8 == 0 ? MinCut::kNever : costs(random) / 2;
        cut.add_difference(i, j, problem.difference[i][j]);
      }
    }
    const std::vector<bool> found = cut.solve();
    const MinCut::Cost least = problem.cost(found);
    for (uint32_t bits = 0; bits < 1U << kItems; ++bits) {
      std::vector<bool> set(kItems);
      for (std::size_t i = 0; i < kItems; ++i) set[i] = (bits >> i & 1U) != 0;
      const MinCut::Cost cost = problem.cost(set);
      INFO("round " << round << ", choice " << bits);
      REQUIRE(cost >= least);
      // The choice that sets the fewest is part of every other that costs as much.
      if (cost == least) {
        for (std::size_t i = 0; i < kItems; ++i) REQUIRE((set[i] || !found[i]));
      }
    }
  }
}
