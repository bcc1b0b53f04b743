// A device with too little memory: the message, and that its numbers are right.
#include "session/memory_check.hpp"

#include <gpunn/error.hpp>
#include <gpunn/training.hpp>

#include <cstdlib>
#include <filesystem>

#include "catch.hpp"
#include "execution/backend.hpp"
#include "session/session.hpp"
#include "training/fixtures.hpp"

using namespace gpunn;
using namespace gpunn::training;
using gpunn::testing::TemporaryFolder;

namespace {

gpunn_device_info device(uint64_t free) {
  gpunn_device_info info{};
  info.struct_size = sizeof(info);
  info.free_bytes = free;
  info.total_bytes = 2000;
  std::string("little").copy(info.name, sizeof(info.name) - 1);
  return info;
}

std::string refusal(const MemoryNeed& need, uint64_t free, const std::function<uint64_t(int64_t)>& arena_of) {
  try {
    require_memory("e.yaml", need, device(free), 64, arena_of);
  } catch (const execution::OutOfMemory& error) {
    CHECK(error.code() == ExitCode::missing);
    return error.what();
  }
  return "";
}

// The device of the sample plugin, as small as is said while the object lives.
class Cramped {
 public:
  explicit Cramped(uint64_t bytes) { ::setenv("GPUNN_TEST_MEMORY", std::to_string(bytes).c_str(), 1); }
  Cramped(const Cramped&) = delete;
  Cramped& operator=(const Cramped&) = delete;
  ~Cramped() { ::unsetenv("GPUNN_TEST_MEMORY"); }
};

Experiment experiment(const TemporaryFolder& folder, int64_t batch) {
  Experiment result =
      testing::small_lenet(folder.path(), {{"data.batch_size", std::to_string(batch)}, {"data.residency", "device"}});
  result.backend = "cramped";
  result.plugins = {std::filesystem::path(GPUNN_TRAINING_SAMPLE_DIR) / "libgpunn_backend_cramped.so"};
  return result;
}

uint64_t held_by_training(const Experiment& wanted) {
  Session session = Session::open(wanted);
  session.train_steps(2);
  session.evaluate();
  return session.backend().allocated_bytes();
}

}  // namespace

TEST_CASE("what fits is not refused", "[memory]") {
  const MemoryNeed need{.arena = 600, .persistent = 300, .data = 100};
  CHECK(refusal(need, 1000, {}).empty());
  CHECK(refusal(need, 0, {}).empty());  // a device that does not tell
  CHECK_THAT(refusal(need, 999, {}), Contains("needs 1000 B") && Contains("999 B of the 2.0 KiB of 'little' are free"));
}

TEST_CASE("the largest batch that fits is the largest", "[memory]") {
  const MemoryNeed need{.arena = 640, .persistent = 300, .data = 100};
  const auto arena_of = [](int64_t batch) { return static_cast<uint64_t>(10 * batch); };
  for (const int64_t fits : {1, 2, 31, 32, 33, 62, 63}) {
    const std::string text = refusal(need, static_cast<uint64_t>(400 + 10 * fits + 9), arena_of);
    CHECK_THAT(text,
               Contains("the largest data.batch_size that fits is " + std::to_string(fits) + ", 64 was asked for"));
  }
  CHECK_THAT(refusal(need, 405, arena_of), Contains("not even a data.batch_size of 1 fits"));
}

TEST_CASE("a training that does not fit says which batch does, and that one trains", "[memory]") {
  const TemporaryFolder folder;
  const uint64_t enough = held_by_training(experiment(folder, 64));
  const Cramped memory(enough);
  CHECK_NOTHROW(held_by_training(experiment(folder, 64)));

  std::string text;
  try {
    held_by_training(experiment(folder, 320));
  } catch (const execution::OutOfMemory& error) {
    text = error.what();
  }
  REQUIRE_THAT(text, Contains("the training needs") && Contains("of 'cramped' are free"));
  const std::string before = "fits is ";
  REQUIRE_THAT(text, Contains(before));
  const int64_t fits = std::stoll(text.substr(text.find(before) + before.size()));
  CHECK(fits >= 64);
  CHECK(fits < 320);
  CHECK_NOTHROW(held_by_training(experiment(folder, fits)));
  CHECK_THROWS_AS(held_by_training(experiment(folder, fits + 1)), execution::OutOfMemory);
}
