// Files, folders and surroundings that the tests of this folder make.
#pragma once

#include <gpunn/data.hpp>
#include <gpunn/error.hpp>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>
#include <zlib.h>

#include "temporary_folder.hpp"

namespace test {

namespace fs = std::filesystem;

using gpunn::testing::TemporaryFolder;

// Sets an environment variable, or with no value takes it away, and puts it back in the end.
class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const std::optional<std::string>& value) {
    if (value) {
      ::setenv(name_, value->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  const char* name_;
  std::optional<std::string> before_;
};

// No data set, no network: what a test starts from.
struct BareMachine {
  TemporaryFolder home;
  Variable data_dir{"GPUNN_DATA_DIR", std::nullopt};
  Variable cache{"XDG_CACHE_HOME", home.path().string()};
  Variable offline{"GPUNN_OFFLINE", "1"};
};

inline void write_file(const fs::path& file, const std::string& bytes) {
  fs::create_directories(file.parent_path());
  std::ofstream stream(file, std::ios::binary);
  stream << bytes;
  if (!stream.flush()) throw std::runtime_error("can't write " + file.string());
}

inline std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline std::string gzip(const std::string& bytes, int level = 6) {
  z_stream zlib = {};
  if (deflateInit2(&zlib, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("zlib");
  std::string packed(deflateBound(&zlib, static_cast<uLong>(bytes.size())), '\0');
  std::string source = bytes;
  zlib.next_in = reinterpret_cast<Bytef*>(source.data());
  zlib.avail_in = static_cast<uInt>(source.size());
  zlib.next_out = reinterpret_cast<Bytef*>(packed.data());
  zlib.avail_out = static_cast<uInt>(packed.size());
  deflate(&zlib, Z_FINISH);
  packed.resize(zlib.total_out);
  deflateEnd(&zlib);
  return packed;
}

// An IDX file's bytes; `type` 8 is unsigned bytes.
inline std::string idx(const std::vector<uint32_t>& dims, const std::string& values, int type = 8) {
  std::string bytes = {'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  for (const uint32_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(dim >> shift & 255U);
  }
  return bytes + values;
}

inline std::string counting_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  uint32_t state = 12345;
  for (char& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

// A folder with a small set in MNIST's format: `train` and `test` images of height by width.
inline void write_mnist(const fs::path& folder, uint32_t train, uint32_t test, bool packed = true, char separator = '-',
                        uint32_t height = 28, uint32_t width = 28) {
  const auto put = [&](const std::string& stem, const std::string& kind, const std::string& bytes) {
    write_file(folder / (stem + separator + kind + "-ubyte" + (packed ? ".gz" : "")), packed ? gzip(bytes) : bytes);
  };
  const auto labels = [](uint32_t rows) {
    std::string values;
    for (uint32_t i = 0; i < rows; ++i) values += static_cast<char>(i % 10);
    return values;
  };
  for (const auto& [part, rows] : {std::pair<std::string, uint32_t>{"train", train}, {"t10k", test}}) {
    put(part + "-images", "idx3", idx({rows, height, width}, counting_bytes(std::size_t{rows} * height * width)));
    put(part + "-labels", "idx1", idx({rows}, labels(rows)));
  }
}

// The code of the Error that `call` throws.
template <class Call>
gpunn::ExitCode code_of(const Call& call) {
  try {
    call();
  } catch (const gpunn::Error& error) {
    return error.code();
  }
  return gpunn::ExitCode::done;
}

// The folder with real data sets: $GPUNN_DATA_DIR, or ../shared/data beside the sources. Empty where there is none.
inline fs::path real_data() {
  std::error_code ignored;
  if (const char* given = std::getenv("GPUNN_DATA_DIR")) return given;
  const fs::path shared = fs::path(GPUNN_SOURCE_DIR) / ".." / "shared" / "data";
  return fs::is_directory(shared / "mnist", ignored) ? shared : fs::path();
}

// A byte of the samples.
inline int value(const gpunn::Split& split, std::size_t at) { return std::to_integer<int>(split.values[at]); }

}  // namespace test
