#include "distributed/team.hpp"

#include <gpunn/error.hpp>
#include <gpunn/float_formats.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>

#include <sys/socket.h>

#include "catch.hpp"
#include "distributed/ranks_in_threads.hpp"
#include "distributed/sum.hpp"

using namespace gpunn;
using namespace gpunn::distributed;
using namespace gpunn::testing;

namespace {

template <class T>
std::span<std::byte> bytes(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

// On a rank's own thread, where Catch can't count.
void require(bool holds) {
  if (!holds) throw Error("this does not hold");
}

float value_at(int rank, std::size_t i) {
  return static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 31) * 0.1F;
}

}  // namespace

TEST_CASE("ranks add up in their order, to the same bits on each") {
  const int world = GENERATE(2, 3, 5);
  const std::size_t count = GENERATE(0, 1, 7, 100'003);
  std::vector<std::vector<float>> results(static_cast<std::size_t>(world));
  const auto errors = on_ranks(world, [&](Team& team) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = value_at(team.rank(), i);
    team.all_reduce(DType::f32, bytes(values));
    results[static_cast<std::size_t>(team.rank())] = values;
  });
  for (const std::string& error : errors) CHECK(error.empty());
  for (std::size_t i = 0; i < count; ++i) {
    float expected = value_at(0, i);
    for (int r = 1; r < world; ++r) expected += value_at(r, i);
    if (results[0][i] != expected) FAIL("element " << i << ": " << results[0][i] << ", expected " << expected);
  }
  for (const auto& result : results) CHECK(result == results[0]);
}

TEST_CASE("ranks gather and broadcast") {
  const auto errors = on_ranks(3, [](Team& team) {
    std::array<int32_t, 2> mine = {team.rank(), 10 * team.rank()};
    std::vector<int32_t> all(6);
    team.all_gather(std::as_bytes(std::span(mine)), bytes(all));
    require(all == std::vector<int32_t>{0, 0, 1, 10, 2, 20});
    const auto texts = team.gather(std::string(static_cast<std::size_t>(team.rank()) * 1000, 'x'));
    require(texts[0].empty());
    require(texts[2].size() == 2000);
    std::vector<int32_t> told = {team.rank() == 1 ? 42 : 0};
    team.broadcast(bytes(told), 1);
    require(told[0] == 42);
    require(team.any(team.rank() == 2));
    require(!team.any(false));
    require(team.sums({1.0, 2.0 * team.rank()}) == std::vector<double>{3, 6});
    require(team.place().local_rank == team.rank());
    require(team.place().local_world == 3);
  });
  for (const std::string& error : errors) CHECK(error.empty());
}

TEST_CASE("numbers of half precision are added in f32 and rounded once") {
  std::vector<BFloat16> a = {BFloat16(1.0F)}, small = {BFloat16(0.00390625F)}, to = {BFloat16(0.0F)};
  const std::vector<const std::byte*> parts = {bytes(a).data(), bytes(small).data(), bytes(small).data()};
  sum_in_order(DType::bf16, parts, bytes(to));
  CHECK(static_cast<float>(to[0]) == 1.0078125F);  // each of the small ones alone would be rounded away
  CHECK_THROWS_AS(sum_in_order(DType::i32, parts, bytes(to)), Error);
}

TEST_CASE("ranks that do not train the same are refused, with both digests") {
  const auto errors = on_ranks(3, [](Team& team) {
    team.require_equal({{"the experiment", digest_of("a")}, {"the data", digest_of(team.rank() == 2 ? "c" : "b")}});
  });
  for (const std::string& error : errors) {
    CHECK_THAT(error, Contains("the data: " + digest_of("b") + " on rank 0, " + digest_of("c") + " on rank 2"));
    CHECK_THAT(error, !Contains("the experiment:"));
  }
}

