#include "common/temporaries.hpp"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>

#include <signal.h>
#include <unistd.h>

namespace gpunn {

namespace fs = std::filesystem;

namespace {

std::atomic<unsigned> next_number{0};

std::string prefix_of(const fs::path& file) { return file.filename().string() + ".tmp-"; }

struct Writer {
  pid_t process = 0;
  unsigned number = 0;
};

// Of "<prefix><process>-<number>".
std::optional<Writer> writer_of(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const char* end = name.data() + name.size();
  Writer writer;
  const auto first = std::from_chars(name.data() + prefix.size(), end, writer.process);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-' || writer.process <= 0) return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, writer.number);
  return second.ec == std::errc() && second.ptr == end ? std::optional(writer) : std::nullopt;
}

// In containers every run may have the same process id: a number that this process has not come to is an earlier one's.
bool is_gone(const Writer& writer) {
  if (writer.process == ::getpid()) return writer.number >= next_number;
  return ::kill(writer.process, 0) != 0 && errno == ESRCH;
}

}  // namespace

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

TemporaryFile::TemporaryFile(const fs::path& file)
    : path_(folder_of(file) / (prefix_of(file) + std::to_string(::getpid()) + "-" + std::to_string(next_number++))) {}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove(path_, ignored);
}

void remove_stale_temporaries(const fs::path& file) noexcept {
  try {
    const std::string prefix = prefix_of(file);
    std::error_code ignored;
    for (fs::directory_iterator it(folder_of(file), ignored), end; !ignored && it != end; it.increment(ignored)) {
      const auto writer = writer_of(it->path().filename().string(), prefix);
      std::error_code not_removed;
      if (writer && is_gone(*writer)) fs::remove(it->path(), not_removed);
    }
  } catch (const std::exception&) {  // an unreadable folder makes the write itself fail, with its reason
    return;
  }
}

}  // namespace gpunn
