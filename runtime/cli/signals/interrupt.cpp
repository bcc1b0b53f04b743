#include "cli/signals/interrupt.hpp"

#include <gpunn/error.hpp>

#include <array>
#include <string_view>

#include <signal.h>
#include <unistd.h>

namespace gpunn::cli {

namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
std::atomic<bool> interrupted{false}, begun{false}, silent{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");
std::array<struct sigaction, kSignals.size()> former;

// A signal handler can't report a failure.
void tell(std::string_view text) {
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, text.data(), text.size());
}

extern "C" void on_signal(int /*signal*/) {
  if (!begun) tell("\ninterrupted\n");
  if (!begun || interrupted.exchange(true)) ::_exit(static_cast<int>(ExitCode::interrupted));
  if (!silent) tell("\nstopping after this step; press again to quit\n");
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = begun = false;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &former[i]);
    if (former[i].sa_handler == SIG_IGN) ::sigaction(kSignals[i], &former[i], nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &former[i], nullptr);
}

void InterruptGuard::begin(Speech speech) {
  silent = speech == Speech::silent;
  begun = true;
}

const std::atomic<bool>* InterruptGuard::flag() { return &interrupted; }

}  // namespace gpunn::cli
