#include "data/npz.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <zlib.h>

#include "common/host_memory.hpp"
#include "common/input_file.hpp"
#include "common/parse_number.hpp"
#include "common/text.hpp"

namespace gpunn::data {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kLargestNpz = std::size_t{16} << 30;
constexpr uint64_t kMostNumbers = uint64_t{1} << 40;
constexpr uint32_t kEndOfDirectory = 0x06054b50, kDirectoryEntry = 0x02014b50, kLocalEntry = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30, kLongestComment = 65535;
constexpr uint32_t kInZip64 = 0xffffffff;
constexpr uint16_t kZip64Field = 1, kStored = 0, kDeflated = 8;
constexpr std::string_view kNpyMagic = "\x93NUMPY", kNpyEnding = ".npy";

// Little-endian numbers of bytes that may end anywhere.
class Bytes {
 public:
  Bytes(std::string_view bytes, const fs::path& file) : bytes_(bytes), file_(file) {}

  uint64_t number(std::size_t at, std::size_t size) const {
    uint64_t value = 0;
    const std::string_view digits = part(at, size);
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<uint8_t>(digits[i]);
    return value;
  }
  std::string_view part(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) fail("it ends too early");
    return bytes_.substr(at, size);
  }
  std::size_t size() const { return bytes_.size(); }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(file_.string() + ": not a sound .npz file: " + what + ". Write it again with numpy.savez");
  }

 private:
  std::string_view bytes_;
  const fs::path& file_;
};

struct Entry {
  std::string name;
  uint64_t packed = 0, unpacked = 0, offset = 0;
  uint64_t method = kStored;
};

// The entries of the archive's directory, which lies at its end.
class Directory {
 public:
  explicit Directory(const Bytes& bytes) : bytes_(bytes) {}

  std::vector<Entry> entries() const {
    const std::size_t end = end_of_directory();
    const uint64_t count = bytes_.number(end + 10, 2);
    std::size_t at = bytes_.number(end + 16, 4);
    std::vector<Entry> entries;
    for (uint64_t i = 0; i < count; ++i) {
      if (bytes_.number(at, 4) != kDirectoryEntry) bytes_.fail("its directory is damaged");
      entries.push_back(entry_at(at));
      at += kEntryBytes + bytes_.number(at + 28, 2) + bytes_.number(at + 30, 2) + bytes_.number(at + 32, 2);
    }
    return entries;
  }

 private:
  std::size_t end_of_directory() const {
    for (std::size_t behind = kEndBytes; behind <= bytes_.size() && behind <= kEndBytes + kLongestComment; ++behind) {
      const std::size_t at = bytes_.size() - behind;
      if (bytes_.number(at, 4) == kEndOfDirectory) return at;
    }
    bytes_.fail("it has no directory");
  }

  Entry entry_at(std::size_t at) const {
    Entry entry{.name = std::string(bytes_.part(at + kEntryBytes, bytes_.number(at + 28, 2))),
                .packed = bytes_.number(at + 20, 4),
                .unpacked = bytes_.number(at + 24, 4),
                .offset = bytes_.number(at + 42, 4),
                .method = bytes_.number(at + 10, 2)};
    take_zip64(at + kEntryBytes + entry.name.size(), bytes_.number(at + 30, 2), entry);
    return entry;
  }

  // Sizes that take more than 32 bits are in a field of their own.
  void take_zip64(std::size_t at, std::size_t size, Entry& entry) const {
    for (const std::size_t end = at + size; at + 4 <= end;) {
      const uint64_t kind = bytes_.number(at, 2), length = bytes_.number(at + 2, 2);
      std::size_t next = at + 4;
      if (kind == kZip64Field) {
        for (uint64_t* const wide : {&entry.unpacked, &entry.packed, &entry.offset}) {
          if (*wide != kInZip64) continue;
          *wide = bytes_.number(next, 8);
          next += 8;
        }
      }
      at += 4 + length;
    }
  }

  const Bytes& bytes_;
};

std::string inflated(const Bytes& bytes, std::string_view packed, uint64_t size, const std::string& name) {
  require_host_memory(size, "the array " + in_quotes(name));
  std::string text(size, '\0');
  z_stream zlib = {};
  if (inflateInit2(&zlib, -MAX_WBITS) != Z_OK) throw Error("zlib can't start: out of memory");
  constexpr std::size_t kStep = std::size_t{1} << 30;  // zlib counts in 32 bits
  std::size_t read = 0, written = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const std::size_t in = std::min(packed.size() - read, kStep), out = std::min(text.size() - written, kStep);
    zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + read));
    zlib.avail_in = static_cast<uInt>(in);
    zlib.next_out = reinterpret_cast<Bytef*>(text.data() + written);
    zlib.avail_out = static_cast<uInt>(out);
    status = inflate(&zlib, Z_NO_FLUSH);
    read += in - zlib.avail_in;
    written += out - zlib.avail_out;
    if (status == Z_OK && zlib.avail_in == in && zlib.avail_out == out) break;  // nothing is left to read or to fill
  }
  inflateEnd(&zlib);
  if (status != Z_STREAM_END || written != size) bytes.fail("the array " + in_quotes(name) + " can't be unpacked");
  return text;
}

