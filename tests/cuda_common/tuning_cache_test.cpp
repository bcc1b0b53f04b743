#include "cuda_common/tuning_cache.hpp"

#include <cstdlib>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "temporary_folder.hpp"

namespace {

namespace fs = std::filesystem;
using gpunn::cuda::TuningCache;
using gpunn::testing::TemporaryFolder;

// GPUNN_CACHE_DIR for the length of a test.
class CacheFolder {
 public:
  explicit CacheFolder(const std::string& path) { setenv("GPUNN_CACHE_DIR", path.c_str(), 1); }
  ~CacheFolder() { unsetenv("GPUNN_CACHE_DIR"); }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
};

const std::vector<std::string> kPlatform = {"cudnn", "NVIDIA H200", "driver 580.1"};

TuningCache quiet() {
  return TuningCache(kPlatform, [](int32_t, const std::string&) {});
}

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("what one cache stores the next one finds, and another platform does not") {
  const TemporaryFolder folder;
  const CacheFolder variable((folder / "deep" / "er").string());
  quiet().store("matmul m=1", "fused 1 2 3");
  TuningCache next = quiet();
  CHECK(next.find("matmul m=1") == "fused 1 2 3");
  CHECK(next.find("matmul m=2") == std::nullopt);
  CHECK(next.file().filename() == "cudnn-nvidia_h200-driver_580.1.tuning");
  TuningCache other({"cudnn", "NVIDIA H200", "driver 590.1"}, [](int32_t, const std::string&) {});
  CHECK(other.find("matmul m=1") == std::nullopt);
}

TEST_CASE("a later choice replaces an earlier one") {
  const TemporaryFolder folder;
  const CacheFolder variable(folder.path().string());
  quiet().store("a", "old");
  quiet().store("a", "new");
  CHECK(quiet().find("a") == "new");
}

TEST_CASE("two caches keep what each other learnt") {
  const TemporaryFolder folder;
  const CacheFolder variable(folder.path().string());
  TuningCache one = quiet(), two = quiet();
  CHECK(one.find("a") == std::nullopt);
  CHECK(two.find("b") == std::nullopt);
  one.store("a", "1");
  two.store("b", "2");
  CHECK(quiet().find("a") == "1");
  CHECK(quiet().find("b") == "2");
  CHECK(folder.count() == 1);  // nothing temporary is left
}

TEST_CASE("a damaged file is ignored with one warning and written anew") {
  const std::string damages[] = {"",
                                 "something else\na\tb\n",
                                 "gpunn tuning 1\nno tab here\n",
                                 "gpunn tuning 1\na\tb\n\tno key\n",
                                 "gpunn tuning 1\na\t\n",
                                 "gpunn tuning 1\na\tb\tc\n",
                                 std::string("gpunn tuning 1\na\tb\0c\n", 21),
                                 "gpunn tuning 1\na\tb\x1b[31m\n",
                                 "gpunn tuning 1\n" + std::string(5000, 'x') + "\tb\n",
                                 std::string(17U << 20U, 'x')};
  const std::size_t i = GENERATE(range(std::size_t{0}, std::size_t{10}));
  CAPTURE(i);
  const TemporaryFolder folder;
  const CacheFolder variable(folder.path().string());
  const fs::path file = quiet().file();
  folder.write(file.filename(), damages[i]);
  std::vector<std::string> warnings;
  TuningCache cache(kPlatform, [&](int32_t level, const std::string& text) {
    if (level == 2) warnings.push_back(text);
  });
  CHECK(cache.find("a") == std::nullopt);
  CHECK(cache.find("b") == std::nullopt);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Contains(file.string()));
  cache.store("c", "d");
  CHECK(warnings.size() == 1);
  CHECK(content(file) == "gpunn tuning 1\nc\td\n");
}

TEST_CASE("an empty GPUNN_CACHE_DIR means no file, and the cache works all the same") {
  const CacheFolder variable("");
  TuningCache cache = quiet();
  CHECK(cache.file().empty());
  cache.store("a", "b");
  CHECK(cache.find("a") == "b");
}

TEST_CASE("a folder that can't be written costs nothing but the file") {
  const TemporaryFolder folder;
  folder.write("file", "in the way");
  const CacheFolder variable((folder / "file" / "below").string());
  TuningCache cache = quiet();
  cache.store("a", "b");
  CHECK(cache.find("a") == "b");
  CHECK(content(folder / "file") == "in the way");
}

TEST_CASE("a folder in the place of the file costs nothing but the file") {
  const TemporaryFolder folder;
  const CacheFolder variable(folder.path().string());
  fs::create_directories(quiet().file() / "inside");
  TuningCache cache = quiet();
  cache.store("a", "b");
  CHECK(cache.find("a") == "b");
  CHECK(folder.count() == 1);
}

TEST_CASE("text that would break the file is not stored") {
  const TemporaryFolder folder;
  const CacheFolder variable(folder.path().string());
  TuningCache cache = quiet();
  cache.store("a\tb", "c");
  cache.store("a", "b\nc");
  cache.store("", "c");
  CHECK(folder.count() == 0);
}

TEST_CASE("writers at the same time leave a sound file") {
  const TemporaryFolder folder;
  const CacheFolder variable(folder.path().string());
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([t] {
      TuningCache cache = quiet();
      for (int i = 0; i < 50; ++i) cache.store("key " + std::to_string(t) + " " + std::to_string(i), "value");
    });
  }
  for (std::thread& writer : writers) writer.join();
  int warnings = 0;
  TuningCache cache(kPlatform, [&](int32_t level, const std::string&) { warnings += level == 2 ? 1 : 0; });
  CHECK(cache.find("key 0 49").has_value() + cache.find("key 1 49").has_value() + cache.find("key 2 49").has_value() +
            cache.find("key 3 49").has_value() >=
        1);
  CHECK(warnings == 0);
  CHECK(folder.count() == 1);
}
