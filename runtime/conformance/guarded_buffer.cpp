#include "conformance/guarded_buffer.hpp"

#include <algorithm>

namespace gpunn::conformance {

namespace {

// Bytes before the content, so that it is aligned as the device aligns its memory.
uint64_t front_of(const execution::Backend& backend) { return std::max<uint64_t>(512, backend.info().alignment); }

}  // namespace

GuardedBuffer::GuardedBuffer(execution::Backend& backend, uint64_t bytes, std::byte band)
    : backend_(backend),
      band_(band),
      front_(front_of(backend)),
      image_(front_ + bytes + kBack, band_),
      buffer_(backend.allocate_temporary(image_.size())) {}

void GuardedBuffer::write(std::span<const std::byte> content) {
  std::fill(image_.begin(), image_.end(), band_);
  std::copy(content.begin(), content.end(), image_.begin() + static_cast<std::ptrdiff_t>(front_));
  upload();
}

void GuardedBuffer::fill(uint8_t value) {
  std::fill(image_.begin(), image_.end(), band_);
  std::fill_n(image_.begin() + static_cast<std::ptrdiff_t>(front_), bytes(), std::byte{value});
  upload();
}

void GuardedBuffer::upload() { backend_.upload(buffer_.data(), image_.data(), image_.size()); }

void GuardedBuffer::read() { backend_.download(image_.data(), buffer_.data(), image_.size()); }

std::span<const std::byte> GuardedBuffer::content() const { return std::span(image_).subspan(front_, bytes()); }

std::string GuardedBuffer::damage() const {
  // The bytes next to the content come first: there is the first wrong write.
  for (uint64_t i = 0; i < kBack; ++i) {
    if (image_[front_ + bytes() + i] != band_)
      return "wrote behind its end, at byte " + std::to_string(i) + " after it";
  }
  for (uint64_t i = 1; i <= front_; ++i) {
    if (image_[front_ - i] != band_) return "wrote before its beginning, at byte " + std::to_string(i) + " before it";
  }
  return "";
}

}  // namespace gpunn::conformance