std::optional<DType> dtype_of(std::string_view descr) {
  constexpr std::array<std::pair<std::string_view, DType>, 9> kTypes = {{{"|u1", DType::u8},
                                                                         {"<u1", DType::u8},
                                                                         {"|b1", DType::u8},
                                                                         {"<b1", DType::u8},
                                                                         {"<i4", DType::i32},
                                                                         {"<i8", DType::i64},
                                                                         {"<f2", DType::f16},
                                                                         {"<f4", DType::f32},
                                                                         {"<f8", DType::f64}}};
  for (const auto& [text, type] : kTypes) {
    if (text == descr) return type;
  }
  return std::nullopt;
}

// The text behind 'key': in the header, a dictionary of Python, up to a character of `ends`.
std::string_view value_of(const Bytes& bytes, std::string_view header, std::string_view key, std::string_view ends) {
  const std::string quoted = "'" + std::string(key) + "':";
  const std::size_t at = header.find(quoted);
  if (at == std::string_view::npos) bytes.fail("the header of an array has no " + in_quotes(std::string(key)));
  std::string_view rest = header.substr(at + quoted.size());
  while (rest.starts_with(' ') || rest.starts_with('(') || rest.starts_with('\'')) rest.remove_prefix(1);
  return rest.substr(0, rest.find_first_of(ends));
}

Shape shape_of(const Bytes& bytes, std::string_view text) {
  Shape shape;
  uint64_t elements = 1;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view size = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (size.starts_with(' ')) size.remove_prefix(1);
    if (size.empty()) continue;
    const std::optional<int64_t> value = parse_number<int64_t>(size);
    if (!value || *value < 0) bytes.fail("a size of an array is " + in_quotes(std::string(size)));
    elements *= std::max<uint64_t>(static_cast<uint64_t>(*value), 1);
    if (elements > kMostNumbers || static_cast<uint64_t>(*value) > kMostNumbers) bytes.fail("an array is too large");
    shape.push_back(*value);
  }
  return shape;
}

NpzArray array_of(const Bytes& archive, const fs::path& file, std::string name, std::string_view npy) {
  const Bytes bytes(npy, file);
  constexpr std::size_t kBeforeLength = 8;
  if (!npy.starts_with(kNpyMagic)) archive.fail(in_quotes(name) + " is not an array");
  const std::size_t width = bytes.number(6, 1) == 1 ? 2 : 4;
  const std::size_t length = bytes.number(kBeforeLength, width), values = kBeforeLength + width + length;
  const std::string_view header = bytes.part(kBeforeLength + width, length);
  const std::string descr(value_of(bytes, header, "descr", "'"));
  const std::optional<DType> dtype = dtype_of(descr);
  if (!dtype) {
    throw Error(file.string() + ": the array " + in_quotes(name) + " holds " + in_quotes(descr) +
                    "; expected bool, uint8, int32, int64, float16, float32 or float64 (little-endian)",
                ExitCode::usage);
  }
  if (value_of(bytes, header, "fortran_order", ",}").starts_with("True")) {
    throw Error(file.string() + ": the array " + in_quotes(name) +
                    " is stored column by column; write it with numpy.ascontiguousarray",
                ExitCode::usage);
  }
  NpzArray array{
      .name = std::move(name), .type = {*dtype, shape_of(bytes, value_of(bytes, header, "shape", ")"))}, .values = {}};
  const std::string_view raw = bytes.part(values, array.type.bytes());
  const auto content = std::as_bytes(std::span(raw));
  array.values.assign(content.begin(), content.end());
  return array;
}

}  // namespace

std::vector<NpzArray> read_npz(const fs::path& file) {
  static_assert(std::endian::native == std::endian::little);
  const std::string text = read_text(file, kLargestNpz);
  const Bytes bytes(text, file);
  std::vector<NpzArray> arrays;
  for (const Entry& entry : Directory(bytes).entries()) {
    std::string name = entry.name;
    if (name.ends_with(kNpyEnding)) name.resize(name.size() - kNpyEnding.size());
    if (bytes.number(entry.offset, 4) != kLocalEntry) bytes.fail("the array " + in_quotes(name) + " is not there");
    const std::size_t behind = entry.offset + kLocalBytes;
    const std::size_t at = behind + bytes.number(behind - 4, 2) + bytes.number(behind - 2, 2);
    const std::string_view packed = bytes.part(at, entry.packed);
    if (entry.method == kStored) {
      arrays.push_back(array_of(bytes, file, std::move(name), packed));
    } else if (entry.method == kDeflated) {
      const std::string npy = inflated(bytes, packed, entry.unpacked, name);
      arrays.push_back(array_of(bytes, file, std::move(name), npy));
    } else {
      bytes.fail("the array " + in_quotes(name) + " is packed by method " + std::to_string(entry.method));
    }
  }
  return arrays;
}

}  // namespace gpunn::data
