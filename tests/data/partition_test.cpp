#include "data/rows/partition.hpp"

#include <algorithm>
#include <set>

#include "catch.hpp"
#include "fields/values.hpp"

using gpunn::Split;
using gpunn::data::Share;
using gpunn::data::take_share;

namespace {

// Rows of two bytes, the number of the row; class k has counts[k] rows, one class after the other.
Split numbered(const std::vector<int>& counts) {
  Split split;
  std::vector<int32_t> classes;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    classes.insert(classes.end(), static_cast<std::size_t>(counts[k]), static_cast<int32_t>(k));
  }
  split.fields[gpunn::kLabelField] = gpunn::fields::class_values(classes);
  split.samples = {gpunn::DType::u8, {std::ssize(classes), 2}};
  for (std::size_t row = 0; row < classes.size(); ++row) {
    split.values.push_back(static_cast<std::byte>(row / 256));
    split.values.push_back(static_cast<std::byte>(row % 256));
  }
  return split;
}

std::vector<int> numbers_of(const Split& split) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i + 1 < split.values.size(); i += 2) {
    numbers.push_back(256 * std::to_integer<int>(split.values[i]) + std::to_integer<int>(split.values[i + 1]));
  }
  return numbers;
}

std::vector<int> counts_of(const Split& split, std::size_t classes) {
  std::vector<int> counts(classes);
  for (const int32_t label : labels_of(split)) ++counts[static_cast<std::size_t>(label)];
  return counts;
}

Share share(double fraction, int64_t classes, uint64_t seed = 1, bool stratify = true) {
  return {.fraction = fraction, .stratify = stratify, .classes = classes, .seed = seed, .stream = 5};
}

}  // namespace

TEST_CASE("a share has its part of each class, and every row is in one of both") {
  const Split whole = numbered({100, 10, 33, 1});
  Split rest = whole;
  const Split taken = take_share(rest, share(0.2, 4));
  CHECK(counts_of(taken, 4) == std::vector<int>{20, 2, 7, 0});
  CHECK(taken.rows() == 29);  // 0.2 of 144, rounded
  CHECK(rest.rows() == 115);
  CHECK(taken.values.size() == 58);
  CHECK(rest.values.size() == 230);
  std::set<int> all;
  for (const Split* part : {&taken, static_cast<const Split*>(&rest)}) {
    const std::vector<int> numbers = numbers_of(*part);
    CHECK(std::is_sorted(numbers.begin(), numbers.end()));
    CHECK(labels_of(*part).size() == numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      CHECK(labels_of(*part)[i] == labels_of(whole)[static_cast<std::size_t>(numbers[i])]);
    }
    all.insert(numbers.begin(), numbers.end());
  }
  CHECK(all.size() == 144);
}

TEST_CASE("the seed decides what a share has") {
  const auto take = [](uint64_t seed, bool stratify) {
    Split split = numbered({500, 500});
    return numbers_of(take_share(split, share(0.1, 2, seed, stratify)));
  };
  CHECK(take(1, true) == take(1, true));
  CHECK(take(1, true) != take(2, true));
  // Spread over all rows, not the first of them.
  const std::vector<int> some = take(3, false);
  CHECK(some.size() == 100);
  CHECK(some.front() < 100);
  CHECK(some.back() >= 900);
}

TEST_CASE("without classes a share is of all rows alike") {
  Split split = numbered({990, 10});
  const Split taken = take_share(split, share(0.5, 2, 4, false));
  CHECK(taken.rows() == 500);
  CHECK(counts_of(taken, 2)[0] > 480);
}

TEST_CASE("no share leaves everything as it was") {
  Split split = numbered({5, 5});
  const Split taken = take_share(split, share(0, 2));
  CHECK(taken.rows() == 0);
  CHECK(labels_of(taken).empty());
  CHECK(taken.samples.shape == gpunn::Shape{0, 2});
  CHECK(split.rows() == 10);
}
