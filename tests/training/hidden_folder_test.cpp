#include "runs/hidden_folder.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

#include "catch.hpp"
#include "temporary_folder.hpp"

using gpunn::testing::TemporaryFolder;
using gpunn::training::HiddenFolder;
using gpunn::training::lock_folder;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// Does so in a process that is killed while it holds what `work` returns.
template <class F>
void in_killed_process(F work) {
  const pid_t child = fork();
  if (child == 0) {
    const auto held = work();
    ::raise(SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
}

}  // namespace

TEST_CASE("a folder is hidden until it is published, and stays locked") {
  const TemporaryFolder folder;
  const auto hidden = HiddenFolder::make(folder.path() / "run");
  CHECK(names_in(folder.path()) == std::vector<std::string>{".run.gpunn-new"});
  CHECK(hidden->publish() == folder.path() / "run");
  CHECK(hidden->path() == folder.path() / "run");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"run"});
  CHECK(!lock_folder(folder.path() / "run"));
}

TEST_CASE("a folder that is never published goes, a published one stays") {
  const TemporaryFolder folder;
  { const auto hidden = HiddenFolder::make(folder.path() / "run"); }
  CHECK(names_in(folder.path()).empty());
  HiddenFolder::make(folder.path() / "run")->publish();
  CHECK(names_in(folder.path()) == std::vector<std::string>{"run"});
  CHECK(lock_folder(folder.path() / "run"));
}

TEST_CASE("of two that want one name the second gets a number") {
  const TemporaryFolder folder;
  const auto first = HiddenFolder::make(folder.path() / "run");
  const auto second = HiddenFolder::make(folder.path() / "run");
  CHECK(second->publish().filename() == "run-2");
  CHECK(first->publish().filename() == "run");
  CHECK(HiddenFolder::make(folder.path() / "run")->publish().filename() == "run-3");
}

TEST_CASE("what a killed process left goes with the next folder, what is in use stays") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "race_1");
  in_killed_process([&] {
    const auto left = HiddenFolder::make(folder.path() / "killed");
    std::ofstream(left->path() / "log.txt") << "begun";
    return std::pair(left, HiddenFolder::make_named(folder.path() / "race_1" / "cpu/"));
  });
  fs::create_directories(folder.path() / ".own");
  fs::create_directories(folder.path() / ".own.new");
  std::ofstream(folder.path() / ".file.gpunn-new") << "no folder";
  const auto used = HiddenFolder::make(folder.path() / "used");
  const auto next = HiddenFolder::make(folder.path() / "next");
  CHECK(names_in(folder.path()) == std::vector<std::string>{".file.gpunn-new", ".next.gpunn-new", ".own", ".own.new",
                                                            ".used.gpunn-new", "race_1"});
  CHECK(names_in(folder.path() / "race_1").empty());
  CHECK(used->publish() == folder.path() / "used");
}

TEST_CASE("a name that is given must be free") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "taken");
  CHECK_THROWS_WITH(HiddenFolder::make_named(folder.path() / "taken"), Contains("already exists"));
  in_killed_process([&] { return HiddenFolder::make_named(folder.path() / "run/"); });
  const auto again = HiddenFolder::make_named(folder.path() / "run");
  CHECK_THROWS_WITH(HiddenFolder::make_named(folder.path() / "run"), Contains("another process is about to train"));
  CHECK(again->publish() == folder.path() / "run");
}
