#include "data/folders/folder_scan.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "common/text.hpp"
#include "data/pack/files.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

const std::array<const char*, 6> kEndings = {".png", ".jpg", ".jpeg", ".pgm", ".ppm", ".pnm"};

constexpr std::size_t kMostClassesNamed = 5;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool lies_in_any(const fs::path& file, const std::vector<fs::path>& folders) {
  return std::ranges::any_of(folders, [&](const fs::path& folder) {
    const fs::path below = file.lexically_relative(folder);
    return !below.empty() && *below.begin() != "..";
  });
}

// The images beneath a folder, sorted; `other` is told of each file that is none.
template <class F>
std::vector<fs::path> find_images(const fs::path& folder, const std::vector<fs::path>& apart, F other) {
  std::vector<fs::path> files;
  files::each_file_beneath(folder, [&](const fs::path& file) {
    if (lies_in_any(file, apart)) return;
    if (is_image_name(file)) {
      files.push_back(file);
    } else {
      other(file);
    }
  });
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return files;
}

// One part: its classes and their files.
class PartScan {
 public:
  explicit PartScan(fs::path root, const std::vector<fs::path>& apart = {}, const std::string& advice = "")
      : root_(std::move(root)), classes_(files::folders_in(root_)) {
    std::erase_if(classes_, [&](const std::string& name) {
      return std::ranges::find(apart, (root_ / name).lexically_normal()) != apart.end();
    });
    if (classes_.empty()) {
      throw Error(
          root_.string() + ": expected a folder for each class, with its images inside; found no folder" + advice,
          ExitCode::missing);
    }
    for (const std::string& name : classes_) files_.push_back(images_in(root_ / name, apart));
  }

  const std::vector<std::string>& classes() const { return classes_; }

  void require_images() const {
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      if (!files_[i].empty()) continue;
      throw Error((root_ / classes_[i]).string() + ": the class has no images; expected files ending in " + endings() +
                      ". Put some there or take the folder away" + first_other(),
                  ExitCode::missing);
    }
  }

  // The files with the labels that `classes` gives their folders: the first of each class, then the second, ...
  std::vector<LabelledFile> labelled(const std::vector<std::string>& classes) {
    std::size_t most = 0, all = 0;
    for (const auto& files : files_) {
      most = std::max(most, files.size());
      all += files.size();
    }
    std::vector<LabelledFile> result;
    result.reserve(all);
    for (std::size_t k = 0; k < most; ++k) {
      for (std::size_t i = 0; i < classes_.size(); ++i) {
        if (k >= files_[i].size()) continue;
        const auto label = std::find(classes.begin(), classes.end(), classes_[i]) - classes.begin();
        result.push_back({std::move(files_[i][k]), static_cast<int32_t>(label)});
      }
    }
    return result;
  }

  void tell_of_others(std::vector<std::string>& notes) const {
    if (files::any_file_in(root_, is_image_name)) {
      notes.push_back(root_.string() +
                      ": the images next to the folders of the classes have no class and are left out");
    }
    if (others_ == 0) return;
    notes.push_back(root_.string() + ": " + std::to_string(others_) + " files that don't end in " + endings() +
                    " are left out, as " + first_other_.string());
  }

 private:
  static std::string endings() { return join({kEndings.begin(), kEndings.end()}, ", "); }
  std::string first_other() const {
    return others_ == 0 ? ""
                        : "; of other files there are " + std::to_string(others_) + ", as " + first_other_.string();
  }

  std::vector<fs::path> images_in(const fs::path& folder, const std::vector<fs::path>& apart) {
    return find_images(folder, apart, [&](const fs::path& other) {
      if (++others_ == 1) first_other_ = other;
    });
  }

  fs::path root_;
  std::vector<std::string> classes_;
  std::vector<std::vector<fs::path>> files_;  // of each class
  std::size_t others_ = 0;
  fs::path first_other_;
};

// The files of a part beside the training part.
std::vector<LabelledFile> files_of(const fs::path& folder, const PartFolders& parts, FolderScan& scan) {
  if (folder.empty()) return {};
  const std::string advice =
      parts.recognised
          ? "\nTo leave this part out, set data.train_folder: " + parts.train.lexically_relative(parts.root).string() +
                "; then no part is taken by its name"
          : "";
  PartScan part(folder, {}, advice);
  for (const std::string& name : part.classes()) {
    if (!contains(scan.classes, name)) {
      throw Error((folder / name).string() + ": the class is not among those of the training part in " +
                  parts.train.string() + did_you_mean_or_list(name, scan.classes) + advice);
    }
  }
  std::vector<std::string> lacking;
  for (const std::string& name : scan.classes) {
    if (!contains(part.classes(), name)) lacking.push_back(in_quotes(name));
  }
  if (!lacking.empty()) {
    const std::size_t count = lacking.size();
    if (count > kMostClassesNamed) lacking.resize(kMostClassesNamed);
    scan.notes.push_back(folder.string() + ": lacks " + std::to_string(count) + " of the " +
                         std::to_string(scan.classes.size()) + " classes of the training part: " + join(lacking, ", ") +
                         (count > kMostClassesNamed ? ", ..." : ""));
  }
  part.tell_of_others(scan.notes);
  return part.labelled(scan.classes);
}

}  // namespace

bool is_image_name(const fs::path& file) {
  std::string ending = file.extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

std::vector<fs::path> images_beneath(const fs::path& folder, const std::vector<fs::path>& apart) {
  return find_images(folder, apart, [](const fs::path&) {});
}

FolderScan scan_image_folder(const PartFolders& parts) {
  FolderScan scan;
  scan.notes = parts.notes;
  PartScan train(parts.train, parts.apart);
  train.require_images();
  train.tell_of_others(scan.notes);
  scan.classes = train.classes();
  scan.validation = files_of(parts.validation, parts, scan);
  scan.test = files_of(parts.test, parts, scan);
  scan.train = train.labelled(scan.classes);
  return scan;
}

}  // namespace gpunn::data
