#include "data/folders/folder_parts.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "common/text.hpp"
#include "data/folders/folder_scan.hpp"
#include "data/pack/files.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostFoldersNamed = 6;

struct Word {
  std::string_view text;
  std::optional<Part> part;  // nothing: a word that says nothing about the part
};

// A name means a part if it is put together of these words, with at least one of a part.
constexpr std::array<Word, 35> kWords = {{{"training", Part::train},
                                          {"train", Part::train},
                                          {"trn", Part::train},
                                          {"validation", Part::validation},
                                          {"validate", Part::validation},
                                          {"valid", Part::validation},
                                          {"val", Part::validation},
                                          {"development", Part::validation},
                                          {"dev", Part::validation},
                                          {"testing", Part::test},
                                          {"test", Part::test},
                                          {"tst", Part::test},
                                          {"evaluation", Part::test},
                                          {"eval", Part::test},
                                          {"holdout", Part::test},
                                          {"heldout", Part::test},
                                          {"dataset", {}},
                                          {"data", {}},
                                          {"set", {}},
                                          {"subset", {}},
                                          {"images", {}},
                                          {"image", {}},
                                          {"imgs", {}},
                                          {"img", {}},
                                          {"pictures", {}},
                                          {"picture", {}},
                                          {"photos", {}},
                                          {"photo", {}},
                                          {"samples", {}},
                                          {"files", {}},
                                          {"folder", {}},
                                          {"dir", {}},
                                          {"split", {}},
                                          {"part", {}},
                                          {"all", {}}}};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) > 127;
}

// The part that letters mean, all of them taken up by words. "trainval" is the training part, as of PASCAL VOC.
std::optional<Part> part_of_words(std::string_view letters) {
  // The parts named in front of each place; nothing: no words end there.
  std::vector<std::optional<std::set<Part>>> found(letters.size() + 1);
  found[0].emplace();
  for (std::size_t at = 0; at < letters.size(); ++at) {
    if (!found[at]) continue;
    for (const Word& word : kWords) {
      if (!letters.substr(at).starts_with(word.text)) continue;
      std::optional<std::set<Part>>& next = found[at + word.text.size()];
      if (next && !next->empty()) continue;
      next = found[at];
      if (word.part) next->insert(*word.part);
    }
  }
  if (!found.back() || found.back()->empty()) return std::nullopt;
  const std::set<Part>& parts = *found.back();
  if (parts.size() == 1) return *parts.begin();
  return parts == std::set{Part::train, Part::validation} ? std::optional(Part::train) : std::nullopt;
}

// "TrainSet_2" is "Train", "Set".
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  bool inside = false, small = false;
  for (const char c : name) {
    const bool capital = c >= 'A' && c <= 'Z';
    if (is_letter(c) && (!inside || (capital && small))) words.emplace_back();
    inside = is_letter(c);
    small = inside && !capital;
    if (inside) words.back() += lower(c);
  }
  return words;
}

bool has_images(const fs::path& folder) { return files::any_file_beneath(folder, is_image_name); }

// Without `apart`, which is another part.
std::vector<std::string> folders_with_images(const fs::path& folder, const fs::path& apart = {}) {
  std::vector<std::string> names = files::folders_in(folder);
  std::erase_if(names, [&](const std::string& name) {
    return (folder / name).lexically_normal() == apart || !has_images(folder / name);
  });
  return names;
}

bool has_images_of_its_own(const fs::path& folder) { return files::any_file_in(folder, is_image_name); }

std::string with_count(const fs::path& root, const std::string& name) {
  const std::size_t images = images_beneath(root / name).size();
  return name + " (" + std::to_string(images) + (images == 1 ? " image)" : " images)");
}

constexpr std::array<std::pair<Part, const char*>, 3> kPartKeys = {{{Part::train, "data.train_folder"},
                                                                    {Part::validation, "data.validation_folder"},
                                                                    {Part::test, "data.test_folder"}}};

using NamesOfParts = std::map<Part, std::vector<std::string>>;

// The keys for the reading that the names are those of parts.
std::string keys_for(const NamesOfParts& parts) {
  std::vector<std::string> keys;
  for (const auto& [part, key] : kPartKeys) {
    const auto found = parts.find(part);
    if (found == parts.end()) continue;
    std::string text = std::string(key) + ": " + found->second.front();
    if (found->second.size() > 1) {
      text += " (or " + join({found->second.begin() + 1, found->second.end()}, ", ") + ")";
    }
    keys.push_back(std::move(text));
  }
  return join(keys, ", ");
}

// The question, and the answer for the reading that each folder is a class.
std::string two_ways(const fs::path& root, const std::vector<std::string>& names, Contents contents) {
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() == kMostFoldersNamed) {
      shown.push_back("and " + std::to_string(names.size() - kMostFoldersNamed) + " more");
      break;
    }
    shown.push_back(with_count(root, name));
  }
  return root.string() + ": its folders can be read in two ways: " + join(shown, ", ") + ".\n" +
         (contents == Contents::classes ? "If each folder is a class, set data.train_folder: .\n"
                                        : "If all of them are to train on, set data.train_folder: .\n");
}

