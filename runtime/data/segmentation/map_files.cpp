#include "data/segmentation/map_files.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/text.hpp"
#include "data/folders/folder_parts.hpp"
#include "data/folders/folder_scan.hpp"
#include "data/images/image.hpp"
#include "data/images/picture.hpp"
#include "data/pack/files.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDeciders = "data.images and data.maps name the folders";

// Images of a folder by their names below it, without extension and without the ending that all of them have.
struct Candidate {
  fs::path folder;
  std::map<std::string, fs::path> files;
};

// "_mask" of "1_mask", "2_mask": from a separator on, so that numbers keep their digits.
std::string common_ending(const std::vector<std::string>& names) {
  constexpr std::string_view kSeparators = "_-. ";
  if (names.size() < 2) return "";
  std::string ending = names.front();
  for (const std::string& name : names) {
    const auto [a, b] = std::mismatch(ending.rbegin(), ending.rend(), name.rbegin(), name.rend());
    ending.erase(ending.begin(), a.base());
  }
  const std::size_t separator = ending.find_first_of(kSeparators);
  return separator == std::string::npos ? "" : ending.substr(separator);
}

Candidate candidate_of(const fs::path& folder, const std::vector<fs::path>& files) {
  std::vector<std::string> names;
  for (const fs::path& file : files) {
    names.push_back((file.parent_path() / file.stem()).lexically_relative(folder).generic_string());
  }
  const std::string ending = common_ending(names);
  Candidate result{.folder = folder, .files = {}};
  for (std::size_t i = 0; i < files.size(); ++i) {
    result.files.emplace(names[i].substr(0, names[i].size() - ending.size()), files[i]);
  }
  return result;
}

// Whether more than half of the smaller one's names are names of the other.
bool are_parallel(const Candidate& a, const Candidate& b) {
  const auto shared = std::ranges::count_if(a.files, [&](const auto& one) { return b.files.contains(one.first); });
  return 2 * static_cast<std::size_t>(shared) > std::min(a.files.size(), b.files.size());
}

// Puts candidates together that are parallel to each other, or to the same ones.
std::vector<std::vector<Candidate>> parallel_ones(std::vector<Candidate> some) {
  std::vector<std::vector<Candidate>> groups;
  for (Candidate& one : some) {
    std::vector<std::vector<Candidate>> others;
    std::vector<Candidate> mine;
    for (std::vector<Candidate>& group : groups) {
      const bool parallel =
          std::ranges::any_of(group, [&](const Candidate& other) { return are_parallel(one, other); });
      if (parallel) {
        std::ranges::move(group, std::back_inserter(mine));
      } else {
        others.push_back(std::move(group));
      }
    }
    mine.push_back(std::move(one));
    others.push_back(std::move(mine));
    groups = std::move(others);
  }
  return groups;
}

// What some files of a folder hold.
struct Content {
  bool exact = true;  // PNGs of one channel, or in colours
  bool colours = false;
  double values = 0;   // different ones in a file, on average
  bool counts = true;  // ids are 1 to n in each file, and 0
  int64_t most = 0;    // the largest n
};

void look_into(const fs::path& file, Content& content) {
  constexpr double kAllBytes = 256;
  const files::Content bytes = files::read(file, kMostImageFileBytes);
  constexpr std::array<uint8_t, 4> kPng = {0x89, 'P', 'N', 'G'};
  if (bytes.bytes().size() < kPng.size() || !std::equal(kPng.begin(), kPng.end(), bytes.bytes().begin())) {
    content.exact = false;
    content.values += kAllBytes * kAllBytes;
    return;
  }
  const Picture picture = decode_png_as_stored(bytes.bytes(), file);
  std::set<uint64_t> values;
  const auto channels = static_cast<std::size_t>(picture.channels);
  for (std::size_t i = 0; i < picture.values.size(); i += channels) {
    uint64_t value = 0;
    for (std::size_t c = 0; c < channels; ++c) value = value << 16 | picture.values[i + c];
    values.insert(value);
  }
  content.values += static_cast<double>(values.size());
  content.colours |= channels > 1;
  values.erase(0);
  values.erase(255);
  const int64_t last = values.empty() ? 0 : static_cast<int64_t>(*values.rbegin());
  content.counts &= last == static_cast<int64_t>(values.size());
  content.most = std::max(content.most, last);
}

Content content_of(const Candidate& candidate) {
  constexpr std::size_t kFiles = 8;
  Content content;
  std::vector<fs::path> files;
  for (const auto& [name, file] : candidate.files) files.push_back(file);
  const std::size_t count = std::min(kFiles, files.size());
  for (std::size_t i = 0; i < count; ++i) look_into(files[i * files.size() / count], content);
  content.values /= static_cast<double>(std::max<std::size_t>(count, 1));
  return content;
}

class MapSearch {
 public:
  MapSearch(fs::path root, const SegmentationSet& settings) : root_(std::move(root)), settings_(settings) {}

