// Predictions of one session, however many rows each call brings.
#include <span>

#include "catch.hpp"
#include "temporary_folder.hpp"
#include "training/fixtures.hpp"
#include "training/session.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

Split first_rows(const Split& of, int64_t rows) {
  Split split;
  split.samples = of.samples;
  split.samples.shape[0] = rows;
  const auto bytes = static_cast<std::ptrdiff_t>(split.samples.bytes());
  split.values.assign(of.values.begin(), of.values.begin() + bytes);
  split.labels.assign(of.labels.begin(), of.labels.begin() + rows);
  return split;
}

}  // namespace

TEST_CASE("a session predicts as many rows as each call brings, and asks for memory once") {
  const TemporaryFolder folder;
  training::Session session = training::Session::open(small_mlp(folder.path(), {{"data.residency", "stream"}}));
  const Split& test = session.dataset().test;
  const std::vector<float> three = session.predictions(first_rows(test, 3));
  const std::vector<float> many = session.predictions(first_rows(test, 130));
  REQUIRE(three.size() == 3 * 10);
  REQUIRE(many.size() == 130 * 10);
  for (std::size_t i = 0; i < three.size(); ++i) CHECK(three[i] == Approx(many[i]).epsilon(1e-5));
  for (std::size_t row = 0; row < 130; ++row) {
    float sum = 0;
    for (std::size_t i = 0; i < 10; ++i) sum += many[row * 10 + i];
    CHECK(sum == Approx(1).epsilon(1e-5));
  }
  const int64_t allocations = session.backend().allocations();
  CHECK(session.predictions(first_rows(test, 3)) == three);
  CHECK(session.predictions(first_rows(test, 130)) == many);
  CHECK(session.backend().allocations() == allocations);
}
