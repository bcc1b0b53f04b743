#include "common/files.hpp"

#include <gpunn/error.hpp>

#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/escape.hpp"
#include "common/temporaries.hpp"

namespace gpunn {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail_to_write(const fs::path& file, const std::string& why) {
  throw Error("can't write " + escaped(file.string()) + ": " + why);
}

// Renaming over a link would replace the link and leave what it points to as it was.
fs::path behind_links(const fs::path& file) {
  std::error_code failure;
  if (!fs::is_symlink(file, failure)) return file;
  fs::path target = fs::weakly_canonical(file, failure);
  if (failure) fail_to_write(file, failure.message());
  return target;
}

// Makes the rename itself durable. File systems that can't flush a folder say EINVAL; the file is in place by then.
void flush_folder(const fs::path& folder, const fs::path& shown) {
  const FileDescriptor handle(retried([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!handle) return;
  if (retried([&] { return ::fsync(handle.get()); }) != 0 && errno != EINVAL && errno != ENOTSUP) {
    fail_to_write(shown, reason_of(errno));
  }
}

}  // namespace

void require_writable(const fs::path& file, const std::vector<fs::path>& kept) {
  const auto fail = [&](const std::string& why) {
    throw Error("can't write " + escaped(file.string()) + ": " + why, ExitCode::usage);
  };
  if (file.filename().empty()) fail("it is not a file name");
  const PathKind kind = kind_of(file);
  if (kind != PathKind::absent && kind != PathKind::file) fail("it exists and is not an ordinary file");
  for (const fs::path& other : kept) {
    std::error_code not_there;
    if (!other.empty() && fs::equivalent(file, other, not_there)) {
      fail("that would replace " + other.string() + ", which is read here; give another name");
    }
  }
  const fs::path folder = folder_of(file);
  if (!is_folder(folder)) fail("there is no folder " + folder.string());
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail(reason_of(errno));
}

void OutputFile::write(std::string_view bytes) {
  if (!write_all(descriptor_.get(), bytes)) fail_to_write(file_, reason_of(errno));
}

void write_atomically(const fs::path& file, const std::function<void(OutputFile&)>& fill) {
  const fs::path target = behind_links(file);
  remove_stale_temporaries(target);
  TemporaryFile temporary(target);
  FileDescriptor descriptor(
      retried([&] { return ::open(temporary.path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); }));
  if (!descriptor) fail_to_write(file, reason_of(errno));
  OutputFile out(file, std::move(descriptor));
  fill(out);
  if (retried([&] { return ::fsync(out.descriptor_.get()); }) != 0 || !out.descriptor_.close()) {
    fail_to_write(file, reason_of(errno));
  }
  if (retried([&] { return ::rename(temporary.path().c_str(), target.c_str()); }) != 0) {
    fail_to_write(file, reason_of(errno));
  }
  temporary.keep();
  flush_folder(folder_of(target), file);
}

void write_atomically(const fs::path& file, std::string_view text) {
  write_atomically(file, [&](OutputFile& out) { out.write(text); });
}

bool link_atomically(const fs::path& from, const fs::path& file) {
  const fs::path source = behind_links(from), target = behind_links(file);
  remove_stale_temporaries(target);
  TemporaryFile temporary(target);
  if (retried([&] { return ::link(source.c_str(), temporary.path().c_str()); }) != 0) {
    temporary.keep();
    return false;
  }
  if (retried([&] { return ::rename(temporary.path().c_str(), target.c_str()); }) != 0) {
    fail_to_write(file, reason_of(errno));
  }
  // A rename between two names of one file does nothing, and leaves both.
  flush_folder(folder_of(target), file);
  return true;
}

void make_folders(const fs::path& folder) {
  const auto made = [&] { return retried([&] { return ::mkdir(folder.c_str(), 0777); }) == 0; };
  if (made()) return;
  if (errno == ENOENT && folder.has_parent_path() && folder.parent_path() != folder) {
    make_folders(folder.parent_path());
    if (made()) return;
  }
  const int why = errno;
  if (why == EEXIST && is_folder(folder)) return;
  throw Error("can't make the folder " + escaped(folder.string()) + ": " + reason_of(why));
}

void append(const fs::path& file, std::string_view text) {
  FileDescriptor out(retried([&] { return ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666); }));
  if (!out || !write_all(out.get(), text) || !out.close()) fail_to_write(file, reason_of(errno));
}

}  // namespace gpunn
