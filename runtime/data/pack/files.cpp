#include "data/pack/files.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "common/input_file.hpp"
#include "data/pack/packed_folder.hpp"

namespace gpunn::data::files {

namespace fs = std::filesystem;

namespace {

// Also what systems leave in folders: resource forks in archives of macOS, thumbnails of a network drive, bins.
bool is_hidden(const fs::path& path) {
  static const std::array<std::string_view, 6> kOfSystems = {"__MACOSX",     "@eaDir",     "#recycle",
                                                             "$RECYCLE.BIN", "lost+found", "System Volume Information"};
  const std::string name = path.filename().string();
  return name.starts_with(".") || std::ranges::find(kOfSystems, name) != kOfSystems.end();
}

[[noreturn]] void fail_to_list(const fs::path& folder, const std::string& why) {
  throw Error("can't list " + folder.string() + ": " + why, ExitCode::missing);
}

// The folders that are open, by the path of their file. One that is written anew is opened anew.
std::shared_ptr<const PackedFolder> opened(const fs::path& file, bool look_again) {
  struct Open {
    std::shared_ptr<const PackedFolder> folder;
    fs::file_time_type changed;
    uintmax_t bytes = 0;
  };
  static std::mutex mutex;
  static std::map<std::string, Open> all;
  const std::lock_guard lock(mutex);
  Open& one = all[file.string()];
  if (one.folder != nullptr && !look_again) return one.folder;
  std::error_code ignored;
  const auto changed = fs::last_write_time(file, ignored);
  const auto bytes = fs::file_size(file, ignored);
  if (one.folder == nullptr || one.changed != changed || one.bytes != bytes) {
    one = {.folder = nullptr, .changed = changed, .bytes = bytes};
    one.folder = std::make_shared<const PackedFolder>(file);
  }
  return one.folder;
}

struct Place {
  std::shared_ptr<const PackedFolder> folder;
  std::string path;  // in it
};

// Nothing for a path that leads into no packed folder.
std::optional<Place> in_packed(const fs::path& path, bool look_again = true) {
  const std::string text = path.lexically_normal().string();
  const std::string_view ending = kPackEnding;
  for (std::size_t at = text.find(ending); at != std::string::npos; at = text.find(ending, at + 1)) {
    const std::size_t end = at + ending.size();
    if (end != text.size() && text[end] != '/') continue;
    const fs::path file = text.substr(0, end);
    if (!gpunn::is_file(file)) continue;
    std::string inside = text.substr(std::min(end + 1, text.size()));
    while (inside.ends_with('/')) inside.pop_back();
    return Place{opened(file, look_again), std::move(inside)};
  }
  return std::nullopt;
}

const PackedFile& found_in(const Place& place, const fs::path& file) {
  const PackedFile* const found = place.folder->find(place.path);
  if (found == nullptr) throw Error("can't read " + file.string() + ": it is not there", ExitCode::missing);
  return *found;
}

}  // namespace

Content read(const fs::path& file, std::size_t limit) {
  const std::optional<Place> place = in_packed(file, false);
  if (!place) return Content(gpunn::read_text(file, limit));
  const PackedFile& found = found_in(*place, file);
  if (found.bytes > limit) {
    throw Error(file.string() + ": the file has " + std::to_string(found.bytes) + " bytes; expected at most " +
                std::to_string(limit));
  }
  return {place->folder, place->folder->content(found)};
}

std::string read_text(const fs::path& file, std::size_t limit) { return std::string(read(file, limit).text()); }

uint64_t size(const fs::path& file) {
  const std::optional<Place> place = in_packed(file, false);
  return place ? found_in(*place, file).bytes : InputFile(file).bytes();
}

bool is_file(const fs::path& path) {
  const std::optional<Place> place = in_packed(path, false);
  return place ? place->folder->find(place->path) != nullptr : gpunn::is_file(path);
}

bool is_folder(const fs::path& path) {
  const std::optional<Place> place = in_packed(path);
  return place ? place->folder->has_folder(place->path) : gpunn::is_folder(path);
}

bool path_exists(const fs::path& path) { return is_file(path) || is_folder(path) || gpunn::path_exists(path); }

std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  if (const std::optional<Place> place = in_packed(folder)) {
    if (!place->folder->has_folder(place->path)) fail_to_list(folder, "it is not there");
    const std::string prefix = place->path.empty() ? "" : place->path + '/';
    for (const PackedFile& file : place->folder->files()) {
      if (!file.path.starts_with(prefix)) continue;
      const std::size_t slash = file.path.find('/', prefix.size());
      if (slash == std::string::npos) continue;
      std::string name = file.path.substr(prefix.size(), slash - prefix.size());
      if (!is_hidden(name)) names.push_back(std::move(name));
    }
  } else {
    std::error_code code, ignored;  // a link to nowhere is an error of its own, and no folder
    for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
      if (it->is_directory(ignored) && !is_hidden(it->path())) names.push_back(it->path().filename().string());
    }
    if (code) fail_to_list(folder, code.message());
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

namespace {

// Until `test` is true of a file.
bool visit_files(const fs::path& folder, bool deep, const std::function<bool(const fs::path& file)>& test) {
  if (const std::optional<Place> place = in_packed(folder)) {
    if (!place->folder->has_folder(place->path)) fail_to_list(folder, "it is not there");
    const std::string prefix = place->path.empty() ? "" : place->path + '/';
    for (const PackedFile& file : place->folder->files()) {
      if (!file.path.starts_with(prefix)) continue;
      const std::string below = file.path.substr(prefix.size());
      if ((deep || below.find('/') == std::string::npos) && test(folder / below)) return true;
    }
    return false;
  }
  std::error_code code, ignored;
  for (fs::recursive_directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    if (is_hidden(it->path())) {
      it.disable_recursion_pending();
      continue;
    }
    if (!it->is_directory(ignored)) {
      if (test(it->path())) return true;
    } else if (!deep) {
      it.disable_recursion_pending();
    }
  }
  if (code) fail_to_list(folder, code.message());
  return false;
}

}  // namespace

void each_file_beneath(const fs::path& folder, const std::function<void(const fs::path& file)>& take) {
  visit_files(folder, true, [&](const fs::path& file) {
    take(file);
    return false;
  });
}

bool any_file_beneath(const fs::path& folder, const std::function<bool(const fs::path& file)>& test) {
  return visit_files(folder, true, test);
}

bool any_file_in(const fs::path& folder, const std::function<bool(const fs::path& file)>& test) {
  return visit_files(folder, false, test);
}

}  // namespace gpunn::data::files
