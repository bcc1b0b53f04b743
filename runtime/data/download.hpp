#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/http.hpp"
#include "data/registry.hpp"

namespace gpunn::data {

struct DownloadJob {
  std::vector<RemoteFile> files;
  std::vector<std::string> mirrors;  // URLs ending in '/'
  std::filesystem::path folder;      // made where it isn't there
  HttpLimits limits;
};

// Fetches the files that the folder lacks, or holds damaged. Each is tried on one mirror after the other; it is written
// to "<name>.part", where a broken download is taken up again, and gets its name once its digest is right. Throws
// Error(missing) with what each mirror answered where none served.
void download_files(const DownloadJob& job);

}  // namespace gpunn::data
