#include "common/files.hpp"

#include <gpunn/error.hpp>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "catch.hpp"
#include "temporary_folder.hpp"

using namespace gpunn;
namespace fs = std::filesystem;

namespace {

using gpunn::testing::TemporaryFolder;

// Files of this process can't grow beyond so many bytes: a disk that fills up.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

ExitCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ExitCode::done;
}

}  // namespace

TEST_CASE("what is written is read back") {
  const TemporaryFolder folder;
  std::string text = "a\r\nb";
  text += '\0';
  text += std::string(200000, 'x');
  write_atomically(folder / "f", text);
  CHECK(read_text(folder / "f") == text);
  write_atomically(folder / "f", "");
  CHECK(read_text(folder / "f").empty());
  CHECK(folder.count() == 1);
}

TEST_CASE("what can't be read says why") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_text(folder / "absent"), Contains("absent") && Contains("No such file"));
  CHECK(code_of([&] { read_text(folder / "absent"); }) == ExitCode::missing);
  fs::create_directory(folder / "sub");
  CHECK_THROWS_WITH(read_text(folder / "sub"), Contains("it is a folder"));
  write_atomically(folder / "large", std::string(1001, 'x'));
  CHECK_THROWS_WITH(read_text(folder / "large", 1000), Contains("larger than the 1000 B"));
  CHECK(read_text(folder / "large", 1001).size() == 1001);
}

TEST_CASE("a device that never ends is cut off") {
  CHECK_THROWS_WITH(read_text("/dev/zero", 100000), Contains("larger than"));
}

TEST_CASE("a pipe without a writer does not hang") {
  const TemporaryFolder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(read_text(folder / "pipe").empty());
}

TEST_CASE("a writer that throws leaves the file and no rubbish") {
  const TemporaryFolder folder;
  write_atomically(folder / "f", "before");
  const auto fail = [](const fs::path& temporary) {
    write_atomically(temporary, "half");
    throw Error("out of ideas");
  };
  CHECK_THROWS_WITH(replace_atomically(folder / "f", fail), Contains("out of ideas"));
  CHECK(read_text(folder / "f") == "before");
  CHECK(folder.count() == 1);
}

TEST_CASE("a full disk leaves the file and no rubbish") {
  const TemporaryFolder folder;
  write_atomically(folder / "f", "before");
  {
    const FileSizeLimit limit(1000);
    CHECK_THROWS_WITH(write_atomically(folder / "f", std::string(5000, 'x')), Contains("can't write"));
  }
  CHECK(read_text(folder / "f") == "before");
  CHECK(folder.count() == 1);
}

TEST_CASE("a folder that is not there is said") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(write_atomically(folder / "no" / "f", "x"), Contains("can't write") && Contains("No such file"));
}

TEST_CASE("a link stays a link") {
  const TemporaryFolder folder;
  write_atomically(folder / "target", "before");
  fs::create_symlink("target", folder / "link");
  write_atomically(folder / "link", "after");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_text(folder / "target") == "after");
}

TEST_CASE("readers see the old or the new file, never a part") {
  const TemporaryFolder folder;
  const std::vector<std::string> texts = {std::string(100000, 'a'), std::string(50000, 'b')};
  write_atomically(folder / "f", texts[0]);
  for (int i = 0; i < 50; ++i) {
    replace_atomically(folder / "f", [&](const fs::path& temporary) {
      write_atomically(temporary, texts[static_cast<std::size_t>(i % 2)]);
      const std::string seen = read_text(folder / "f");
      CHECK((seen == texts[0] || seen == texts[1]));
    });
  }
}
