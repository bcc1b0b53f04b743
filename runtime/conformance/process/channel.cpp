#include "conformance/process/channel.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/system_call.hpp"

namespace gpunn::conformance {

namespace {

constexpr std::size_t kKeptWords = 4096;
constexpr std::size_t kShownWords = 400;
constexpr char kEndOfWords = '\1';  // among what the child prints

// In front of the text of a message. Parent and child are the same program.
struct Header {
  Message::Kind kind;
  int code;
  Verdict verdict;
  bool optional;
  double error, seconds, gflops, gigabytes;
  std::size_t text, detail, plugin, refusal;  // bytes that follow
};

// In the child: a crash ends it at once, whatever handlers the host has, and it does not outlive its parent.
void make_mortal(pid_t parent) {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(number, SIG_DFL);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) std::signal(number, SIG_DFL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

// Of a sanitizer's report the summary, of anything else its end, in one line.
std::string essence(const std::string& words) {
  const std::size_t summary = words.rfind("SUMMARY: ");
  std::string text = summary == std::string::npos ? words : words.substr(summary, words.find('\n', summary) - summary);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
  if (text.size() > kShownWords) text = "..." + text.substr(text.size() - kShownWords);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

void close_file(int& file) {
  if (file >= 0) ::close(std::exchange(file, -1));
}

}  // namespace

void send(int pipe, const Message& message) {
  const CheckCase& result = message.result;
  const Header header{message.kind,        message.code,         result.verdict,       result.optional,
                      result.error,        result.seconds,       result.gflops,        result.gigabytes,
                      message.text.size(), result.detail.size(), result.plugin.size(), result.refusal.size()};
  std::string bytes(sizeof(header), '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  bytes += message.text;
  bytes += result.detail + result.plugin + result.refusal;
  write_all(pipe, bytes);
}

void end_of_words() {
  std::fflush(nullptr);
  write_all(STDERR_FILENO, {&kEndOfWords, 1});
}

Child::Child(const std::function<void(int pipe)>& body) {
  int messages[2] = {-1, -1};
  int output[2] = {-1, -1};
  const auto fail = [&](const char* what) {
    const std::string reason = std::strerror(errno);
    for (int* pair : {messages, output}) {
      close_file(pair[0]);
      close_file(pair[1]);
    }
    throw Error(std::string("no child process could be started: ") + what + ": " + reason);
  };
  if (pipe(messages) != 0 || pipe(output) != 0) fail("pipe");
  std::fflush(nullptr);  // what is in a buffer is printed once
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) fail("fork");
  if (process_ == 0) {
    make_mortal(parent);
    ::close(messages[0]);
    ::close(output[0]);
    dup2(output[1], STDOUT_FILENO);
    dup2(output[1], STDERR_FILENO);
    ::close(output[1]);
    // The parent's thread may own a team of OpenMP threads that are not here; a new one owns nothing.
    std::thread([&] { body(messages[1]); }).join();
    _exit(0);
  }
  ::close(messages[1]);
  ::close(output[1]);
  messages_ = messages[0];
  output_ = output[0];
}

Child::~Child() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  close_file(messages_);
  close_file(output_);
}

void Child::forward_output() {
  char buffer[4096];
  const ssize_t count = ::read(output_, buffer, sizeof(buffer));
  if (count <= 0) {
    if (count == 0 || errno != EINTR) close_file(output_);
    return;
  }
  for (std::string_view text(buffer, static_cast<std::size_t>(count)); !text.empty();) {
    const std::size_t end = text.find(kEndOfWords);
    const std::string_view words = text.substr(0, end);
    write_all(STDERR_FILENO, words);
    last_words_ += words;
    if (end == std::string_view::npos) break;
    last_words_.clear();
    text.remove_prefix(end + 1);
  }
  if (last_words_.size() > kKeptWords) last_words_.erase(0, last_words_.size() - kKeptWords);
}

// False: the child has ended, or it is too late.
bool Child::read_some(std::chrono::steady_clock::time_point deadline) {
  pollfd files[2] = {{messages_, POLLIN, 0}, {output_, POLLIN, 0}};  // poll passes over a file of -1
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  const int ready = poll(files, 2, static_cast<int>(std::clamp<int64_t>(left.count(), 0, 3'600'000)));
  if (ready < 0) return errno == EINTR;
  if (ready == 0) {
    hung_ = true;
    return false;
  }
  if (files[1].revents != 0) forward_output();
  if (files[0].revents == 0) return true;
  char buffer[65536];
  const ssize_t count = ::read(messages_, buffer, sizeof(buffer));
  if (count < 0) return errno == EINTR;
  received_.append(buffer, static_cast<std::size_t>(count));
  return count > 0;
}

std::optional<Message> Child::take() {
  Header header{};
  if (received_.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, received_.data(), sizeof(header));
  if (received_.size() < sizeof(header) + header.text + header.detail + header.plugin + header.refusal) {
    return std::nullopt;
  }
  std::size_t next = sizeof(header);
  const auto taken = [&](std::size_t bytes) { return received_.substr(std::exchange(next, next + bytes), bytes); };
  Message message;
  message.kind = header.kind;
  message.code = header.code;
  message.text = taken(header.text);
  message.result.verdict = header.verdict;
  message.result.optional = header.optional;
  message.result.error = header.error;
  message.result.seconds = header.seconds;
  message.result.gflops = header.gflops;
  message.result.gigabytes = header.gigabytes;
  message.result.detail = taken(header.detail);
  message.result.plugin = taken(header.plugin);
  message.result.refusal = taken(header.refusal);
  received_.erase(0, next);
  return message;
}

std::optional<Message> Child::receive(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::optional<Message> message = take();
  while (!message && read_some(deadline)) message = take();
  return message;
}

std::string Child::end() {
  if (hung_) ::kill(process_, SIGKILL);
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  while (output_ >= 0) {
    pollfd file{output_, POLLIN, 0};
    if (poll(&file, 1, 100) <= 0) break;  // a process that the plugin started may hold it open
    forward_output();
  }
  std::string text;
  if (hung_) {
    text = "hung: it took longer than the limit of a case, which --limit sets";
  } else if (WIFSIGNALED(status)) {
    text = "crashed (" + std::string(strsignal(WTERMSIG(status))) + ")";
  } else {
    text = "ended the process (exit code " + std::to_string(WEXITSTATUS(status)) + ")";
  }
  const std::string words = essence(last_words_);
  return words.empty() ? text : text + ", and last printed: " + words;
}

}  // namespace gpunn::conformance
