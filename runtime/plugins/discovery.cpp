#include "plugins/discovery.hpp"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include <dlfcn.h>

#include "plugins/file_id.hpp"

namespace gpunn::plugins {

namespace fs = std::filesystem;

namespace {

const char kAnchor = 0;  // an address within libgpunn

struct OwnFolder {
  fs::path folder;
  bool in_program = false;  // the runtime is linked into the program: there is no libgpunn
};

OwnFolder own_folder() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  Dl_info info{};
  if (dladdr(&kAnchor, &info) == 0 || info.dli_fname == nullptr) return {program.parent_path(), true};
  const fs::path library = info.dli_fname;
  // The main program's name is argv[0], which need not be a path at all.
  if (fs::equivalent(library, program, ignored) || !fs::exists(library, ignored)) return {program.parent_path(), true};
  return {fs::absolute(library, ignored).lexically_normal().parent_path(), false};
}

class Collector {
 public:
  // A place that the user named; it must exist.
  void add_named(const fs::path& place) {
    std::error_code error;
    const fs::path path = fs::absolute(place, error).lexically_normal();
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status)) {
      add_folder(path, true);
    } else if (fs::exists(status)) {
      add_file(path);
    } else {
      found_.push_back({path, error ? error.message() : "no such file or folder", place_});
    }
  }

  // What is added from here on lies in another place.
  void next_place() { ++place_; }

  void add_folder(const fs::path& folder, bool named) {
    std::error_code error;
    std::vector<fs::path> files;
    for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
      std::error_code ignored;
      if (has_plugin_name(i->path()) && i->is_regular_file(ignored)) files.push_back(i->path());
    }
    if (error && named) found_.push_back({folder, "the folder can't be read: " + error.message(), place_});
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) add_file(file);
  }

  std::vector<Candidate> take() { return std::move(found_); }

 private:
  void add_file(const fs::path& file) {
    const auto id = file_id(file);
    if (id && std::find(seen_.begin(), seen_.end(), *id) != seen_.end()) return;
    if (id) seen_.push_back(*id);
    found_.push_back({file, "", place_});
  }

  std::vector<Candidate> found_;
  std::vector<FileId> seen_;
  int place_ = 0;
};

}  // namespace

bool has_plugin_name(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.starts_with("libgpunn_backend_") && name.ends_with(".so") &&
         name.size() > std::string("libgpunn_backend_.so").size();
}

std::vector<fs::path> split_path_list(const std::string& list) {
  std::vector<fs::path> entries;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) entries.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return entries;
}

std::vector<Candidate> discover(const std::vector<fs::path>& extra) {
  Collector collector;
  for (const fs::path& place : extra) collector.add_named(place);
  if (const char* list = std::getenv("GPUNN_PLUGIN_PATH"); list != nullptr) {
    for (const fs::path& place : split_path_list(list)) {
      collector.next_place();
      collector.add_named(place);
    }
  }
  const OwnFolder own = own_folder();
  if (!own.folder.empty()) {
    std::vector<fs::path> folders = {own.folder, own.folder / "gpunn"};
    if (own.in_program) {
      folders.push_back((own.folder / "../lib").lexically_normal());
      folders.push_back((own.folder / "../lib/gpunn").lexically_normal());
    }
    for (const fs::path& folder : folders) {
      collector.next_place();
      collector.add_folder(folder, false);
    }
  }
  return collector.take();
}

}  // namespace gpunn::plugins
