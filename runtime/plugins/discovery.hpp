#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace gpunn::plugins {

// A file that may be a plugin, or a place that was named by the user and can't be read.
struct Candidate {
  std::filesystem::path path;  // absolute
  std::string problem;         // empty: a file to load
  int place = 0;               // 0: named in `extra`; then each entry and folder has a place of its own, in order
};

// The files of `extra` (files or folders), GPUNN_PLUGIN_PATH, the folder of libgpunn and the install folder, each file
// once. In a folder only libgpunn_backend_*.so counts; a file that is named itself may be called anything.
std::vector<Candidate> discover(const std::vector<std::filesystem::path>& extra);

// The entries of a colon-separated list. Empty ones, which a shell would read as the working directory, are dropped.
std::vector<std::filesystem::path> split_path_list(const std::string& list);

// Whether a file of this name is taken from a folder.
bool has_plugin_name(const std::filesystem::path& file);

}  // namespace gpunn::plugins