TEST_CASE("the last words of a rank that fails end the others") {
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = on_ranks(3, [](Team& team) {
    if (team.rank() == 1) throw Error("the disk is full");
    std::vector<float> values(100'000);
    team.all_reduce(DType::f32, bytes(values));
  });
  CHECK(errors[1] == "the disk is full");
  for (const std::size_t r : {0U, 2U}) CHECK_THAT(errors[r], Contains("rank 1 of 3") && Contains("the disk is full"));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

TEST_CASE("ranks that are elsewhere in their programs are told apart") {
  const auto errors = on_ranks(2, [](Team& team) {
    std::vector<float> values(team.rank() == 0 ? 10 : 11);
    team.all_reduce(DType::f32, bytes(values));
  });
  CHECK_THAT(errors[0] + errors[1], Contains("elsewhere in its program"));
}

TEST_CASE("a port in use, a stranger, and ranks that do not belong together") {
  setenv("GPUNN_RENDEZVOUS_SECONDS", "1", 1);
  const Listener other = Listener::open({"127.0.0.1", 0});
  const std::string used = "127.0.0.1:" + std::to_string(other.port());
  CHECK_THROWS_WITH(Team::join(place_of(0, 2, used)), Contains("in use") && Contains("--rendezvous"));
  CHECK_THROWS_WITH(Team::join(place_of(0, 2, free_rendezvous())), Contains("have not come") && Contains(": 1."));
  CHECK_THROWS_WITH(Team::join(place_of(1, 2, free_rendezvous())), Contains("can't reach"));
  CHECK_THROWS_WITH(Team::join(place_of(0, 2, "nowhere")), Contains("HOST:PORT"));

  setenv("GPUNN_RENDEZVOUS_SECONDS", "5", 1);
  const std::string rendezvous = free_rendezvous();
  std::string stale, twice;
  std::atomic<bool> joined{false};
  const auto join = [&](const RankPlace& place) -> std::string {
    try {
      const auto team = Team::join(place);
      joined = joined || place.rank == 0;
      team->leave();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  std::string of_first, of_second;
  std::thread first([&] { of_first = join(place_of(0, 3, rendezvous)); });
  std::thread second([&] { of_second = join(place_of(1, 3, rendezvous)); });
  {  // a stranger that says something else
    const auto stranger = connect_to(parse_address(rendezvous), Clock::now() + std::chrono::seconds(2));
    REQUIRE(stranger);
    const std::string garbage(400, 'G');
    CHECK(stranger->send_all(std::as_bytes(std::span(garbage)), Clock::now() + std::chrono::seconds(1)));
  }
  RankPlace old = place_of(2, 3, rendezvous);
  old.job = "the run before";
  stale = join(old);
  CHECK_THAT(stale, Contains("the run before") && Contains("refuses"));
  CHECK_THAT(join(place_of(2, 4, rendezvous)), Contains("4 ranks"));
  CHECK_THAT(join(place_of(0, 3, used)), Contains("in use"));
  CHECK_FALSE(joined);
  CHECK(join(place_of(2, 3, rendezvous)).empty());
  first.join();
  second.join();
  CHECK(of_first.empty());
  CHECK(of_second.empty());
  CHECK(joined);
  unsetenv("GPUNN_RENDEZVOUS_SECONDS");
}

TEST_CASE("a sum over numbered parts has the same bits on any number of ranks") {
  const int64_t parts = GENERATE(5, 12);
  const std::size_t count = GENERATE(3, 2048, 10'007);
  std::vector<float> expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (int p = 0; p < parts; ++p) expected[i] = p == 0 ? value_at(p, i) : expected[i] + value_at(p, i);
  }
  for (const int world : {2, 3, 4}) {
    const auto errors = on_ranks(world, [&](Team& team) {
      const Share mine = share_of(parts, team.rank(), team.world());
      std::vector<float> x, y(count);
      for (int64_t p = mine.begin; p < mine.end; ++p) {
        for (std::size_t i = 0; i < count; ++i) x.push_back(value_at(static_cast<int>(p), i));
      }
      team.all_reduce_parts(DType::f32, bytes(x), bytes(y), parts);
      require(y == expected);
    });
    for (const std::string& error : errors) CHECK(error.empty());
  }
}
