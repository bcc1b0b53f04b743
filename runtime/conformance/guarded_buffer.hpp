#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "execution/backend.hpp"

namespace gpunn::conformance {

// Fill values of guard bands. NaN (or -1) around inputs spoils the result of a kernel that reads beyond an end. Written
// tensors have another value around them, so that a NaN that was read and copied on is still seen.
inline constexpr std::byte kInputBand{0xFF};
inline constexpr std::byte kOutputBand{0xA5};

// Device memory of exactly this many bytes between two guard bands, which show writes beyond its ends.
class GuardedBuffer {
 public:
  GuardedBuffer(execution::Backend& backend, uint64_t bytes, std::byte band);

  void* data() const { return static_cast<std::byte*>(buffer_.data()) + front_; }
  uint64_t bytes() const { return image_.size() - front_ - kBack; }

  // Writes the content and the bands again.
  void write(std::span<const std::byte> content);
  void fill(uint8_t value);

  // Reads everything back.
  void read();
  // After read(): the content, and the place where a band was overwritten (empty: none).
  std::span<const std::byte> content() const;
  std::string damage() const;

 private:
  static constexpr uint64_t kBack = 512;
  void upload();

  execution::Backend& backend_;
  std::byte band_;
  uint64_t front_;
  std::vector<std::byte> image_;
  execution::Buffer buffer_;
};

}  // namespace gpunn::conformance
