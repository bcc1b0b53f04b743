#include "session/check/crash_note.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include <unistd.h>

#include "common/system_call.hpp"

namespace gpunn::training {

namespace {

constexpr std::array kSignals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr char kBegin[] = "\ngpunn: crashed in ";

// What a handler may touch: no allocation.
std::array<char, 1024> note{};
std::size_t note_size = 0;
std::array<struct sigaction, kSignals.size()> former{};

void tell(int signal) {
  write_all(STDERR_FILENO, {note.data(), note_size});  // which allocates nothing
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

CrashNote::CrashNote(const std::string& where) {
  const std::string text = kBegin + where + "\n";
  note_size = std::min(text.size(), note.size());
  std::memcpy(note.data(), text.data(), note_size);
  struct sigaction action {};
  action.sa_handler = tell;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &former[i]);
}

CrashNote::~CrashNote() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &former[i], nullptr);
}

}  // namespace gpunn::training
