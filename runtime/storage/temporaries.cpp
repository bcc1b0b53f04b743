#include "storage/temporaries.hpp"

#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>

#include <signal.h>
#include <unistd.h>

namespace gpunn::storage {

namespace fs = std::filesystem;

namespace {

bool is_dead(pid_t process) { return process != ::getpid() && ::kill(process, 0) != 0 && errno == ESRCH; }

// The process in "<prefix><process>-<number>"; 0 where `name` is something else.
pid_t writer_of(const std::string& name, const std::string& prefix) {
  if (name.compare(0, prefix.size(), prefix) != 0) return 0;
  const char* end = name.data() + name.size();
  pid_t process = 0;
  unsigned number = 0;
  const auto first = std::from_chars(name.data() + prefix.size(), end, process);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-' || process <= 0) return 0;
  const auto second = std::from_chars(first.ptr + 1, end, number);
  return second.ec == std::errc() && second.ptr == end ? process : 0;
}

}  // namespace

void remove_stale_temporaries(const fs::path& file) noexcept {
  try {
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    const std::string prefix = file.filename().string() + ".tmp-";
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
      const pid_t process = writer_of(entry.path().filename().string(), prefix);
      if (process > 0 && is_dead(process)) fs::remove(entry.path(), ignored);
    }
  } catch (const std::exception&) {  // an unreadable folder makes the write itself fail, with its reason
    return;
  }
}

}  // namespace gpunn::storage
