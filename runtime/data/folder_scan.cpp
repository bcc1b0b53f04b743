#include "data/folder_scan.hpp"

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
const std::array<const char*, 3> kValidationNames = {"val", "valid", "validation"};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The images beneath a folder, sorted; `other` is told of each file that is none.
template <class F>
std::vector<fs::path> find_images(const fs::path& folder, F other) {
  std::vector<fs::path> files;
  files::each_file_beneath(folder, [&](const fs::path& file) {
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
  explicit PartScan(fs::path root) : root_(std::move(root)), classes_(files::folders_in(root_)) {
    if (classes_.empty()) {
      throw Error(root_.string() + ": expected a folder for each class, with its images inside; found no folder",
                  ExitCode::missing);
    }
    for (const std::string& name : classes_) files_.push_back(images_in(root_ / name));
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

  std::vector<fs::path> images_in(const fs::path& folder) {
    return find_images(folder, [&](const fs::path& other) {
      if (++others_ == 1) first_other_ = other;
    });
  }

  fs::path root_;
  std::vector<std::string> classes_;
  std::vector<std::vector<fs::path>> files_;  // of each class
  std::size_t others_ = 0;
  fs::path first_other_;
};

struct Parts {
  fs::path train, validation, test;  // empty: there is none
};

// Where the parts are. Folders that are called train and test are parts where nothing else lies beside them: a class
// may well be called train.
Parts parts_of(const fs::path& root, const fs::path& test_root) {
  if (!files::is_folder(root)) {
    throw Error(root.string() + (files::path_exists(root) ? " is no folder" : ": no such folder") +
                    "; data.path has to name the folder of the images",
                ExitCode::missing);
  }
  if (!test_root.empty()) return {.train = root, .validation = {}, .test = test_root};
  const std::vector<std::string> names = files::folders_in(root);
  const auto is_validation = [](const std::string& name) {
    return std::find(kValidationNames.begin(), kValidationNames.end(), name) != kValidationNames.end();
  };
  const bool parts = contains(names, "train") && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
                       return name == "train" || name == "test" || is_validation(name);
                     });
  if (!parts) return {.train = root, .validation = {}, .test = {}};
  Parts result{.train = root / "train", .validation = {}, .test = {}};
  if (contains(names, "test")) result.test = root / "test";
  const auto validation = std::find_if(names.begin(), names.end(), is_validation);
  if (validation != names.end()) result.validation = root / *validation;
  return result;
}

// The files of a part beside the training part.
std::vector<LabelledFile> files_of(const fs::path& folder, const fs::path& train_folder, FolderScan& scan) {
  if (folder.empty()) return {};
  PartScan part(folder);
  for (const std::string& name : part.classes()) {
    if (!contains(scan.classes, name)) {
      throw Error((folder / name).string() + ": the class is not among those of the training part in " +
                  train_folder.string() + did_you_mean_or_list(name, scan.classes));
    }
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

std::vector<fs::path> images_beneath(const fs::path& folder) {
  return find_images(folder, [](const fs::path&) {});
}

FolderScan scan_image_folder(const fs::path& root, const fs::path& test_root) {
  const Parts parts = parts_of(root, test_root);
  FolderScan scan;
  PartScan train(parts.train);
  train.require_images();
  train.tell_of_others(scan.notes);
  scan.classes = train.classes();
  scan.validation = files_of(parts.validation, parts.train, scan);
  scan.test = files_of(parts.test, parts.train, scan);
  scan.train = train.labelled(scan.classes);
  return scan;
}

}  // namespace gpunn::data
