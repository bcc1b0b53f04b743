#include "data/segmentation/map_classes.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "common/text.hpp"
#include "data/pack/files.hpp"
#include "data/segmentation/label_map.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

struct NamedId {
  int64_t id = 0;
  std::string name;
};

bool stands_for_no_class(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  constexpr std::array<std::string_view, 5> kNames = {"void", "ignore", "ignored", "unlabelled", "unlabeled"};
  return std::ranges::find(kNames, name) != kNames.end();
}

std::string_view trimmed(std::string_view text, std::string_view around) {
  const std::size_t first = text.find_first_not_of(around);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(around) - first + 1);
}

// A name on each line; where all lines begin with a number, that is the id.
std::vector<NamedId> read_class_names(const fs::path& file) {
  std::vector<NamedId> lines, numbered;
  const std::string text = files::read_text(file);
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, end), " \t\r");
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line[0] == '#') continue;
    lines.push_back({std::ssize(lines), std::string(line)});
    int64_t id = 0;
    const auto [at, error] = std::from_chars(line.data(), line.data() + line.size(), id);
    const std::string_view name = line.substr(static_cast<std::size_t>(at - line.data()));
    constexpr std::string_view kBetween = " \t:;,";
    if (error == std::errc() && !name.empty() && kBetween.find(name[0]) != std::string_view::npos) {
      numbered.push_back({id, std::string(trimmed(name, kBetween))});
    }
  }
  if (lines.empty()) throw Error(file.string() + ": no names; expected the name of a class on each line");
  if (numbered.size() < lines.size()) return lines;
  std::ranges::sort(numbered, {}, &NamedId::id);
  for (std::size_t i = 0; i < numbered.size(); ++i) {
    if (numbered[i].id < 0 || numbered[i].id > kIgnoredPixel || (i > 0 && numbered[i].id == numbered[i - 1].id)) {
      throw Error(file.string() + ": the id " + std::to_string(numbered[i].id) + " of " + numbered[i].name +
                  "; expected different ids of 0 to 255");
    }
  }
  return numbered;
}

std::vector<NamedId> named_ids(const std::vector<std::string>& names) {
  std::vector<NamedId> result;
  for (const std::string& name : names) result.push_back({std::ssize(result), name});
  return result;
}

// Those that the user gives.
std::vector<NamedId> given_names(const DataConfig& config, const SegmentationSet& settings,
                                 const ColourTable* colours) {
  if (!settings.class_names.empty()) return named_ids(settings.class_names);
  if (!settings.classes.empty()) return read_class_names(settings.classes);
  if (colours != nullptr) return named_ids(colours->names());
  const fs::path usual = config.path / "classes.txt";
  return files::is_file(usual) ? read_class_names(usual) : std::vector<NamedId>();
}

}  // namespace

MapClasses MapClasses::of(std::vector<std::string> names, std::vector<int64_t> ids) {
  MapClasses classes{.names = std::move(names), .ids = std::move(ids), .class_of_id = {}};
  classes.class_of_id.fill(kUnknown);
  for (std::size_t i = 0; i < classes.names.size(); ++i) classes.class_of_id[i] = static_cast<int16_t>(i);
  classes.class_of_id[kIgnoredPixel] = kIgnoredPixel;
  return classes;
}

bool MapClasses::are_ids() const {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

void MapClasses::require(const std::bitset<256>& used, const fs::path& file) const {
  for (std::size_t id = 0; id < used.size(); ++id) {
    if (!used[id] || class_of_id[id] != kUnknown) continue;
    throw Error(file.string() + ": the map has the id " + std::to_string(id) + ", which is not of one of the " +
                std::to_string(names.size()) + " classes: " + join(names, ", ") +
                ". If it stands for no class, set data.ignore_index: " + std::to_string(id));
  }
}

MapClasses classes_of_maps(const DataConfig& config, const SegmentationSet& settings, const ColourTable* colours,
                           const std::bitset<256>& used, std::vector<std::string>& notes) {
  std::vector<NamedId> named = given_names(config, settings, colours);
  std::bitset<256> zero_and_255;
  zero_and_255.set(0).set(kIgnoredPixel);
  const bool mask =
      used[kIgnoredPixel] && (used | zero_and_255) == zero_and_255 && settings.ignore_index < 0 && named.size() <= 2;
  if (mask) notes.emplace_back("the maps have the ids 0 and 255 only: 255 is class 1, not ignored");
  if (named.empty()) {
    int64_t most = mask ? 1 : 0;
    for (int64_t id = 0; id < kIgnoredPixel; ++id) {
      if (used[static_cast<std::size_t>(id)] && id != settings.ignore_index) most = std::max(most, id);
    }
    for (int64_t id = 0; id <= most; ++id) named.push_back({id, std::to_string(id)});
  }
  MapClasses classes{.names = {}, .ids = {}, .class_of_id = {}};
  classes.class_of_id.fill(MapClasses::kUnknown);
  classes.class_of_id[kIgnoredPixel] = kIgnoredPixel;
  if (settings.ignore_index >= 0) classes.class_of_id[static_cast<std::size_t>(settings.ignore_index)] = kIgnoredPixel;
  for (const NamedId& one : named) {
    int16_t& place = classes.class_of_id[static_cast<std::size_t>(one.id)];
    if (place != MapClasses::kUnknown) continue;
    if (settings.ignore_index < 0 && stands_for_no_class(one.name)) {
      place = kIgnoredPixel;
      notes.push_back("the id " + std::to_string(one.id) + ", " + one.name +
                      ", is ignored, as its name says; data.ignore_index names another");
      continue;
    }
    place = static_cast<int16_t>(classes.names.size());
    classes.names.push_back(one.name);
    classes.ids.push_back(one.id);
  }
  if (mask) {
    classes.class_of_id[kIgnoredPixel] = 1;
    if (classes.ids.size() > 1) classes.ids[1] = kIgnoredPixel;
  }
  if (classes.names.size() < 2) {
    throw Error(config.path.string() + ": the label maps have " + std::to_string(classes.names.size()) +
                " class; expected at least two");
  }
  return classes;
}

Field map_field(std::vector<std::string> names, int64_t height, int64_t width) {
  return {.name = "map",
          .role = Role::target,
          .kind = "label_map",
          .type = {DType::u8, {height, width}},
          .names = std::move(names),
          .ignored = kIgnoredPixel};
}

}  // namespace gpunn::data
