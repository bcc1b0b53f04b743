#include "data/unpack.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>

#include <zlib.h>

namespace gpunn::data {

namespace {

constexpr std::size_t kInputBytes = std::size_t{256} << 10;
constexpr std::size_t kOutputStep = std::size_t{1} << 30;  // zlib counts in 32 bits
constexpr uint64_t kBestGzipRatio = 1032;

}  // namespace

struct UnpackingReader::Inflater {
  Inflater() : input(kInputBytes) {
    // 15 bits of window, plus 16: a gzip wrapper, whose check sum zlib verifies.
    if (inflateInit2(&zlib, 15 + 16) != Z_OK) throw Error("zlib can't start: out of memory");
  }
  ~Inflater() { inflateEnd(&zlib); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream zlib = {};
  std::vector<Bytef> input;
  uint64_t consumed_before = 0;  // bytes of the file ahead of `input`
  std::size_t filled = 0;
  bool at_member_end = false;  // between two members of a gzip file
};

UnpackingReader::UnpackingReader(const std::filesystem::path& file, Mode mode)
    : file_(file), work_("reading " + file.filename().string(), 0, WorkUnit::bytes) {
  std::error_code code;
  if (std::filesystem::exists(file, code) && !std::filesystem::is_regular_file(file, code)) {
    throw Error(file.string() + " is no regular file", ExitCode::missing);
  }
  errno = 0;
  stream_.open(file, std::ios::binary);
  if (!stream_) {
    throw Error("can't open " + file.string() + ": " + std::generic_category().message(errno), ExitCode::missing);
  }
  file_bytes_ = std::filesystem::file_size(file, code);
  if (code) throw Error("can't tell the size of " + file.string() + ": " + code.message(), ExitCode::missing);
  work_.expect(file_bytes_);
  std::array<char, 2> magic = {};
  stream_.read(magic.data(), magic.size());
  const bool gzip = stream_.gcount() == 2 && magic[0] == '\x1f' && magic[1] == '\x8b';
  if (gzip && mode == Mode::unpacked) inflater_ = std::make_unique<Inflater>();
  stream_.clear();
  stream_.seekg(0);
}

UnpackingReader::~UnpackingReader() = default;

uint64_t UnpackingReader::most_bytes() const {
  if (!packed()) return file_bytes_;
  return file_bytes_ > UINT64_MAX / kBestGzipRatio ? UINT64_MAX : file_bytes_ * kBestGzipRatio;
}

std::size_t UnpackingReader::read(std::span<std::byte> out) {
  const std::size_t count = packed() ? read_packed(out) : read_plain(out);
  position_ += count;
  return count;
}

std::size_t UnpackingReader::read_plain(std::span<std::byte> out) {
  stream_.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
  if (stream_.bad()) throw Error(file_.string() + ": reading failed at byte " + std::to_string(position_));
  const auto count = static_cast<std::size_t>(stream_.gcount());
  work_.advance(count);
  return count;
}

void UnpackingReader::refill() {
  Inflater& state = *inflater_;
  state.consumed_before += state.filled;
  stream_.read(reinterpret_cast<char*>(state.input.data()), static_cast<std::streamsize>(state.input.size()));
  if (stream_.bad()) {
    throw Error(file_.string() + ": reading failed at byte " + std::to_string(state.consumed_before));
  }
  state.filled = static_cast<std::size_t>(stream_.gcount());
  work_.advance(state.filled);
  state.zlib.next_in = state.input.data();
  state.zlib.avail_in = static_cast<uInt>(state.filled);
}

std::size_t UnpackingReader::read_packed(std::span<std::byte> out) {
  Inflater& state = *inflater_;
  z_stream& zlib = state.zlib;
  std::size_t done = 0;
  while (done < out.size()) {
    if (zlib.avail_in == 0) refill();
    if (zlib.avail_in == 0) {
      if (state.at_member_end) return done;
      throw Error(file_.string() + ": the gzip stream ends early: the file has " + std::to_string(file_bytes_) +
                  " bytes, which unpack to " + std::to_string(position_ + done) + " and promise more. Fetch it again");
    }
    if (state.at_member_end) {
      inflateReset(&zlib);
      state.at_member_end = false;
    }
    const std::size_t step = std::min(out.size() - done, kOutputStep);
    zlib.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    zlib.avail_out = static_cast<uInt>(step);
    const int result = inflate(&zlib, Z_NO_FLUSH);
    done += step - zlib.avail_out;
    if (result == Z_STREAM_END) {
      state.at_member_end = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      const uint64_t at = state.consumed_before + state.filled - zlib.avail_in;
      throw Error(file_.string() + ": corrupt gzip data at byte " + std::to_string(at) + " of the file: " +
                  (zlib.msg != nullptr ? zlib.msg : "zlib error " + std::to_string(result)) + ". Fetch it again");
    }
  }
  return done;
}

}  // namespace gpunn::data