[[noreturn]] void ask(const fs::path& root, const std::vector<std::string>& names, NamesOfParts parts,
                      Contents contents) {
  std::size_t named = 0;
  for (const auto& [part, some] : parts) named += some.size();
  std::string text = two_ways(root, names, contents);
  if (parts.contains(Part::train)) {
    text += "If they are parts of the data set, set " + keys_for(parts);
  } else if (named < names.size()) {
    parts[Part::train] = {"."};
    text += "If some are parts and the others " +
            std::string(contents == Contents::classes ? "classes of the training part" : "are to train on") + ", set " +
            keys_for(parts);
  } else {
    text +=
        "If they are parts, the training part is missing: put it next to them in a folder train. To train on one of "
        "them, set data.train_folder: " +
        names.front();
  }
  throw Error(text, ExitCode::usage);
}

[[noreturn]] void ask_about_same_folders(const fs::path& root, const std::vector<std::string>& names) {
  std::string text = two_ways(root, names, Contents::classes) +
                     "If they are parts of the data set, each with a folder for each class, name them by "
                     "data.train_folder, data.validation_folder and data.test_folder";
  const std::vector<std::string> inside = folders_with_images(root / names.front());
  if (std::ranges::any_of(inside, [](const std::string& name) { return part_named(name).has_value(); })) {
    text += "\nIf their own folders are the parts, move each class into its part: train/CLASS, test/CLASS";
  }
  throw Error(text, ExitCode::usage);
}

[[noreturn]] void ask_about_names(const fs::path& root, const std::vector<std::string>& names) {
  throw Error(
      two_ways(root, names, Contents::classes) +
          "If their names hold a part and a class, move each into a folder of its part: train/CLASS, test/CLASS. "
          "If they are parts with images of no class, data.dataset: photograph_folder reads them",
      ExitCode::usage);
}

void require_there(const fs::path& folder, const char* key) {
  if (files::is_folder(folder)) return;
  throw Error(folder.string() + (files::path_exists(folder) ? " is no folder" : ": no such folder") + "; " + key +
                  " has to name the folder of the images",
              ExitCode::missing);
}

// Goes into a folder as long as it only holds another one with folders of its own. Archives are often packed so.
fs::path unwrapped(fs::path folder, Contents contents, bool through_parts, std::vector<std::string>& notes,
                   const fs::path& apart = {}) {
  const fs::path outer = folder;
  while (true) {
    const std::vector<std::string> names = folders_with_images(folder, apart);
    if (names.size() != 1 || has_images_of_its_own(folder)) break;
    const std::optional<PartName> part = part_named(names.front());
    if (!through_parts && part && part->whole) break;
    if (folders_with_images(folder / names.front()).empty()) break;
    folder /= names.front();
  }
  if (folder != outer && contents == Contents::classes) {
    notes.push_back(outer.string() + " only holds the folder " + folder.lexically_relative(outer).string() +
                    ": the folders in that one are read");
  }
  return folder;
}

// Whether several folders in `root` hold the same class folders, as parts in another language or the folds of a cross
// validation do. A single name, such as "images", says nothing.
bool have_same_folders(const fs::path& root, const std::vector<std::string>& names) {
  constexpr std::size_t kFewestClasses = 2;
  std::map<std::vector<std::string>, std::size_t> uses;
  for (const std::string& name : names) {
    const std::vector<std::string> inside = folders_with_images(root / name);
    if (inside.size() >= kFewestClasses && ++uses[inside] > 1) return true;
  }
  return false;
}

// Whether names differ in their part only, such as cats_train and cats_test.
bool name_class_and_part(const std::vector<std::string>& names) {
  std::map<std::string, Part> rests;
  return std::ranges::any_of(names, [&](const std::string& name) {
    const std::optional<PartName> part = part_named(name);
    return part && !part->whole && rests.emplace(part->rest, part->part).first->second != part->part;
  });
}

// By the names of the folders in `root`.
void recognise(const fs::path& root, Contents contents, const fs::path& apart, PartFolders& found) {
  const std::vector<std::string> names = folders_with_images(root, apart);
  NamesOfParts parts;
  std::size_t named = 0, whole = 0;
  for (const std::string& name : names) {
    const std::optional<PartName> part = part_named(name);
    if (!part) continue;
    // A class may have a name like test_tube, but its folder holds images and not classes.
    if (!part->whole && contents == Contents::classes && folders_with_images(root / name).empty()) continue;
    parts[part->part].push_back(name);
    ++named;
    whole += part->whole ? 1 : 0;
  }
  const bool all = named == names.size() && (contents == Contents::classes || !has_images_of_its_own(root));
  // A class with folders of its own is rare, so that one word is enough there.
  const bool likely =
      contents == Contents::classes ? named > 0 : whole > 0 || (parts.size() > 1 && parts.contains(Part::train));
  if (!likely) {
    if (contents == Contents::classes) {
      if (have_same_folders(root, names)) ask_about_same_folders(root, names);
      if (name_class_and_part(names)) ask_about_names(root, names);
    }
    found.train = root;
    return;
  }
  const bool twice = std::ranges::any_of(parts, [](const auto& part) { return part.second.size() > 1; });
  if (!all || twice || !parts.contains(Part::train)) ask(root, names, parts, contents);
  found.recognised = true;
  const auto folder_of = [&](Part part) { return parts.contains(part) ? root / parts[part].front() : fs::path(); };
  found.train = folder_of(Part::train);
  found.validation = folder_of(Part::validation);
  found.test = folder_of(Part::test);
}