  // Throws Error(missing) if there are none.
  std::vector<MapPair> run() {
    if (!settings_.images.empty() && !settings_.maps.empty() && files::is_folder(root_ / settings_.images) &&
        files::is_folder(root_ / settings_.maps)) {
      join_files(below(root_ / settings_.images), below(root_ / settings_.maps));
    } else {
      look_below(root_);
    }
    if (pairs_.empty()) {
      throw Error(!undecided_.empty()
                      ? undecided_
                      : root_.string() + ": no pictures with label maps; expected two folders with files of the same " +
                            "names, or lists of pictures and maps (PART.txt). " + kDeciders,
                  ExitCode::missing);
    }
    std::ranges::sort(pairs_, {}, [](const MapPair& pair) { return pair.picture.native(); });
    return std::move(pairs_);
  }
  void tell(std::vector<std::string>& notes) const {
    for (const std::string& decision : decisions_) notes.push_back(decision);
    if (!alone_.empty()) {
      notes.push_back(
          named_count(alone_, "picture has no map and is left out", "pictures have no map and are left out"));
    }
  }

 private:
  static Candidate below(const fs::path& folder) { return candidate_of(folder, images_beneath(folder)); }

  // Folders next to each other, or the files of a folder by their kinds.
  std::vector<Candidate> candidates_in(const fs::path& folder) const {
    std::vector<Candidate> result;
    for (const std::string& name : files::folders_in(folder)) {
      Candidate one = below(folder / name);
      if (!one.files.empty()) result.push_back(std::move(one));
    }
    return result;
  }
  static std::vector<Candidate> kinds_in(const fs::path& folder) {
    std::map<std::string, std::vector<fs::path>> by_kind;
    for (const fs::path& file : images_beneath(folder)) {
      if (file.parent_path() == folder) by_kind[file.extension().string()].push_back(file);
    }
    std::vector<Candidate> result;
    for (const auto& [kind, files] : by_kind) result.push_back(candidate_of(folder, files));
    return result;
  }

  // The part in a folder's name, or in that of another folder here that this name begins with: of "trainannot" next to
  // "train".
  static std::optional<Part> part_in(const std::string& name, const std::vector<std::string>& names) {
    if (const std::optional<PartName> part = part_named(name)) return part->part;
    for (const std::string& other : names) {
      const std::optional<PartName> part = part_named(other);
      if (part && part->whole && name.starts_with(other)) return part->part;
    }
    return std::nullopt;
  }

  void look_below(const fs::path& folder) {
    const std::vector<Candidate> candidates = candidates_in(folder);
    std::vector<std::string> names;
    for (const Candidate& one : candidates) names.push_back(one.folder.filename().string());
    std::map<std::optional<Part>, std::vector<Candidate>> by_part;
    for (std::size_t i = 0; i < candidates.size(); ++i) by_part[part_in(names[i], names)].push_back(candidates[i]);
    for (auto& [part, some] : by_part) {
      for (std::vector<Candidate>& together : parallel_ones(std::move(some))) {
        if (together.size() > 1 && choose(together)) continue;
        for (const Candidate& one : together) look_below(one.folder);
      }
    }
    std::vector<Candidate> kinds = kinds_in(folder);
    if (kinds.size() > 1 && are_parallel(kinds[0], kinds[1])) choose(kinds);
  }

  bool is_named(const Candidate& one, const std::string& name) const {
    if (name.empty()) return false;
    const std::string path = one.folder.lexically_relative(root_).generic_string();
    return path == name || path.ends_with("/" + name);
  }

  // Joins the pictures and the maps of some parallel folders. Returns false if none can be the maps: they may be parts,
  // with pictures and maps in each.
  bool choose(std::vector<Candidate>& some) {
    std::ranges::sort(some, {}, [](const Candidate& one) { return one.folder.native(); });
    std::vector<Content> contents;
    for (const Candidate& one : some) contents.push_back(content_of(one));
    const std::size_t count = some.size();
    const auto named = [&](const std::string& name) {
      for (std::size_t i = 0; i < count; ++i) {
        if (is_named(some[i], name)) return i;
      }
      return count;
    };
    std::size_t pictures = named(settings_.images);
    const std::size_t given = named(settings_.maps);
    if (pictures == count) {
      pictures = given == 0 ? 1 : 0;
      for (std::size_t i = 0; i < count; ++i) {
        if (i != given && contents[i].values > contents[pictures].values) pictures = i;
      }
    }
    std::vector<std::size_t> maps;
    const auto take = [&](const auto& fits) {
      maps.clear();
      for (std::size_t i = 0; i < count; ++i) {
        if (i != pictures && fits(contents[i])) maps.push_back(i);
      }
    };
    const bool in_colours = !settings_.colour_table.empty();
    const auto can_be = [&](const Content& one) {
      return one.exact && 2 * one.values < contents[pictures].values && (in_colours || !one.colours);
    };
    take(can_be);
    if (maps.size() > 1) {
      take([&](const Content& one) { return can_be(one) && !(one.counts && one.most > 1 && !one.colours); });
    }
    if (given < count) maps = {given};
    if (maps.empty()) {
      undecided_ = text_of_undecided(some, {});
      return false;
    }
    if (maps.size() > 1) throw Error(text_of_undecided(some, maps), ExitCode::usage);
    std::vector<std::string> others;
    for (std::size_t i = 0; i < count; ++i) {
      if (i != pictures && i != maps[0]) others.push_back(some[i].folder.filename().string());
    }
    if (!others.empty() && (pictures != named(settings_.images) || maps[0] != given)) {
      decisions_.insert("the maps are read from folders called " + some[maps[0]].folder.filename().string() + ", not " +
                        join(others, ", ") + "; " + kDeciders);
    }
    join_files(some[pictures], some[maps[0]]);
    return true;
  }

