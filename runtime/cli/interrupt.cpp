#include "cli/interrupt.hpp"

#include <gpunn/error.hpp>

#include <array>
#include <string_view>

#include <signal.h>
#include <unistd.h>

namespace gpunn::cli {

namespace {

constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");
std::array<struct sigaction, kSignals.size()> former;

extern "C" void on_signal(int /*signal*/) {
  if (interrupted.exchange(true)) ::_exit(static_cast<int>(ExitCode::interrupted));
  constexpr std::string_view kMessage = "\nstopping after this step; press again to quit\n";
  // A signal handler can't report a failure.
  [[maybe_unused]] const ssize_t put = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = false;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &former[i]);
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &former[i], nullptr);
}

const std::atomic<bool>* InterruptGuard::flag() const { return &interrupted; }

}  // namespace gpunn::cli
