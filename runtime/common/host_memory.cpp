#include "common/host_memory.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include <sys/resource.h>
#include <unistd.h>

#include "common/text.hpp"

namespace gpunn {

namespace fs = std::filesystem;

namespace {

// Of a file of one number; nothing where there is none, or it says "max".
std::optional<uint64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  uint64_t number = 0;
  if (!(in >> word)) return std::nullopt;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

// Behind a word that begins a line: "MemAvailable: 123 kB", "inactive_file 123".
uint64_t number_behind(const fs::path& file, std::string_view word) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string first;
    uint64_t number = 0;
    if (words >> first >> number && first == word) return number;
  }
  return 0;
}

// Of version 1 and 2 of control groups.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* reclaimable;  // pages of files that are given up first, in memory.stat
};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};

uint64_t free_in_folder(const fs::path& folder, const GroupFiles& files) {
  const auto limit = number_in(folder / files.limit), used = number_in(folder / files.used);
  if (!limit || !used) return UINT64_MAX;
  const uint64_t held = *used - std::min(*used, number_behind(folder / "memory.stat", files.reclaimable));
  return *limit - std::min(*limit, held);
}

// Up to the root: in a container the path may be one of the host's, which is not there.
uint64_t least_on_the_way(const fs::path& root, fs::path group, const GroupFiles& files) {
  uint64_t least = free_in_folder(root, files);
  for (group = group.relative_path(); !group.empty(); group = group.parent_path()) {
    least = std::min(least, free_in_folder(root / group, files));
  }
  return least;
}

uint64_t free_address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  const uint64_t used = number_in("/proc/self/statm").value_or(0) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, used);
}

}  // namespace

uint64_t free_in_group(const fs::path& root, const std::string& membership) {
  uint64_t least = UINT64_MAX;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") least = std::min(least, least_on_the_way(root, group, kVersion2));
    if (controllers.find(",memory,") != std::string::npos) {
      least = std::min(least, least_on_the_way(root / "memory", group, kVersion1));
    }
  }
  return least;
}

uint64_t free_physical_memory() {
  const uint64_t available = number_behind("/proc/meminfo", "MemAvailable:") * 1024;
  std::ifstream groups("/proc/self/cgroup");
  const std::string membership{std::istreambuf_iterator<char>(groups), {}};
  const uint64_t least = std::min(available == 0 ? UINT64_MAX : available, free_in_group("/sys/fs/cgroup", membership));
  return least == UINT64_MAX ? 0 : std::max<uint64_t>(least, 1);
}

uint64_t free_host_memory() {
  const uint64_t physical = free_physical_memory();
  const uint64_t least = std::min(physical == 0 ? UINT64_MAX : physical, free_address_space());
  return least == UINT64_MAX ? 0 : std::max<uint64_t>(least, 1);
}

void require_host_memory(uint64_t bytes, const std::string& what) {
  constexpr uint64_t kNeverRefused = uint64_t{64} << 20;  // not worth a look at the system
  if (bytes < kNeverRefused) return;
  const uint64_t free = free_host_memory();
  if (free == 0 || bytes <= free) return;
  throw Error(what + " needs " + human_bytes(bytes) + " of memory, and " + human_bytes(free) + " are free",
              ExitCode::missing);
}

}  // namespace gpunn
