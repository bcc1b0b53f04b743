#include "common/host_memory.hpp"

#include <gpunn/error.hpp>

#include <fstream>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catch.hpp"
#include "temporary_folder.hpp"

using namespace gpunn;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("a control group's limit counts, and those around it") {
  const gpunn::testing::TemporaryFolder root;
  CHECK(free_in_group(root.path(), "0::/job/step\n") == UINT64_MAX);
  write(root / "job" / "memory.max", "max\n");
  write(root / "job" / "memory.current", "70\n");
  CHECK(free_in_group(root.path(), "0::/job/step\n") == UINT64_MAX);
  write(root / "job" / "memory.max", "100\n");
  CHECK(free_in_group(root.path(), "0::/job/step\n") == 30);
  write(root / "job" / "memory.stat", "anon 50\ninactive_file 15\n");
  CHECK(free_in_group(root.path(), "0::/job/step\n") == 45);
  write(root / "job" / "step" / "memory.max", "10\n");
  write(root / "job" / "step" / "memory.current", "12\n");
  CHECK(free_in_group(root.path(), "0::/job/step\n") == 0);
  CHECK(free_in_group(root.path(), "0::/job\n") == 45);
  CHECK(free_in_group(root.path(), "nonsense\n1:cpu:/job\n") == UINT64_MAX);
}

TEST_CASE("a container's group is the root, whatever the host calls it") {
  const gpunn::testing::TemporaryFolder root;
  write(root / "memory" / "memory.limit_in_bytes", "1000\n");
  write(root / "memory" / "memory.usage_in_bytes", "400\n");
  CHECK(free_in_group(root.path(), "5:cpu,memory:/docker/0123\n0::/\n") == 600);
}

#ifndef GPUNN_SANITIZED  // whose shadow memory alone exceeds any limit
TEST_CASE("ulimit -v counts") {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{rlim_t{4} << 30, rlim_t{4} << 30};
    setrlimit(RLIMIT_AS, &limit);
    _exit(free_host_memory() < limit.rlim_cur ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif

TEST_CASE("what there is no memory for is refused with the figures") {
  CHECK(free_host_memory() > 1 << 20);
  CHECK_NOTHROW(require_host_memory(1 << 20, "a little"));
  CHECK_THROWS_WITH(require_host_memory(uint64_t{1} << 60, "the model"),
                    Contains("the model needs 1.0 EiB of memory, and") && Contains("are free"));
}
