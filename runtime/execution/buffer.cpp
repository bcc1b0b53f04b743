// Memory of a backend, and the account of it.

#include <gpunn/error.hpp>

#include <algorithm>
#include <utility>

#include "common/text.hpp"
#include "execution/backend_impl.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

Buffer::Buffer(Backend* backend, int32_t kind, void* data, uint64_t bytes)
    : backend_(backend), kind_(kind), data_(data), bytes_(bytes) {}

Buffer::Buffer(Buffer&& other) noexcept
    : backend_(std::exchange(other.backend_, nullptr)),
      kind_(other.kind_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(backend_, other.backend_);
  std::swap(kind_, other.kind_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  Backend::Impl& impl = *backend_->impl_;
  const Level& level = impl.bottom();
  plugins::guarded_void([&] { level.table().memory_free(level.device, kind_, data_); });
  if (kind_ == GPUNN_MEMORY_DEVICE) impl.allocated_bytes -= bytes_;
}

Buffer Backend::allocate(uint64_t bytes, int32_t kind) {
  const Level& level = impl_->bottom();
  const char* const what = kind == GPUNN_MEMORY_PINNED ? " of pinned memory" : " of device memory";
  void* data = nullptr;
  // Not even an empty tensor has the address NULL.
  const uint64_t request = std::max<uint64_t>(bytes, 1);
  plugins::call(
      *level.plugin, [&] { return "memory_alloc of " + human_bytes(bytes) + what; },
      [&](gpunn_error* error) { return level.table().memory_alloc(level.device, kind, request, &data, error); });
  if (data == nullptr) {
    throw Error("plugin '" + level.plugin->name() + "': memory_alloc of " + human_bytes(bytes) + what +
                " said OK but gave no address");
  }
  Buffer buffer(this, kind, data, bytes);
  ++impl_->allocations;
  if (kind == GPUNN_MEMORY_DEVICE) {
    impl_->allocated_bytes += bytes;
    if (reinterpret_cast<uintptr_t>(data) % level.info.alignment != 0) {
      throw Error("plugin '" + level.plugin->name() + "': memory_alloc gave an address that is not aligned to the " +
                  std::to_string(level.info.alignment) + " bytes of its device_info");
    }
  }
  return buffer;
}

}  // namespace gpunn::execution
