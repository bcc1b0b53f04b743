#include "data/pack/packed_folder.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include "common/input_file.hpp"
#include "common/system_call.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

uint32_t crc_of(std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

template <class Number>
void append_number(std::string& to, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) to += static_cast<char>(number >> (8 * i) & 0xFFU);
}

[[noreturn]] void refuse(const fs::path& file, const std::string& why) {
  throw Error(file.string() + ": " + why + ". Pack the folder again: gpunn data pack FOLDER --to " + file.string());
}

// Takes numbers and texts from the front of an index.
class IndexReader {
 public:
  IndexReader(std::string_view bytes, const fs::path& file) : rest_(bytes), file_(file) {}

  template <class Number>
  Number number() {
    const std::string_view bytes = take(sizeof(Number));
    Number value = 0;
    for (std::size_t i = sizeof(Number); i-- > 0;) value = value << 8U | static_cast<uint8_t>(bytes[i]);
    return value;
  }
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) refuse(file_, "its index is damaged: it ends early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  const fs::path& file_;
};

bool stays_beneath(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos) return false;
  return std::ranges::none_of(fs::path(path), [](const fs::path& part) { return part == ".." || part == "."; });
}

}  // namespace

std::string encode_index(const PackIndex& index) {
  std::string bytes;
  append_number(bytes, uint64_t{index.folder.size()});
  bytes += index.folder;
  append_number(bytes, index.folder_files);
  append_number(bytes, index.folder_crc);
  append_number(bytes, uint64_t{index.files.size()});
  for (const PackedFile& file : index.files) {
    append_number(bytes, static_cast<uint32_t>(file.path.size()));
    bytes += file.path;
    append_number(bytes, file.offset);
    append_number(bytes, file.bytes);
    append_number(bytes, file.crc);
  }
  return bytes;
}

std::string encode_trailer(uint64_t index_offset, std::string_view index) {
  std::string bytes;
  append_number(bytes, index_offset);
  append_number(bytes, uint64_t{index.size()});
  append_number(bytes, crc_of(index));
  return bytes.append(kPackEnd);
}

PackIndex decode_index(std::string_view bytes, uint64_t contents_end, const fs::path& file) {
  IndexReader reader(bytes, file);
  PackIndex index;
  index.folder = reader.take(reader.number<uint64_t>());
  index.folder_files = reader.number<uint64_t>();
  index.folder_crc = reader.number<uint32_t>();
  const auto files = reader.number<uint64_t>();
  constexpr uint64_t kLeastEntry = 24;
  if (files > bytes.size() / kLeastEntry) refuse(file, "its index is damaged: it has no room for its files");
  index.files.reserve(files);
  for (uint64_t i = 0; i < files; ++i) {
    PackedFile one;
    one.path = reader.take(reader.number<uint32_t>());
    one.offset = reader.number<uint64_t>();
    one.bytes = reader.number<uint64_t>();
    one.crc = reader.number<uint32_t>();
    const bool sorted = index.files.empty() || index.files.back().path < one.path;
    if (!stays_beneath(one.path) || !sorted || one.offset < kPackMagic.size() || one.offset > contents_end ||
        one.bytes > contents_end - one.offset) {
      refuse(file, "its index is damaged: entry " + std::to_string(i + 1));
    }
    index.files.push_back(std::move(one));
  }
  if (!reader.at_end()) refuse(file, "its index is damaged: there is more behind its files");
  return index;
}

FolderListing folder_listing(const fs::path& folder) {
  std::vector<std::string> lines;
  std::error_code code, ignored;
  for (fs::recursive_directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    if (it->path().filename().string().starts_with(".")) {
      it.disable_recursion_pending();
      continue;
    }
    if (it->is_directory(ignored)) continue;
    const auto changed = it->last_write_time(ignored).time_since_epoch();
    lines.push_back(it->path().lexically_relative(folder).string() + ' ' + std::to_string(it->file_size(ignored)) +
                    ' ' + std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(changed).count()) + '\n');
  }
  if (code) throw Error("can't list " + folder.string() + ": " + code.message(), ExitCode::missing);
  std::ranges::sort(lines);
  FolderListing listing{.files = lines.size()};
  uLong crc = 0;
  for (const std::string& line : lines) crc = crc32_z(crc, reinterpret_cast<const Bytef*>(line.data()), line.size());
  listing.crc = static_cast<uint32_t>(crc);
  return listing;
}

