#include "data/published/idx.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "data/download/unpack.hpp"

namespace gpunn::data {

namespace {

constexpr int kUnsignedByte = 0x08;
constexpr uint64_t kUsualRatio = 8;  // images of MNIST's kind pack 5 to 1

std::string type_name(int code) {
  switch (code) {
    case 0x08:
      return "unsigned byte";
    case 0x09:
      return "signed byte";
    case 0x0B:
      return "16-bit integer";
    case 0x0C:
      return "32-bit integer";
    case 0x0D:
      return "32-bit float";
    case 0x0E:
      return "64-bit float";
    default:
      return "unknown";
  }
}

std::string hex_byte(int value) {
  std::array<char, 8> text = {};
  std::snprintf(text.data(), text.size(), "0x%02x", static_cast<unsigned>(value) & 0xFFU);
  return text.data();
}

class IdxReader {
 public:
  IdxReader(const std::filesystem::path& file, int rank, uint64_t limit)
      : file_(file), reader_(file), rank_(rank), limit_(limit) {}

  IdxArray read() {
    IdxArray array;
    array.type.dtype = DType::u8;
    array.type.shape = read_header();
    const uint64_t promised = count_elements(array.type.shape);
    read_values(promised, array.values);
    return array;
  }

 private:
  [[noreturn]] void fail(uint64_t at, const std::string& what) const {
    throw Error(file_.string() + ": at byte " + std::to_string(at) +
                (reader_.packed() ? " of the unpacked data: " : ": ") + what);
  }

  Shape read_header() {
    std::array<std::byte, 4> magic = {};
    const std::size_t got = reader_.read(magic);
    if (got < magic.size()) fail(got, "the file ends inside its 4-byte magic number: it is not an IDX file");
    const auto byte = [&](std::size_t i) { return std::to_integer<int>(magic[i]); };
    if (byte(0) != 0 || byte(1) != 0) {
      fail(0, "an IDX file begins with 0x00 0x00; found " + hex_byte(byte(0)) + " " + hex_byte(byte(1)));
    }
    if (byte(2) != kUnsignedByte) {
      fail(2, "expected elements of type 0x08 (unsigned byte), found " + hex_byte(byte(2)) + " (" + type_name(byte(2)) +
                  ")");
    }
    if (byte(3) != rank_) {
      fail(3, "expected " + std::to_string(rank_) + " dimension(s), found " + std::to_string(byte(3)) +
                  (rank_ == 3   ? "; images have 3"
                   : rank_ == 1 ? "; labels have 1"
                                : ""));
    }
    Shape shape;
    for (int i = 0; i < rank_; ++i) {
      std::array<std::byte, 4> field = {};
      const std::size_t read = reader_.read(field);
      if (read < field.size()) {
        fail(reader_.position(), "the file ends inside dimension " + std::to_string(i) + " of its header");
      }
      int64_t dim = 0;
      for (const std::byte part : field) dim = dim << 8 | std::to_integer<int64_t>(part);
      shape.push_back(dim);
    }
    return shape;
  }

  uint64_t count_elements(const Shape& shape) const {
    const uint64_t header = reader_.position();
    const uint64_t most = reader_.most_bytes() - std::min(reader_.most_bytes(), header);
    uint64_t count = 1;
    for (const int64_t dim : shape) {
      if (dim == 0) {
        count = 0;
        break;
      }
      if (__builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count)) {
        fail(4, "the header promises " + to_string(shape) + " elements, more than any file holds");
      }
    }
    const std::string promise = "the header promises " + to_string(shape) + ", " + std::to_string(count) + " bytes";
    if (!reader_.packed() && count != most) {
      fail(4, promise + " after itself; the file has " + std::to_string(most) +
                  (count > most ? " (truncated, or its header is wrong)" : " (more than it should)"));
    }
    if (count > most) {
      fail(4, promise + "; a gzip file of " + std::to_string(reader_.file_bytes()) + " bytes can't hold that");
    }
    if (count > limit_) fail(4, promise + "; the limit is " + std::to_string(limit_));
    return count;
  }

  void read_values(uint64_t promised, std::vector<std::byte>& values) {
    // A packed file earns its memory as it unpacks, so that a few bytes can't claim gigabytes.
    uint64_t room = promised;
    if (reader_.packed()) room = std::min(promised, std::max<uint64_t>(1 << 20, kUsualRatio * reader_.file_bytes()));
    uint64_t done = 0;
    while (done < promised) {
      values.resize(room);
      done += reader_.read(std::span(values).subspan(done));
      if (done < room) {
        fail(reader_.position(), "the data ends after " + std::to_string(done) + " of the " + std::to_string(promised) +
                                     " bytes that the header promises");
      }
      room = room > promised / 2 ? promised : 2 * room;
    }
    std::array<std::byte, 1> beyond = {};
    if (reader_.read(beyond) != 0) {
      fail(reader_.position() - 1,
           "the header promises " + std::to_string(promised) + " bytes of data, and more follow");
    }
  }

  std::filesystem::path file_;
  UnpackingReader reader_;
  int rank_;
  uint64_t limit_;
};

}  // namespace

IdxArray read_idx(const std::filesystem::path& file, int rank, uint64_t limit) {
  return IdxReader(file, rank, limit).read();
}

}  // namespace gpunn::data
