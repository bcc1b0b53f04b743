#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace gpunn {

// Bytes that this process can still allocate before the kernel kills it: the system's available memory, or less if a
// control group (a container, a batch job) or `ulimit -v` limits it. 0: unknown.
uint64_t free_host_memory();

// As free_host_memory, without `ulimit -v`: memory that the process has allocated and not yet used counts as free.
uint64_t free_physical_memory();

// Throws Error(missing) "WHAT needs 12.0 GiB of memory, and 3.0 GiB are free" before the kernel has a reason to end it.
void require_host_memory(uint64_t bytes, const std::string& what);

// Bytes that the control group of /proc/self/cgroup ("0::/user.slice/job") and its parents still allow: the smallest of
// their limits. `root` is the mount point of control groups. UINT64_MAX: no limit.
uint64_t free_in_group(const std::filesystem::path& root, const std::string& membership);

}  // namespace gpunn
