#include <gpunn/error.hpp>
#include <gpunn/watch.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system_call.hpp"
#include "data/folders/folder_scan.hpp"

namespace gpunn {

namespace fs = std::filesystem;

namespace {

constexpr uint32_t kWhole = IN_CLOSE_WRITE | IN_MOVED_TO;
constexpr uint32_t kGone = IN_DELETE | IN_MOVED_FROM;
constexpr uint32_t kFolderGone = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;

// A file as it was: written again, or another of the same name, it differs.
struct FileState {
  uint64_t file = 0, bytes = 0;
  int64_t seconds = 0, nanoseconds = 0;
  friend bool operator==(const FileState&, const FileState&) = default;
};

[[noreturn]] void fail(const fs::path& folder, int error) {
  throw Error(folder.string() + ": can't be watched: " + reason_of(error),
              error == ENOENT || error == ENOTDIR ? ExitCode::missing : ExitCode::failed);
}

class FolderWatch {
 public:
  FolderWatch(fs::path folder, const std::function<void(const fs::path&)>& on_image)
      : folder_(std::move(folder)), on_image_(on_image), events_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    if (!events_ ||
        ::inotify_add_watch(events_.get(), folder_.c_str(), kWhole | kGone | kFolderGone | IN_ONLYDIR) < 0) {
      fail(folder_, errno);
    }
  }

  // Whatever lies there and was not seen as it is now, in the order of names.
  void look_through(bool tell) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    if (error) fail(folder_, error.value());
    std::ranges::sort(names);
    for (const std::string& name : names) look_at(name, tell);
  }

  // Until `stop` can be read.
  void follow(int stop) {
    for (;;) {
      std::array<pollfd, 2> waiting = {pollfd{events_.get(), POLLIN, 0}, pollfd{stop, POLLIN, 0}};
      if (retried([&] { return ::poll(waiting.data(), waiting.size(), -1); }) < 0) fail(folder_, errno);
      if (waiting[1].revents != 0) return;
      read_events();
    }
  }

 private:
  void look_at(const std::string& name, bool tell) {
    const fs::path file = folder_ / name;
    if (name.starts_with('.') || !data::is_image_name(file)) return;
    struct stat found {};
    if (::stat(file.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return;
    const FileState state{found.st_ino, static_cast<uint64_t>(found.st_size), found.st_mtim.tv_sec,
                          found.st_mtim.tv_nsec};
    FileState& known = seen_[name];
    if (known == state) return;  // an event of what the folder's listing had already
    known = state;
    if (tell) on_image_(file);
  }

  void read_events() {
    alignas(inotify_event) std::array<char, 64 << 10> buffer{};
    const ssize_t bytes = retried([&] { return ::read(events_.get(), buffer.data(), buffer.size()); });
    if (bytes < 0 && errno == EAGAIN) return;
    if (bytes < 0) fail(folder_, errno);
    for (std::size_t at = 0; at < static_cast<std::size_t>(bytes);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* const name = buffer.data() + at + sizeof event;
      at += sizeof event + event.len;
      if ((event.mask & kFolderGone) != 0) {
        throw Error(folder_.string() + ": the folder that is watched was deleted or moved", ExitCode::missing);
      }
      if ((event.mask & IN_Q_OVERFLOW) != 0) {  // more came than the kernel keeps: the folder itself has them
        look_through(true);
      } else if (event.len > 0 && (event.mask & kGone) != 0) {
        seen_.erase(name);
      } else if (event.len > 0) {
        look_at(name, true);
      }
    }
  }

  fs::path folder_;
  const std::function<void(const fs::path&)>& on_image_;
  FileDescriptor events_;
  std::map<std::string, FileState> seen_;
};

}  // namespace

void watch_images(const fs::path& folder, const WatchOptions& options,
                  const std::function<void(const fs::path&)>& on_image) {
  FolderWatch watch(folder, on_image);  // before the listing, so that nothing comes between
  watch.look_through(!options.skip_existing);
  watch.follow(options.stop);
}

}  // namespace gpunn