fs::path without_slash(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

bool lies_in(const fs::path& folder, const fs::path& other) {
  const fs::path relative = folder.lexically_normal().lexically_relative(other.lexically_normal());
  return !relative.empty() && relative != "." && *relative.begin() != "..";
}

PartFolders given_parts(const DataConfig& config) {
  PartFolders found;
  const auto beneath = [&](const std::string& name) {
    return name.empty() ? fs::path() : without_slash(config.path / name);
  };
  found.train = beneath(config.train_folder.empty() ? "." : config.train_folder);
  found.validation = beneath(config.validation_folder);
  found.test = beneath(config.test_folder);
  require_there(found.train, "data.train_folder");
  if (!found.validation.empty()) require_there(found.validation, "data.validation_folder");
  if (!found.test.empty()) require_there(found.test, "data.test_folder");
  return found;
}

// data.test_path, or the test part in it.
fs::path test_folder(const fs::path& given, Contents contents, std::vector<std::string>& notes) {
  const fs::path path = without_slash(given);
  require_there(path, "data.test_path");
  const std::vector<std::string> names = folders_with_images(path);
  std::vector<std::string> tests;
  for (const std::string& name : names) {
    const std::optional<PartName> part = part_named(name);
    if (!part || !part->whole) return unwrapped(path, contents, true, notes);
    if (part->part == Part::test) tests.push_back(name);
  }
  return tests.size() == 1 ? path / tests.front() : path;
}

}  // namespace

std::optional<PartName> part_named(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  if (const std::optional<Part> part = part_of_words(join(words, ""))) return PartName{*part, true};
  std::set<Part> parts;
  std::vector<std::string> others;
  for (const std::string& word : words) {
    if (const std::optional<Part> part = part_of_words(word)) {
      parts.insert(*part);
    } else {
      others.push_back(word);
    }
  }
  if (parts.size() != 1) return std::nullopt;
  return PartName{*parts.begin(), false, join(others, " ")};
}

PartFolders part_folders(const DataConfig& config, Contents contents) {
  require_there(config.path, "data.path");
  const bool given = !config.train_folder.empty() || !config.validation_folder.empty() || !config.test_folder.empty();
  PartFolders found;
  if (given) {
    found = given_parts(config);
  } else {
    const fs::path apart = without_slash(config.test_path);
    recognise(unwrapped(without_slash(config.path), contents, false, found.notes, apart), contents, apart, found);
  }
  found.root = without_slash(config.path);
  if (!config.test_path.empty()) {
    const fs::path test = test_folder(config.test_path, contents, found.notes);
    if (!found.test.empty() && test.lexically_normal() != found.test.lexically_normal()) {
      throw Error("the test part is given twice: " + found.test.string() + " and data.test_path, " + test.string() +
                      "; leave data.test_path out, or set data.train_folder: " +
                      found.train.lexically_relative(found.root).string() + " to take no part by its name",
                  ExitCode::usage);
    }
    found.test = test;
  }
  for (const fs::path* part : {&found.validation, &found.test}) {
    if (!part->empty() && lies_in(*part, found.train)) found.apart.push_back(*part);
  }
  if (contents == Contents::classes) {
    found.train = unwrapped(found.train, contents, true, found.notes);
    if (!found.validation.empty() || !found.test.empty()) {
      const std::vector<std::string> classes = files::folders_in(found.train);
      for (fs::path* part : {&found.validation, &found.test}) {
        if (part->empty()) continue;
        const std::vector<std::string> inside = folders_with_images(*part);
        const bool one_class = inside.size() == 1 && std::ranges::find(classes, inside.front()) != classes.end();
        if (!one_class) *part = unwrapped(*part, contents, true, found.notes);
      }
    }
  }
  if (found.recognised) {
    std::vector<std::string> told = {"train: " + found.train.string()};
    if (!found.validation.empty()) told.push_back("validation: " + found.validation.string());
    if (!found.test.empty()) told.push_back("test: " + found.test.string());
    found.notes.push_back("the parts are recognised by the names of their folders: " + join(told, ", "));
  }
  return found;
}

}  // namespace gpunn::data
