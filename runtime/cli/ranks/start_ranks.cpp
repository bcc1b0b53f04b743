#include "cli/ranks/start_ranks.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/terminal/status_line.hpp"
#include "common/system_call.hpp"

namespace gpunn::cli {

namespace {

using SteadyClock = std::chrono::steady_clock;

// The time in which ranks end by themselves after another one has ended; they hear of it at once.
constexpr std::chrono::seconds kOthersEnd{8};
constexpr std::array<int, 3> kPassedOn = {SIGINT, SIGTERM, SIGHUP};

// This program's command line without --devices and --restarts.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool own = words[i] == "--devices" || words[i] == "--restarts";
    if (own) ++i;  // its value
    if (own || words[i].starts_with("--devices=") || words[i].starts_with("--restarts=")) continue;
    kept.push_back(words[i]);
  }
  return kept;
}

// The command line that resumes a run: the other options are those of the run.
std::vector<std::string> resume_arguments(const std::vector<std::string>& arguments, const std::string& run) {
  std::vector<std::string> result = {arguments.front(), "resume", run};
  for (const std::string_view flag : {"--quiet", "--json", "--report"}) {
    if (std::ranges::find(arguments, flag) != arguments.end()) result.emplace_back(flag);
  }
  return result;
}

// Below the ports that systems assign by themselves, so that no connection takes the port before rank 0 does.
std::string free_port() {
  constexpr int kFirst = 20000, kCount = 12000, kStep = 101;
  int port = ::getpid() % kCount;
  for (int i = 0; i < kCount; ++i, port = (port + kStep) % kCount) {
    const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(static_cast<uint16_t>(kFirst + port));
    if (socket && ::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) == 0) {
      return "127.0.0.1:" + std::to_string(kFirst + port);
    }
  }
  throw Error("this machine gives no port for the ranks to meet at: " + reason_of(errno));
}

struct Rank {
  pid_t process = 0;
  int status = 0;
  bool running = true;
};

class Ranks {
 public:
  Ranks(const RanksToStart& wanted, std::vector<std::string> arguments, int attempt)
      : arguments_(std::move(arguments)) {
    const std::string rendezvous = wanted.rendezvous.empty() ? free_port() : wanted.rendezvous;
    const std::string job = std::to_string(::getpid()) + "." + std::to_string(attempt) + "." +
                            std::to_string(SteadyClock::now().time_since_epoch().count());
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("can't start ranks: " + reason_of(errno));
    run_ = FileDescriptor(ends[0]);
    const FileDescriptor told(ends[1]);
    for (int r = 0; r < wanted.count; ++r) {
      start(r,
            {{"GPUNN_RANK", std::to_string(r)},
             {"GPUNN_WORLD", std::to_string(wanted.count)},
             {"GPUNN_LOCAL_RANK", std::to_string(r)},
             {"GPUNN_LOCAL_WORLD", std::to_string(wanted.count)},
             {"GPUNN_RENDEZVOUS", rendezvous},
             {"GPUNN_JOB", job},
             {kRunDescriptor, std::to_string(told.get())}},
            told.get());
    }
  }

  // The exit code of the first fault, or 0 if all ended well. The signals of kPassedOn are blocked.
  int wait(const sigset_t& signals) {
    std::optional<SteadyClock::time_point> deadline;
    int code = 0;
    while (any_running()) {
      const timespec tick{.tv_sec = 0, .tv_nsec = 100'000'000};
      const int number = ::sigtimedwait(&signals, nullptr, &tick);
      if (number > 0 && number != SIGCHLD) pass_on(number);
      for (Rank& rank : ranks_) {
        if (!rank.running || ::waitpid(rank.process, &rank.status, WNOHANG) != rank.process) continue;
        rank.running = false;
        const int own = WIFEXITED(rank.status) ? WEXITSTATUS(rank.status) : 128 + WTERMSIG(rank.status);
        if (own == 0) continue;
        if (code == 0) code = WIFEXITED(rank.status) ? own : static_cast<int>(ExitCode::failed);
        if (!WIFEXITED(rank.status)) {
          StatusLine::of_stderr().print("gpunn: rank " + std::to_string(&rank - ranks_.data()) + " (process " +
                                        std::to_string(rank.process) + ") was ended by signal " +
                                        std::to_string(WTERMSIG(rank.status)));
        }
        if (!deadline) deadline = SteadyClock::now() + kOthersEnd;
      }
      if (deadline && SteadyClock::now() > *deadline) end_all(SIGKILL);
    }
    return code;
  }