PackedFolder::PackedFolder(const fs::path& file) : path_(file) {
  const FileDescriptor descriptor(retried([&] { return ::open(file.c_str(), O_RDONLY | O_CLOEXEC); }));
  struct stat info = {};
  if (!descriptor || ::fstat(descriptor.get(), &info) != 0) {
    throw Error("can't read " + file.string() + ": " + reason_of(errno), ExitCode::missing);
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size < kPackMagic.size() + kPackTrailerBytes) refuse(file, "it is not a packed folder: it has too few bytes");
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.get(), 0);
  if (mapped == MAP_FAILED) throw Error("can't read " + file.string() + ": " + reason_of(errno), ExitCode::missing);
  bytes_ = {static_cast<const uint8_t*>(mapped), size};
  try {
    const std::string_view all(reinterpret_cast<const char*>(bytes_.data()), size);
    if (!all.starts_with(kPackMagic)) {
      refuse(file, all.starts_with("gpunn pack ") ? "it was packed by another version of gpunn"
                                                  : "it is not a packed folder: it does not begin as one");
    }
    const std::string_view trailer = all.substr(size - kPackTrailerBytes);
    if (!trailer.ends_with(kPackEnd)) refuse(file, "it is cut off, or its end is damaged");
    IndexReader end(trailer, file);
    const auto offset = end.number<uint64_t>(), length = end.number<uint64_t>();
    const auto crc = end.number<uint32_t>();
    const uint64_t contents_and_index = size - kPackTrailerBytes;
    if (offset > contents_and_index || length != contents_and_index - offset) {
      refuse(file, "it is cut off, or its end is damaged");
    }
    const std::string_view index = all.substr(offset, length);
    if (crc_of(index) != crc) refuse(file, "its index is damaged: its CRC-32 is another");
    index_ = decode_index(index, offset, file);
    require_current();
  } catch (...) {
    ::munmap(mapped, size);
    throw;
  }
  checked_.resize(index_.files.size());
}

PackedFolder::~PackedFolder() {
  ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

void PackedFolder::require_current() const {
  if (index_.folder.empty() || !is_folder(index_.folder)) return;
  const FolderListing now = folder_listing(index_.folder);
  if (now.files == index_.folder_files && now.crc == index_.folder_crc) return;
  throw Error(path_.string() + ": the folder " + index_.folder + " has changed since it was packed (" +
              std::to_string(index_.folder_files) + " files then, " + std::to_string(now.files) +
              " now, or others). Pack it again: gpunn data pack " + index_.folder + " --to " + path_.string() +
              "; where the packed file is to stand for itself, move the folder away");
}

const PackedFile* PackedFolder::find(std::string_view path) const {
  const auto found = std::ranges::lower_bound(index_.files, path, {}, &PackedFile::path);
  return found != index_.files.end() && found->path == path ? &*found : nullptr;
}

bool PackedFolder::has_folder(std::string_view path) const {
  if (path.empty()) return true;
  const std::string inside = std::string(path) + '/';
  const auto found = std::ranges::lower_bound(index_.files, inside, {}, &PackedFile::path);
  return found != index_.files.end() && found->path.starts_with(inside);
}

std::span<const uint8_t> PackedFolder::content(const PackedFile& file) const {
  const std::span<const uint8_t> content = bytes_.subspan(file.offset, file.bytes);
  const std::atomic_ref checked(checked_[static_cast<std::size_t>(&file - index_.files.data())]);
  if (checked.load(std::memory_order_relaxed) == 0) {
    if (crc_of({reinterpret_cast<const char*>(content.data()), content.size()}) != file.crc) {
      refuse(path_, file.path + " in it is damaged: its CRC-32 is another");
    }
    checked.store(1, std::memory_order_relaxed);
  }
  return content;
}

}  // namespace gpunn::data
