#include "common/process.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;  // NOLINT(readability-redundant-declaration): not every system's headers have it

namespace gpunn {

namespace {

constexpr std::size_t kMostOutput = std::size_t{1} << 20;

// To the end of the stream, so that the writer never waits for a reader.
std::string read_all(int file) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t count = ::read(file, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, std::min(static_cast<std::size_t>(count), kMostOutput - text.size()));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

ProcessResult run_process(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  const std::string path = program.string();
  std::vector<std::string> words{path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {.output = {}, .exit_code = -1, .ending = std::strerror(errno)};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failure = ::posix_spawn(&child, path.c_str(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  ProcessResult result;
  if (failure != 0) {
    result.ending = path + ": " + std::strerror(failure);
  } else {
    result.output = read_all(ends[0]);
    const int status = wait_for(child);
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    result.ending = WIFEXITED(status) ? "exit code " + std::to_string(result.exit_code)
                                      : "signal " + std::to_string(WTERMSIG(status));
  }
  ::close(ends[0]);
  return result;
}

}  // namespace gpunn