  // The run folder of rank 0; empty: it has none yet.
  std::string run() const {
    std::array<char, 4096> room{};
    const std::ptrdiff_t size = read_all(run_.get(), room);
    const std::string text(room.data(), static_cast<std::size_t>(std::max<std::ptrdiff_t>(size, 0)));
    return text.substr(0, text.find('\n'));
  }

 private:
  void start(int rank, const std::vector<std::pair<std::string, std::string>>& environment, int told) {
    std::vector<char*> words;
    for (std::string& word : arguments_) words.push_back(word.data());
    words.push_back(nullptr);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) throw Error("can't start rank " + std::to_string(rank) + ": " + reason_of(errno));
    if (child > 0) {
      ranks_.push_back({.process = child});
      return;
    }
    // This program receives the terminal's signals and passes them on; its end asks the ranks to stop.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(static_cast<int>(ExitCode::interrupted));
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::fcntl(told, F_SETFD, 0);
    if (const int nothing = ::open("/dev/null", O_RDWR); nothing >= 0) {
      ::dup2(nothing, STDIN_FILENO);
      if (rank > 0) ::dup2(nothing, STDOUT_FILENO);
    }
    ::execv("/proc/self/exe", words.data());
    ::_exit(static_cast<int>(ExitCode::failed));
  }

  bool any_running() const { return std::ranges::any_of(ranks_, &Rank::running); }

  // The ranks agree on a stop. A second signal means now.
  void pass_on(int number) {
    if (ranks_.front().running) ::kill(ranks_.front().process, number);
    if (std::exchange(stopping_, true)) end_all(SIGKILL, 1);
  }

  void end_all(int number, std::size_t first = 0) {
    for (std::size_t r = first; r < ranks_.size(); ++r) {
      if (ranks_[r].running) ::kill(ranks_[r].process, number);
    }
  }

  std::vector<std::string> arguments_;
  std::vector<Rank> ranks_;
  FileDescriptor run_;
  bool stopping_ = false;
};

// Whether another attempt may help. Mistakes, missing files, divergence and a user's stop would occur again.
bool is_fault(int code) { return code == static_cast<int>(ExitCode::failed); }

}  // namespace

ExitCode start_ranks(const RanksToStart& wanted) {
  sigset_t signals, former;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGCHLD);
  for (const int number : kPassedOn) ::sigaddset(&signals, number);
  ::sigprocmask(SIG_BLOCK, &signals, &former);
  std::vector<std::string> arguments = own_arguments();
  int code = 0;
  std::string run;
  for (int attempt = 0;; ++attempt) {
    Ranks ranks(wanted, arguments, attempt);
    code = ranks.wait(signals);
    if (const std::string found = ranks.run(); !found.empty()) run = found;
    if (!is_fault(code) || attempt >= wanted.restarts || run.empty()) break;
    StatusLine::of_stderr().print("gpunn: goes on from the last checkpoint of " + run + ", restart " +
                                  std::to_string(attempt + 1) + " of " + std::to_string(wanted.restarts));
    arguments = resume_arguments(arguments, run);
  }
  ::sigprocmask(SIG_SETMASK, &former, nullptr);
  return static_cast<ExitCode>(code);
}

}  // namespace gpunn::cli
