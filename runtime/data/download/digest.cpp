#include "data/download/digest.hpp"

#include <gpunn/error.hpp>

#ifdef GPUNN_WITH_DOWNLOAD

#include <array>
#include <memory>
#include <vector>

#include <openssl/evp.h>

#include "data/download/unpack.hpp"

namespace gpunn::data {

namespace {

struct ContextFree {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::string hexadecimal(const unsigned char* bytes, unsigned count) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::string sha256_of(UnpackingReader& reader, const std::filesystem::path& file, uint64_t bytes) {
  const std::string of_what = reader.packed() ? " unpacked" : "";
  const std::unique_ptr<EVP_MD_CTX, ContextFree> context(EVP_MD_CTX_new());
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1) throw Error("OpenSSL has no SHA-256");
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (std::size_t count = reader.read(block); count > 0; count = reader.read(block)) {
    if (reader.position() > bytes) {
      throw Error(file.string() + ": more than the " + std::to_string(bytes) + " bytes expected" + of_what);
    }
    if (EVP_DigestUpdate(context.get(), block.data(), count) != 1) throw Error("OpenSSL failed in SHA-256");
  }
  if (reader.position() != bytes) {
    throw Error(file.string() + ": expected " + std::to_string(bytes) + " bytes" + of_what + ", found " +
                std::to_string(reader.position()));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned length = 0;
  if (EVP_DigestFinal_ex(context.get(), digest.data(), &length) != 1) throw Error("OpenSSL failed in SHA-256");
  return hexadecimal(digest.data(), length);
}

}  // namespace

std::string sha256_of_unpacked(const std::filesystem::path& file, uint64_t bytes) {
  UnpackingReader reader(file);
  return sha256_of(reader, file, bytes);
}

std::string sha256_of_file(const std::filesystem::path& file, uint64_t bytes) {
  UnpackingReader reader(file, UnpackingReader::Mode::as_it_is);
  return sha256_of(reader, file, bytes);
}

}  // namespace gpunn::data

#else

namespace gpunn::data {

std::string sha256_of_file(const std::filesystem::path& file, uint64_t) {
  throw Error("can't check " + file.string() + ": this program was built without OpenSSL");
}

std::string sha256_of_unpacked(const std::filesystem::path& file, uint64_t bytes) {
  return sha256_of_file(file, bytes);
}

}  // namespace gpunn::data

#endif
