#include "data/download/unpack.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <string>

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
    : stream_(file), work_("reading " + file.filename().string(), stream_.bytes(), WorkUnit::bytes) {
  std::array<char, 2> magic = {};
  const bool gzip = stream_.read(magic) == magic.size() && magic[0] == '\x1f' && magic[1] == '\x8b';
  if (gzip && mode == Mode::unpacked) inflater_ = std::make_unique<Inflater>();
  stream_.rewind();
}

UnpackingReader::~UnpackingReader() = default;

uint64_t UnpackingReader::most_bytes() const {
  if (!packed()) return file_bytes();
  return file_bytes() > UINT64_MAX / kBestGzipRatio ? UINT64_MAX : file_bytes() * kBestGzipRatio;
}

std::size_t UnpackingReader::read(std::span<std::byte> out) {
  const std::size_t count = packed() ? read_packed(out) : read_plain(out);
  position_ += count;
  return count;
}

std::size_t UnpackingReader::read_plain(std::span<std::byte> out) {
  const std::size_t count = stream_.read(out);
  work_.advance(count);
  return count;
}

void UnpackingReader::refill() {
  Inflater& state = *inflater_;
  state.consumed_before += state.filled;
  state.filled = stream_.read(std::as_writable_bytes(std::span(state.input)));
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
      throw Error(stream_.path().string() + ": the gzip stream ends early: the file has " +
                  std::to_string(file_bytes()) + " bytes, which unpack to " + std::to_string(position_ + done) +
                  " and promise more. Fetch it again");
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
      throw Error(stream_.path().string() + ": corrupt gzip data at byte " + std::to_string(at) + " of the file: " +
                  (zlib.msg != nullptr ? zlib.msg : "zlib error " + std::to_string(result)) + ". Fetch it again");
    }
  }
  return done;
}

}  // namespace gpunn::data
