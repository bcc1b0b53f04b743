// What is left of a checkpoint when the writer runs out of disk, or is killed.
#include <gpunn/error.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>

#include <sys/resource.h>
#include <sys/wait.h>

#include "catch.hpp"
#include "checkpoints.hpp"

using namespace storage_test;
using gpunn::storage::load_checkpoint;
using gpunn::storage::save_checkpoint;

namespace {

// Runs `work` in a child process and gives its exit status, 255 where it threw.
template <typename Work>
int in_child(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 255;
    try {
      status = work();
    } catch (...) {
      status = 255;
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 254;
}

Checkpoint large_checkpoint(unsigned seed) {
  Checkpoint result = small_checkpoint(seed);
  result.parameters.push_back(tensor("large", DType::f32, {512, 512}, seed));
  return result;
}

// Until the file holds the checkpoint of another seed: a save is done.
void wait_for_another(const fs::path& file, int64_t seed) {
  for (int tries = 0; tries < 2000; ++tries) {
    if (load_checkpoint(file).counters.at("seed") != seed) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  FAIL("no save was finished in ten seconds");
}

enum Outcome { saved_all = 0, failed_clearly = 1, failed_otherwise = 2, lost_the_old = 3, cannot_recover = 4 };

}  // namespace

TEST_CASE("a full disk leaves the checkpoint before, and the next save works") {
  const Folder folder;
  const fs::path file = folder / "last.h5";
  const Checkpoint before = small_checkpoint(1);
  save_checkpoint(file, before);

  // A file may grow to so many bytes: none, the first part, and all but the last few.
  const auto full = static_cast<rlim_t>(fs::file_size(file) + (1U << 20U));
  const rlim_t limit = GENERATE_COPY(rlim_t{0}, rlim_t{512}, rlim_t{100'000}, full - 100'000);
  const int outcome = in_child([&]() -> int {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit size{};
    ::getrlimit(RLIMIT_FSIZE, &size);
    const rlim_t unlimited = size.rlim_cur;
    size.rlim_cur = limit;
    if (::setrlimit(RLIMIT_FSIZE, &size) != 0) return failed_otherwise;
    try {
      save_checkpoint(file, large_checkpoint(2));
      return saved_all;
    } catch (const gpunn::Error& error) {
      if (std::string(error.what()).find("last.h5") == std::string::npos) return failed_otherwise;
    }
    if (folder.count() != 1 || !same(load_checkpoint(file), before)) return lost_the_old;
    // In the same process, now that there is space again.
    size.rlim_cur = unlimited;
    ::setrlimit(RLIMIT_FSIZE, &size);
    save_checkpoint(file, large_checkpoint(3));
    return same(load_checkpoint(file), large_checkpoint(3)) ? failed_clearly : cannot_recover;
  });
  INFO("limit " << limit);
  CHECK(outcome == failed_clearly);
  CHECK(folder.count() == 1);
  CHECK(same(load_checkpoint(file), large_checkpoint(3)));
}

TEST_CASE("a folder that can't be written in keeps its checkpoint") {
  const Folder folder;
  CHECK_THROWS_WITH(save_checkpoint(folder / "no such folder/last.h5", small_checkpoint()), Contains("last.h5"));
  CHECK(folder.count() == 0);
}

TEST_CASE("SIGKILL at any moment of a save leaves a loadable checkpoint") {
  const Folder folder;
  const fs::path file = folder / "last.h5";
  save_checkpoint(file, large_checkpoint(0));
  std::mt19937 random(20250101);
  std::set<int64_t> seen;
  int64_t loaded_seed = 0;
  for (int round = 0; round < 30; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);  // not to outlive a test that failed
      for (unsigned seed = 1;; ++seed) save_checkpoint(file, large_checkpoint(seed % 5));
    }
    // Every other one is killed in its first save, or before it, the others in a later one.
    if (round % 2 == 1) wait_for_another(file, loaded_seed);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Checkpoint loaded = load_checkpoint(file);
    const int64_t seed = loaded.counters.at("seed");
    loaded_seed = seed;
    seen.insert(seed);
    INFO("round " << round << ", seed " << seed);
    REQUIRE(same(loaded, large_checkpoint(static_cast<unsigned>(seed))));
  }
  CHECK(seen.size() > 1);  // some saves did finish
  save_checkpoint(file, small_checkpoint());
  CHECK(folder.count() == 1);  // what the killed ones left is gone
}

TEST_CASE("temporary files of a living process are not touched") {
  const Folder folder;
  const std::string name = "last.h5.tmp-" + std::to_string(::getppid()) + "-0";
  write_bytes(folder / name, "another process is writing this");
  write_bytes(folder / "last.h5.tmp-notes", "not a temporary file");
  save_checkpoint(folder / "last.h5", small_checkpoint());
  CHECK(fs::exists(folder / name));
  CHECK(fs::exists(folder / "last.h5.tmp-notes"));
}
