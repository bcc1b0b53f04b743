#include "runs/hidden_folder.hpp"

#include <gpunn/error.hpp>

#include <string>
#include <utility>

#include <unistd.h>

#include "common/files.hpp"

namespace gpunn::training {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLockFile = ".lock";
constexpr const char* kEnding = ".gpunn-new";

fs::path parent_or_here(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

fs::path hidden_name(const fs::path& name) { return parent_or_here(name) / ("." + name.filename().string() + kEnding); }

bool is_hidden_folder(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  std::error_code ignored;
  return name.starts_with(".") && name.ends_with(kEnding) && entry.is_directory(ignored) && !entry.is_symlink(ignored);
}

[[noreturn]] void fail_to_create(const fs::path& folder, const std::string& why) {
  throw Error(folder.string() + ": can't create the run folder: " + why);
}

// A folder whose lock can be taken has no owner. Where there are no locks, that can't be told.
void remove_unlocked(const fs::path& folder) {
  try {
    std::error_code ignored;
    const auto lock = lock_folder(folder);
    if (lock && lock->failure().empty()) fs::remove_all(folder, ignored);
  } catch (const Error&) {  // another user's
  }
}

// What killed processes left in `folder` and in the folders of races there. One without a lock file is removed only
// where it is empty: its maker, if it lives, makes that file next, and chooses another name where it can't.
void remove_leftovers(const fs::path& folder) {
  std::error_code ignored;
  for (fs::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) {
    if (ignored) return;
    if (is_hidden_folder(*it)) {
      if (!fs::exists(it->path() / kLockFile, ignored)) {
        ::rmdir(it->path().c_str());
      } else {
        remove_unlocked(it->path());
      }
    } else if (it->path().filename().string().starts_with("race_") && it->is_directory(ignored) &&
               !it->is_symlink(ignored)) {
      remove_leftovers(it->path());
    }
  }
}

}  // namespace

std::optional<FileLock> lock_folder(const fs::path& folder) { return FileLock::take(folder / kLockFile); }

HiddenFolder::HiddenFolder(fs::path name, fs::path path, FileLock lock)
    : name_(std::move(name)), path_(std::move(path)), lock_(std::move(lock)) {}

HiddenFolder::~HiddenFolder() {
  if (name_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

// Nothing where the name is taken.
std::shared_ptr<HiddenFolder> HiddenFolder::try_make(const fs::path& name) {
  std::error_code failure;
  if (path_exists(name)) return nullptr;
  const fs::path path = hidden_name(name);
  if (!fs::create_directory(path, failure)) {
    if (failure) fail_to_create(name, failure.message());
    return nullptr;
  }
  std::optional<FileLock> lock = lock_folder(path);
  if (!lock) return nullptr;
  return std::shared_ptr<HiddenFolder>(new HiddenFolder(name, path, std::move(*lock)));
}

std::shared_ptr<HiddenFolder> HiddenFolder::make(const fs::path& wanted) {
  make_folders(parent_or_here(wanted));
  remove_leftovers(parent_or_here(wanted));
  for (int i = 1;; ++i) {
    const fs::path name = i == 1 ? wanted : fs::path(wanted.string() + "-" + std::to_string(i));
    if (std::shared_ptr<HiddenFolder> made = try_make(name)) return made;
  }
}

std::shared_ptr<HiddenFolder> HiddenFolder::make_named(const fs::path& given) {
  const fs::path name = given.has_filename() ? given : given.parent_path();  // "run/" is "run"
  if (path_exists(name)) throw Error(given.string() + ": already exists", ExitCode::usage);
  make_folders(parent_or_here(name));
  remove_leftovers(parent_or_here(name));
  std::shared_ptr<HiddenFolder> made = try_make(name);
  if (made == nullptr) throw Error(given.string() + ": another process is about to train there", ExitCode::usage);
  return made;
}

fs::path HiddenFolder::publish() {
  std::error_code failure;
  fs::rename(path_, name_, failure);
  if (failure) fail_to_create(name_, failure.message());
  path_ = std::exchange(name_, {});
  return path_;
}

}  // namespace gpunn::training
