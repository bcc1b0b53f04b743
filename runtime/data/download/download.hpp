#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/download/http.hpp"
#include "data/registry.hpp"

namespace gpunn::data {

struct DownloadJob {
  std::vector<RemoteFile> files;
  std::vector<std::string> mirrors;  // URLs ending in '/'
  std::filesystem::path folder;      // made where it isn't there
  HttpLimits limits;
};

// Downloads the files that are missing or damaged in the folder. Tries one mirror after another for each. A file is
// written to "<name>.part", where a broken download continues later, and gets its name when its digest is right. Throws
// Error(missing), with each mirror's answer, if none succeeded.
void download_files(const DownloadJob& job);

}  // namespace gpunn::data
