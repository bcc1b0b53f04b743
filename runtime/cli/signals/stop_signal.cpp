#include "cli/signals/stop_signal.hpp"

#include <gpunn/error.hpp>

#include <array>
#include <cerrno>
#include <ctime>

#include <sys/signalfd.h>
#include <unistd.h>

#include "common/system_call.hpp"

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

StopSignal::~StopSignal() {
  if (descriptor_ >= 0) {
    // What was read as a descriptor alone is still pending.
    const timespec at_once{};
    while (::sigtimedwait(&signals_, nullptr, &at_once) > 0) {
    }
    ::close(descriptor_);
  }
  ::pthread_sigmask(SIG_SETMASK, &former_, nullptr);
}

int StopSignal::descriptor() {
  if (descriptor_ < 0) descriptor_ = ::signalfd(-1, &signals_, SFD_CLOEXEC);
  if (descriptor_ < 0) throw Error("can't wait for signals: " + reason_of(errno));
  return descriptor_;
}

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
