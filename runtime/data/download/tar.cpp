#include "data/download/tar.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace gpunn::data {

namespace {

constexpr uint64_t kBlock = 512;
using Block = std::array<std::byte, kBlock>;

// The fields of a header that are of use: where each begins and how long it is.
struct HeaderField {
  std::size_t at, length;
};
constexpr HeaderField kName = {0, 100};
constexpr HeaderField kSize = {124, 12};
constexpr HeaderField kCheckSum = {148, 8};
constexpr HeaderField kPrefix = {345, 155};
constexpr std::size_t kType = 156;

std::string text_of(const Block& block, HeaderField field) {
  const std::string_view text(reinterpret_cast<const char*>(block.data()) + field.at, field.length);
  return std::string(text.substr(0, text.find('\0')));
}

// An octal number, padded with blanks or NUL.
std::optional<uint64_t> octal_number_of(const Block& block, HeaderField field) {
  const std::string text = text_of(block, field);
  uint64_t value = 0;
  bool digits = false;
  for (const char c : text) {
    if (c == ' ') {
      if (digits) break;
      continue;
    }
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<uint64_t>(c - '0');
    digits = true;
  }
  if (!digits) return std::nullopt;
  return value;
}

// Of all bytes of the header, those of the sum itself taken as blanks.
uint64_t sum_of(const Block& block) {
  uint64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool own = i >= kCheckSum.at && i < kCheckSum.at + kCheckSum.length;
    sum += own ? ' ' : std::to_integer<uint64_t>(block[i]);
  }
  return sum;
}

}  // namespace

void TarReader::fail(const std::string& what) const {
  throw Error(file_.string() + ": damaged tar archive: " + what + ". Fetch it again");
}

void TarReader::skip(uint64_t bytes) {
  std::vector<std::byte> sink(static_cast<std::size_t>(std::min<uint64_t>(bytes, 1 << 16)));
  while (bytes > 0) {
    const std::size_t wanted = static_cast<std::size_t>(std::min<uint64_t>(bytes, sink.size()));
    if (reader_.read(std::span(sink).first(wanted)) < wanted) fail("it ends inside '" + name_ + "'");
    bytes -= wanted;
  }
}

std::optional<TarEntry> TarReader::next() {
  for (;;) {
    skip(left_ + padding_);
    left_ = padding_ = 0;
    Block block = {};
    const std::size_t got = reader_.read(block);
    const bool empty = std::all_of(block.begin(), block.end(), [](std::byte b) { return b == std::byte{0}; });
    if (got == 0 || (got == block.size() && empty)) return std::nullopt;  // two empty blocks end an archive
    if (got < block.size()) fail("it ends inside a header");
    if (octal_number_of(block, kCheckSum) != sum_of(block)) {
      fail("at byte " + std::to_string(reader_.position() - kBlock) + " of it there is no valid header");
    }
    const std::optional<uint64_t> size = octal_number_of(block, kSize);
    const std::string prefix = text_of(block, kPrefix);
    name_ = (prefix.empty() ? "" : prefix + "/") + text_of(block, kName);
    if (!size || *size > reader_.most_bytes() - std::min(reader_.most_bytes(), reader_.position())) {
      fail("'" + name_ + "' claims to be larger than the archive can hold");
    }
    left_ = *size;
    padding_ = (kBlock - *size % kBlock) % kBlock;
    const char type = std::to_integer<char>(block[kType]);
    if (type == '0' || type == '\0') return TarEntry{name_, *size};
  }
}

std::size_t TarReader::read(std::span<std::byte> out) {
  const std::size_t wanted = static_cast<std::size_t>(std::min<uint64_t>(out.size(), left_));
  const std::size_t got = reader_.read(out.first(wanted));
  if (got < wanted) fail("it ends inside '" + name_ + "'");
  left_ -= got;
  return got;
}

}  // namespace gpunn::data
