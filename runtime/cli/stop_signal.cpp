#include "cli/stop_signal.hpp"

#include <gpunn/error.hpp>

#include <array>

#include <unistd.h>

namespace gpunn::cli {

namespace {

constexpr std::array<int, 3> kStopSignals = {SIGINT, SIGTERM, SIGHUP};

extern "C" void on_second_signal(int /*signal*/) { ::_exit(static_cast<int>(ExitCode::interrupted)); }

}  // namespace

StopSignal::StopSignal() {
  sigemptyset(&signals_);
  for (const int number : kStopSignals) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&signals_, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals_, &former_);
}

StopSignal::~StopSignal() { ::pthread_sigmask(SIG_SETMASK, &former_, nullptr); }

void StopSignal::wait() {
  int number = 0;
  while (::sigwait(&signals_, &number) != 0) {
  }
  struct sigaction action {};
  action.sa_handler = on_second_signal;
  sigemptyset(&action.sa_mask);
  for (const int one : kStopSignals) {
    if (sigismember(&signals_, one) == 1) ::sigaction(one, &action, nullptr);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
}

}  // namespace gpunn::cli
