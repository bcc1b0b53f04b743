#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace gpunn {

// Bytes that this process can still get without the kernel ending it: what the system has available, less where a
// control group, as of a container or a batch job, or `ulimit -v` allows less. 0: the system does not tell.
uint64_t free_host_memory();

// Throws Error(missing) "WHAT needs 12.0 GiB of memory, and 3.0 GiB are free" before the kernel has a reason to end it.
void require_host_memory(uint64_t bytes, const std::string& what);

// Of the group that /proc/self/cgroup names ("0::/user.slice/job"), and of those it is in, what the least generous
// still allows; `root` is where control groups are mounted. UINT64_MAX: no limit.
uint64_t free_in_group(const std::filesystem::path& root, const std::string& membership);

}  // namespace gpunn
