#include "data/download/download.hpp"

#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>

#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "common/file_lock.hpp"
#include "common/files.hpp"
#include "data/download/digest.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr int kAttemptsPerMirror = 4;
constexpr uint64_t kPackingSlack = 64 << 10;  // what a packed file may be larger than its content

constexpr std::chrono::milliseconds kLookEvery{200};

// Two programs must not write one ".part" file. Without locks each goes on alone: the file is checked in any case.
FileLock lock_folder(const fs::path& folder) {
  std::optional<LongWork> waiting;
  while (true) {
    if (auto lock = FileLock::take(folder / ".lock")) return std::move(*lock);
    if (!waiting) waiting.emplace("waiting for another process that fills " + folder.string());
    std::this_thread::sleep_for(kLookEvery);
  }
}

// Empty: the file holds what it should.
std::string what_is_wrong(const fs::path& path, const RemoteFile& file) {
  try {
    const bool packed = file.digest == RemoteFile::Digest::of_file;
    const std::string found = packed ? sha256_of_file(path, file.bytes) : sha256_of_unpacked(path, file.bytes);
    return found == file.sha256 ? "" : "wrong content: SHA-256 " + file.sha256 + " expected, " + found + " found";
  } catch (const Error& error) {
    return error.what();
  }
}

void flush_and_rename(const fs::path& from, const fs::path& to) {
  const FileDescriptor file(retried([&] { return ::open(from.c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!file || retried([&] { return ::fsync(file.get()); }) != 0) {
    throw Error("can't write " + from.string() + ": " + reason_of(errno));
  }
  if (retried([&] { return ::rename(from.c_str(), to.c_str()); }) != 0) {
    throw Error("can't write " + to.string() + ": " + reason_of(errno));
  }
}

void remove_file(const fs::path& file) {
  std::error_code failure;
  fs::remove(file, failure);
  if (failure) throw Error("can't remove " + file.string() + ": " + failure.message());
}

HttpResult fetch_watched(HttpRequest& request, const std::string& name) {
  LongWork work("downloading " + name, 0, WorkUnit::bytes);
  request.progress = [&work](uint64_t bytes, uint64_t total) {
    work.reach(bytes);
    work.expect(total);
  };
  return http_fetch(request);
}

// Empty: the file is in its place. Otherwise why this mirror doesn't give it.
std::string fetch_from(const std::string& mirror, const RemoteFile& file, const DownloadJob& job) {
  HttpRequest request;
  request.url = mirror + file.name;
  request.file = job.folder / (file.name + ".part");
  request.most_bytes = file.bytes + kPackingSlack;
  request.limits = job.limits;
  const auto have = [&request] {
    std::error_code none;
    const uintmax_t bytes = fs::file_size(request.file, none);
    return none ? uintmax_t{0} : bytes;
  };
  std::string why;
  for (int attempt = 0; attempt < kAttemptsPerMirror; ++attempt) {
    const uintmax_t before = have();
    const HttpResult result = fetch_watched(request, file.name);
    // 416: the server has nothing beyond what is already here, which may then be all of it.
    const bool whole = result.complete || (before > 0 && result.status == 416);
    if (whole) {
      why = what_is_wrong(request.file, file);
      if (why.empty()) {
        flush_and_rename(request.file, job.folder / file.name);
        return {};
      }
      remove_file(request.file);
      if (before == 0) return why;  // a beginning from elsewhere may have spoilt it; without one, it is the mirror
      continue;
    }
    why = result.error;
    if (result.too_large) remove_file(request.file);
    if (have() <= before) return why;  // a connection that broke under way is worth another attempt
  }
  return why;
}

void fetch(const RemoteFile& file, const DownloadJob& job) {
  std::string answers;
  for (const std::string& mirror : job.mirrors) {
    const std::string why = fetch_from(mirror, file, job);
    if (why.empty()) return;
    answers += "\n  " + mirror + file.name + ": " + why;
  }
  throw Error("no mirror gives " + file.name + ":" + answers, ExitCode::missing);
}

}  // namespace

void download_files(const DownloadJob& job) {
  if (!http_supported()) {
    throw Error(
        "this program was built without libcurl or OpenSSL and can't download; install both and build again, or "
        "fetch the files by hand into " +
            job.folder.string(),
        ExitCode::missing);
  }
  make_folders(job.folder);
  const FileLock lock = lock_folder(job.folder);
  for (const RemoteFile& file : job.files) {
    const fs::path place = job.folder / file.name;
    if (path_exists(place) && what_is_wrong(place, file).empty()) continue;
    fetch(file, job);
  }
}

}  // namespace gpunn::data
