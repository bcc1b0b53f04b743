#include "serving/api/access_log.hpp"

#include <gpunn/error.hpp>

#include <cerrno>
#include <iterator>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "common/system_call.hpp"
#include "serving/http/date.hpp"

namespace gpunn::serving {

namespace {

constexpr std::size_t kGathered = 16 << 10, kMostTarget = 1024;

// What a client sent can't break the line.
void append_plain(std::string& line, std::string_view text) {
  for (const char c : text.substr(0, kMostTarget)) {
    if (c > ' ' && c < 0x7f && c != '"' && c != '\\') {
      line += c;
    } else {
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
}

}  // namespace

AccessLog::AccessLog(const std::filesystem::path& file) {
  if (file.empty()) return;
  if (file == "-") {
    descriptor_ = STDERR_FILENO;
  } else {
    descriptor_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    owned_ = true;
  }
  if (descriptor_ < 0) {
    throw Error(file.string() + ": the access log can't be written: " + reason_of(errno), ExitCode::missing);
  }
  flusher_ = std::thread([this] { flush_now_and_then(); });
}

AccessLog::~AccessLog() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  end_.notify_all();
  if (flusher_.joinable()) flusher_.join();
  flush();
  if (owned_) ::close(descriptor_);
}

void AccessLog::add(std::string_view peer, std::string_view method, std::string_view target, int status,
                    std::size_t bytes, std::chrono::nanoseconds took) {
  const std::string time = log_date();
  const std::lock_guard lock(mutex_);
  fmt::format_to(std::back_inserter(lines_), "{} - - [{}] \"", peer, time);
  append_plain(lines_, method);
  lines_ += ' ';
  append_plain(lines_, target);
  fmt::format_to(std::back_inserter(lines_), " HTTP/1.1\" {} {} {:.6f}\n", status, bytes,
                 std::chrono::duration<double>(took).count());
  if (lines_.size() >= kGathered) write();
}

void AccessLog::flush() {
  const std::lock_guard lock(mutex_);
  write();
}

void AccessLog::flush_now_and_then() {
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, std::chrono::milliseconds(200), [this] { return ended_; })) write();
}

// A full disk stops no service: the lines are lost.
void AccessLog::write() {
  std::string_view rest = lines_;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  lines_.clear();
}

}  // namespace gpunn::serving
