#include <gpunn/error.hpp>

#include <algorithm>
#include <optional>
#include <string_view>

#include "data/pack/files.hpp"
#include "data/segmentation/map_files.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

std::map<Part, fs::path> map_lists_in(const fs::path& folder) {
  std::map<Part, fs::path> lists;
  if (!files::is_folder(folder)) return lists;
  files::each_file_beneath(folder, [&](const fs::path& file) {
    if (file.parent_path() != folder || file.extension() != ".txt") return;
    const std::optional<PartName> part = part_named(file.stem().string());
    if (!part || !part->whole) return;
    fs::path& known = lists[part->part];
    if (known.empty() || file.stem().native().size() < known.stem().native().size()) known = file;
  });
  return lists;
}

std::vector<MapPair> read_map_list(const fs::path& list, const fs::path& root, const std::vector<MapPair>& known) {
  std::map<std::string, MapPair> by_name;
  for (const MapPair& pair : known) {
    by_name.emplace(pair.picture.stem().string(), pair);
    by_name.emplace(pair.picture.lexically_relative(root).generic_string(), pair);
  }
  std::vector<MapPair> pairs;
  const std::string text = files::read_text(list);
  std::string_view rest = text;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::string place = list.string() + ":" + std::to_string(number) + ": ";
    constexpr std::string_view kBlanks = " \t\r,";
    std::vector<std::string> words;
    while (line.find_first_not_of(kBlanks) != std::string_view::npos) {
      line.remove_prefix(line.find_first_not_of(kBlanks));
      const std::size_t length = std::min(line.find_first_of(kBlanks), line.size());
      words.emplace_back(line.substr(0, length));
      line.remove_prefix(length);
    }
    if (words.empty()) continue;
    if (words.size() == 1) {
      const auto found = by_name.find(words[0]);
      if (found == by_name.end()) throw Error(place + "no picture with a map is called " + words[0]);
      pairs.push_back(found->second);
      continue;
    }
    const auto file = [&](const std::string& name) {
      for (const fs::path& folder : {list.parent_path(), root}) {
        if (files::is_file(folder / name)) return folder / name;
      }
      throw Error(place + "there is no file " + (root / name).string() +
                  "; expected a picture and its map on each line, as paths below " + root.string());
    };
    pairs.push_back({file(words[0]), file(words[1])});
  }
  return pairs;
}

}  // namespace gpunn::data
