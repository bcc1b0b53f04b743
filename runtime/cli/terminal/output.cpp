#include "cli/terminal/output.hpp"

#include <cerrno>
#include <string>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "common/system_call.hpp"

namespace gpunn::cli {

namespace {

constexpr std::size_t kBuffered = std::size_t{64} << 10;

std::string waiting;  // text that waits to be written
int first_error = 0;

void require_descriptor(int wanted, int mode) {
  if (::fcntl(wanted, F_GETFD) >= 0) return;
  const int file = ::open("/dev/null", mode);
  if (file < 0 || file == wanted) return;
  ::dup2(file, wanted);
  ::close(file);
}

}  // namespace

void prepare_standard_files() {
  require_descriptor(STDIN_FILENO, O_RDONLY);
  require_descriptor(STDOUT_FILENO, O_RDONLY);  // opened so that writes fail
  require_descriptor(STDERR_FILENO, O_WRONLY);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

void write_to_stdout(std::string_view text) {
  waiting += text;
  if (waiting.size() >= kBuffered || ::isatty(STDOUT_FILENO) == 1) flush_stdout();
}

void flush_stdout() {
  if (first_error == 0 && !write_all(STDOUT_FILENO, waiting)) first_error = errno;
  waiting.clear();
}

int stdout_error() { return first_error; }

}  // namespace gpunn::cli