  static std::string text_of_undecided(const std::vector<Candidate>& some, const std::vector<std::size_t>& maps) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (maps.empty() || std::ranges::find(maps, i) != maps.end()) names.push_back(some[i].folder.filename().string());
    }
    return some[0].folder.parent_path().string() + ": " +
           (maps.empty() ? "none of the folders with files of the same names has label maps, which are PNGs: "
                         : "several folders can be the label maps: ") +
           join(names, ", ") + "; " + kDeciders +
           (maps.empty() ? ", and data.colour_table the table of colours if maps are in colours" : "");
  }

  void join_files(const Candidate& pictures, const Candidate& maps) {
    for (const auto& [name, picture] : pictures.files) {
      const auto map = maps.files.find(name);
      if (map == maps.files.end()) {
        alone_.push_back(picture.lexically_relative(root_).string());
      } else {
        pairs_.push_back({picture, map->second});
      }
    }
  }

  fs::path root_;
  const SegmentationSet& settings_;
  std::vector<MapPair> pairs_;
  std::set<std::string> decisions_;
  std::vector<std::string> alone_;
  std::string undecided_;  // the last folders that could not be told apart
};

std::vector<MapPair>& pairs_of(MapFiles& files, Part part) {
  if (part == Part::train) return files.train;
  return part == Part::validation ? files.validation : files.test;
}

bool lies_below(const fs::path& file, const fs::path& folder) {
  const fs::path relative = file.lexically_normal().lexically_relative(folder.lexically_normal());
  return !relative.empty() && *relative.begin() != "..";
}

// The part that the folders above a picture name, the nearest first.
std::optional<Part> part_of(const fs::path& picture, const fs::path& root, const DataConfig& config) {
  const std::array<std::pair<const std::string*, Part>, 3> given = {{{&config.test_folder, Part::test},
                                                                     {&config.validation_folder, Part::validation},
                                                                     {&config.train_folder, Part::train}}};
  bool any = false;
  for (const auto& [folder, part] : given) {
    if (folder->empty()) continue;
    any = true;
    if (lies_below(picture, root / *folder)) return part;
  }
  if (any) return std::nullopt;
  std::optional<Part> weak;
  for (fs::path folder = picture.parent_path();
       folder != root && folder.has_relative_path() && folder != folder.parent_path(); folder = folder.parent_path()) {
    const std::optional<PartName> part = part_named(folder.filename().string());
    if (part && part->whole) return part->part;
    if (part && !weak) weak = part->part;
  }
  return weak;
}

}  // namespace

MapFiles find_map_files(const DataConfig& config, const SegmentationSet& settings) {
  const fs::path root = config.path.has_filename() ? config.path : config.path.parent_path();
  MapFiles files;
  std::map<Part, fs::path> lists;
  const fs::path given = settings.lists.empty() ? root : root / settings.lists;
  for (const fs::path& folder : {given, root / "ImageSets" / "Segmentation"}) {
    lists = map_lists_in(folder);
    if (!lists.empty()) break;
  }
  const bool listed = !lists.empty() && config.train_folder.empty();
  MapSearch search(root, settings);
  std::optional<std::vector<MapPair>> found;
  const auto pairs_below = [&]() -> const std::vector<MapPair>& {
    if (!found) found = search.run();
    return *found;
  };
  if (listed) {
    for (const auto& [part, list] : lists) {
      const std::string text = data::files::read_text(list);
      const bool single = text.find_first_of(" \t,") >= text.find('\n');
      pairs_of(files, part) = read_map_list(list, root, single ? pairs_below() : std::vector<MapPair>());
    }
    files.notes.push_back("the parts are those of the lists in " + lists.begin()->second.parent_path().string());
  } else {
    for (const MapPair& pair : pairs_below()) {
      const std::optional<Part> part = part_of(pair.picture, root, config);
      if (part || config.train_folder.empty()) pairs_of(files, part.value_or(Part::train)).push_back(pair);
    }
    search.tell(files.notes);
  }
  if (!config.test_path.empty()) {
    MapSearch other(config.test_path, settings);
    files.test = other.run();
    other.tell(files.notes);
  }
  if (files.train.empty()) std::swap(files.train, files.validation.empty() ? files.test : files.validation);
  return files;
}

}  // namespace gpunn::data
