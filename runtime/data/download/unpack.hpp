#pragma once

#include <gpunn/progress.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "common/input_file.hpp"

namespace gpunn::data {

// Reads a file unchanged or, if it begins with gzip's magic bytes, unpacked. Memory use is fixed: the caller decides
// with each read how much is unpacked.
class UnpackingReader {
 public:
  enum class Mode { unpacked, as_it_is };
  // Throws Error(missing) if the file can't be opened or read.
  explicit UnpackingReader(const std::filesystem::path& file, Mode mode = Mode::unpacked);
  ~UnpackingReader();
  UnpackingReader(const UnpackingReader&) = delete;
  UnpackingReader& operator=(const UnpackingReader&) = delete;

  // Fills `out`; fewer bytes only at the end. Throws Error if the packed stream is corrupt or truncated.
  std::size_t read(std::span<std::byte> out);

  bool packed() const { return inflater_ != nullptr; }
  uint64_t file_bytes() const { return stream_.bytes(); }
  // Unpacked bytes delivered so far.
  uint64_t position() const { return position_; }
  // The most that the file can hold unpacked: deflate packs at most 1032 to 1.
  uint64_t most_bytes() const;

 private:
  struct Inflater;
  void refill();
  std::size_t read_plain(std::span<std::byte> out);
  std::size_t read_packed(std::span<std::byte> out);

  InputFile stream_;
  uint64_t position_ = 0;
  std::unique_ptr<Inflater> inflater_;
  LongWork work_;  // in bytes of the file
};

}  // namespace gpunn::data
