#include "serving/protocol/compression.hpp"

#include <algorithm>
#include <array>
#include <new>

#include <zlib.h>

#include "serving/protocol/header_text.hpp"
#include "serving/protocol/service_error.hpp"

namespace gpunn::serving {

namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;
constexpr int kAnyWrapper = 15 + 32;  // zlib tells gzip from zlib by itself
constexpr int kGzip = 15 + 16, kZlib = 15;

Bytef* writable(std::string_view bytes) {  // zlib only reads it
  return const_cast<Bytef*>(
      reinterpret_cast<const Bytef*>(bytes.data()));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

class Inflater {
 public:
  Inflater() {
    if (::inflateInit2(&stream, kAnyWrapper) != Z_OK) throw std::bad_alloc();
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { ::inflateEnd(&stream); }
  z_stream stream{};
};

class Deflater {
 public:
  explicit Deflater(int wrapper) {
    constexpr int kLevel = 1, kMemory = 8;  // answers are small, and made while a client waits
    if (::deflateInit2(&stream, kLevel, Z_DEFLATED, wrapper, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { ::deflateEnd(&stream); }
  z_stream stream{};
};

}  // namespace

Coding coding_of(std::string_view content_encoding) {
  const std::string_view name = trimmed(content_encoding);
  if (name.empty() || is_same_word(name, "identity")) return Coding::identity;
  if (is_same_word(name, "gzip") || is_same_word(name, "x-gzip")) return Coding::gzip;
  if (is_same_word(name, "deflate")) return Coding::deflate;
  throw ServiceError(400, "Content-Encoding is '" + std::string(name) + "'; expected gzip, deflate or none");
}

Coding accepted_coding(std::string_view accept_encoding) {
  Coding best = Coding::identity;
  while (!accept_encoding.empty()) {
    const std::size_t comma = std::min(accept_encoding.find(','), accept_encoding.size());
    std::string_view one = accept_encoding.substr(0, comma);
    accept_encoding.remove_prefix(std::min(comma + 1, accept_encoding.size()));
    const std::size_t semicolon = std::min(one.find(';'), one.size());
    const std::string_view parameters = one.substr(semicolon);
    const std::string_view name = trimmed(one.substr(0, semicolon));
    const std::size_t quality = parameters.find("q=");
    const bool refused = quality != std::string_view::npos &&
                         parameters.find_first_of("123456789", quality) == std::string_view::npos;  // q=0, q=0.00
    if (refused) continue;
    if (is_same_word(name, "gzip")) return Coding::gzip;
    if (is_same_word(name, "deflate")) best = Coding::deflate;
  }
  return best;
}

std::string_view name_of(Coding coding) {
  return coding == Coding::gzip ? "gzip" : coding == Coding::deflate ? "deflate" : "identity";
}

std::string decompress(std::string_view bytes, std::size_t most) {
  Inflater inflater;
  std::string result;
  std::array<char, kPiece> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): zlib fills it
  inflater.stream.next_in = writable(bytes);
  std::size_t left = bytes.size();
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    const std::size_t given = std::min<std::size_t>(left, 1U << 30);
    inflater.stream.avail_in = static_cast<uInt>(given);
    inflater.stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    inflater.stream.avail_out = static_cast<uInt>(piece.size());
    status = ::inflate(&inflater.stream, Z_NO_FLUSH);
    left -= given - inflater.stream.avail_in;
    const std::size_t made = piece.size() - inflater.stream.avail_out;
    if ((status != Z_OK && status != Z_STREAM_END) || (status == Z_OK && made == 0 && left == 0)) {
      throw ServiceError(400, "the body is no whole gzip or zlib stream, although Content-Encoding says so");
    }
    if (made > most - result.size()) {
      throw ServiceError(413, "the body has more than " + std::to_string(most) + " bytes once it is decompressed");
    }
    result.append(piece.data(), made);
  }
  if (left > 0) throw ServiceError(400, "the body goes on behind its compressed stream");
  return result;
}

std::string compress(std::string_view bytes, Coding coding) {
  Deflater deflater(coding == Coding::gzip ? kGzip : kZlib);
  std::string result(::deflateBound(&deflater.stream, static_cast<uLong>(bytes.size())), '\0');
  deflater.stream.next_in = writable(bytes);
  deflater.stream.avail_in = static_cast<uInt>(bytes.size());
  deflater.stream.next_out = reinterpret_cast<Bytef*>(result.data());
  deflater.stream.avail_out = static_cast<uInt>(result.size());
  if (::deflate(&deflater.stream, Z_FINISH) != Z_STREAM_END) throw ServiceError(500, "the answer can't be compressed");
  result.resize(deflater.stream.total_out);
  return result;
}

}  // namespace gpunn::serving
