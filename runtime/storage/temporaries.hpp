#pragma once

#include <filesystem>

namespace gpunn::storage {

// Removes what write_atomically left beside `file` ("<file>.tmp-<process>-<number>") in a process that was killed while
// it wrote. Files of living processes stay; nothing here is an error.
void remove_stale_temporaries(const std::filesystem::path& file) noexcept;

}  // namespace gpunn::storage
