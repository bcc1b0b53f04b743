#include "data/download/locate.hpp"

#include <gpunn/error.hpp>

#include <cstdlib>

#include "common/cache_folder.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A folder that this user may not look into is one without the set. Only of the one that the user named is it an error.
std::string why_not_in(const DatasetRow& row, const fs::path& folder, bool named) {
  try {
    return row.why_not_in(folder);
  } catch (const Error& error) {
    if (named) throw;
    return error.what();
  }
}

// True where the set is found in `folder`.
bool look_in(const DatasetRow& row, const fs::path& folder, Search& search, bool named = false) {
  std::string why_not = why_not_in(row, folder, named);
  const bool here = why_not.empty();
  search.places.push_back({folder, std::move(why_not)});
  if (here) search.found = folder;
  return here;
}

bool look_in_and_beneath(const DatasetRow& row, const fs::path& folder, Search& search, bool named) {
  if (look_in(row, folder, search, named)) return true;
  std::error_code ignored;
  for (const std::string& name : row.folder_names) {
    // Of the names that aren't there, the first alone is worth telling.
    const bool tell = name == row.folder_names.front() || fs::is_directory(folder / name, ignored);
    if (tell && look_in(row, folder / name, search, named)) return true;
  }
  return false;
}

}  // namespace

fs::path cache_folder(const DatasetRow& row) {
  const fs::path cache = gpunn::cache_folder();
  return cache.empty() ? cache : cache / row.name;
}

Search locate(const DatasetRow& row, const fs::path& first) {
  Search search;
  if (!first.empty() && look_in_and_beneath(row, first, search, true)) return search;
  const std::string data_dir = environment("GPUNN_DATA_DIR");
  if (!data_dir.empty() && look_in_and_beneath(row, data_dir, search, false)) return search;
  for (const fs::path& folder : row.system_folders) {
    if (look_in(row, folder, search)) return search;
  }
  const fs::path cache = cache_folder(row);
  if (!cache.empty()) look_in(row, cache, search);
  return search;
}

std::string list_of(const Search& search) {
  std::string text;
  for (const LookedIn& place : search.places) {
    if (!text.empty()) text += "\n";
    text += "  " + place.folder.string() + ": " + (place.why_not.empty() ? "here" : place.why_not);
  }
  return text;
}

}  // namespace gpunn::data
