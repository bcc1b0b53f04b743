#include "common/files.hpp"

#include <gpunn/error.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
  CHECK_THROWS_WITH(read_text(folder / "pipe"), Contains("pipe") && Contains("nothing came from it"));
}

TEST_CASE("a pipe is read to its end, however slowly it comes") {
  const TemporaryFolder folder;
  const std::string pipe = (folder / "pipe").string();
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::jthread writer([&] {
    std::ofstream out(pipe);
    for (int i = 0; i < 3; ++i) {
      out << std::string(100000, static_cast<char>('a' + i)) << std::flush;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  const std::string text = read_text(pipe);
  CHECK(text.size() == 300000);
  CHECK(text.back() == 'c');
}

TEST_CASE("an input file is a regular one") {
  const TemporaryFolder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(InputFile(folder / "pipe"), Contains("not a regular file"));
  CHECK_THROWS_WITH(InputFile("/dev/zero"), Contains("not a regular file"));
  CHECK_THROWS_WITH(InputFile(folder.path()), Contains("it is a folder"));
  write_atomically(folder / "f", "abc");
  InputFile file(folder / "f");
  std::array<char, 5> bytes{};
  CHECK(file.bytes() == 3);
  CHECK(file.read(bytes) == 3);
  CHECK(file.read(bytes) == 0);
  file.rewind();
  CHECK(file.read(bytes) == 3);
}

TEST_CASE("what a path leads to, or why that can't be told") {
  const TemporaryFolder folder;
  write_atomically(folder / "f", "");
  CHECK(kind_of(folder / "f") == PathKind::file);
  CHECK(kind_of(folder.path()) == PathKind::folder);
  CHECK(kind_of("/dev/null") == PathKind::other);
  CHECK(kind_of(folder / "f" / "g") == PathKind::absent);
  CHECK(kind_of(folder / "g") == PathKind::absent);
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  CHECK_THROWS_WITH(kind_of(folder / "a"), Contains("can't look at") && Contains("symbolic links"));
  CHECK_THROWS_WITH(kind_of(folder / std::string(300, 'n')), Contains("File name too long"));
}

TEST_CASE("what killed processes left is removed, also one of this process's number") {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  const std::string of_child = "f.tmp-" + std::to_string(child) + "-0";
  const std::string of_namesake = "f.tmp-" + std::to_string(getpid()) + "-4000000000";
  const std::string of_parent = "f.tmp-" + std::to_string(getppid()) + "-0";
  for (const std::string& name : {of_child, of_namesake, of_parent}) std::ofstream(folder / name) << "half";
  write_atomically(folder / "f", "whole");
  CHECK_FALSE(fs::exists(folder / of_child));
  CHECK_FALSE(fs::exists(folder / of_namesake));
  CHECK(fs::exists(folder / of_parent));
}

TEST_CASE("a writer that throws leaves the file and no rubbish") {
  const TemporaryFolder folder;
  write_atomically(folder / "f", "before");
  const auto fail = [](OutputFile& out) {
    out.write("half");
    throw Error("out of ideas");
  };
  CHECK_THROWS_WITH(write_atomically(folder / "f", fail), Contains("out of ideas"));
  CHECK(read_text(folder / "f") == "before");
  CHECK(folder.count() == 1);
}

TEST_CASE("a full disk leaves the file and no rubbish") {
  const TemporaryFolder folder;
  write_atomically(folder / "f", "before");
  {
    const FileSizeLimit limit(1000);
    CHECK_THROWS_WITH(write_atomically(folder / "f", std::string(5000, 'x')),
                      Contains("can't write") && Contains("File too large"));
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
    write_atomically(folder / "f", [&](OutputFile& out) {
      out.write(texts[static_cast<std::size_t>(i % 2)]);
      const std::string seen = read_text(folder / "f");
      CHECK((seen == texts[0] || seen == texts[1]));
    });
  }
}
