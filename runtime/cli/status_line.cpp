#include "cli/status_line.hpp"

#include <gpunn/clock.hpp>

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

namespace gpunn::cli {

namespace {

constexpr std::string_view kEraseLine = "\r\x1b[2K";

// Keeps SIGPIPE from this thread: one that a write of its own raised is taken back, one that was there stays.
class NoBrokenPipe {
 public:
  NoBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &former_);
  }
  ~NoBrokenPipe() {
    const timespec now{0, 0};
    if (!was_pending_) sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &former_, nullptr);
  }
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;

 private:
  sigset_t pipe_{}, former_{};
  bool was_pending_ = false;
};

}  // namespace

void write_to_stderr(std::string_view text) {
  const NoBrokenPipe guard;
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void require_stderr() {
  if (::fcntl(STDERR_FILENO, F_GETFD) >= 0) return;
  const int file = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (file < 0 || file == STDERR_FILENO) return;
  ::dup2(file, STDERR_FILENO);
  ::close(file);
}

StatusLine& StatusLine::of_stderr() {
  static StatusLine line;
  return line;
}

StatusLine::StatusLine() : terminal_(terminal_of(STDERR_FILENO)) {}

std::size_t StatusLine::width() const { return std::max<std::size_t>(columns_of(STDERR_FILENO), 2) - 1; }

void StatusLine::erase() {
  if (drawn_by_ != nullptr) write_to_stderr(kEraseLine);
  drawn_by_ = nullptr;
}

void StatusLine::draw(const void* owner, std::string_view line) {
  const std::lock_guard lock(mutex_);
  write_to_stderr(std::string(kEraseLine) + std::string(line));
  drawn_by_ = owner;
}

void StatusLine::print(std::string_view line) {
  const std::lock_guard lock(mutex_);
  erase();
  write_to_stderr(std::string(line) + "\n");
}

void StatusLine::print_stamped(std::string_view line) {
  print((terminal_.interactive ? "" : elapsed_stamp() + " ") + std::string(line));
}

void StatusLine::clear(const void* owner) {
  const std::lock_guard lock(mutex_);
  if (owner == nullptr || owner == drawn_by_) erase();
}

}  // namespace gpunn::cli
