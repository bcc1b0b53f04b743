#include "session/check/crash_note.hpp"

#include <csignal>
#include <string>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "catch.hpp"

TEST_CASE("who crashes is named before the process ends of it") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(ends[1], STDERR_FILENO);
    const gpunn::training::CrashNote note("'mine': RELU 'fc1'");
    std::raise(SIGSEGV);
    _exit(0);
  }
  close(ends[1]);
  std::string said(1000, '\0');
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(read(ends[0], said.data(), said.size()), 0)));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGSEGV);
  CHECK_THAT(said, Contains("gpunn: crashed in 'mine': RELU 'fc1'"));
}
