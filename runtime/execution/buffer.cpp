// Memory of a backend, and the account of it.

#include <gpunn/error.hpp>

#include <algorithm>
#include <utility>

#include "common/text.hpp"
#include "execution/backend_impl.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

Buffer::Buffer(Backend* backend, int32_t kind, void* data, uint64_t bytes, bool pooled)
    : backend_(backend), kind_(kind), pooled_(pooled), data_(data), bytes_(bytes) {}

Buffer::Buffer(Buffer&& other) noexcept
    : backend_(std::exchange(other.backend_, nullptr)),
      kind_(other.kind_),
      pooled_(other.pooled_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(backend_, other.backend_);
  std::swap(kind_, other.kind_);
  std::swap(pooled_, other.pooled_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  Backend::Impl& impl = *backend_->impl_;
  if (kind_ == GPUNN_MEMORY_DEVICE) impl.allocated_bytes -= bytes_;
  if (pooled_) {
    impl.pool.give(data_);
    return;
  }
  const Level& level = impl.bottom();
  plugins::guarded_void([&] { level.table().memory_free(level.device, kind_, data_); });
}

namespace {

std::string request_text(uint64_t bytes, int32_t kind) {
  return "memory_alloc of " + human_bytes(bytes) +
         (kind == GPUNN_MEMORY_PINNED ? " of pinned memory" : " of device memory");
}

}  // namespace

void* Backend::Impl::plugin_memory(int32_t kind, uint64_t bytes, plugins::CallResult& result) {
  const Level& level = bottom();
  void* data = nullptr;
  // Not even an empty tensor has the address NULL.
  const uint64_t request = std::max<uint64_t>(bytes, 1);
  result = plugins::guarded(
      [&](gpunn_error* error) { return level.table().memory_alloc(level.device, kind, request, &data, error); });
  if (!result.ok()) return nullptr;
  if (data == nullptr) {
    throw Error("plugin '" + level.plugin->name() + "': " + request_text(bytes, kind) + " said OK but gave no address");
  }
  if (kind == GPUNN_MEMORY_DEVICE && reinterpret_cast<uintptr_t>(data) % level.info.alignment != 0) {
    plugins::guarded_void([&] { level.table().memory_free(level.device, kind, data); });
    throw Error("plugin '" + level.plugin->name() + "': memory_alloc gave an address that is not aligned to the " +
                std::to_string(level.info.alignment) + " bytes of its device_info");
  }
  ++allocations;
  return data;
}

void Backend::Impl::no_memory(int32_t kind, uint64_t bytes, const plugins::CallResult& result) {
  if (result.status != GPUNN_OUT_OF_MEMORY) plugins::throw_failure(*bottom().plugin, request_text(bytes, kind), result);
  std::string text = plugins::failure_text(*bottom().plugin, request_text(bytes, kind), result);
  if (kind == GPUNN_MEMORY_DEVICE) {
    text += "; this process holds " + human_bytes(allocated_bytes) + " on the device";
    if (const uint64_t free = ask_free_bytes(); free > 0) text += ", " + human_bytes(free) + " are free";
  }
  throw OutOfMemory(text);
}

uint64_t Backend::Impl::ask_free_bytes() const {
  gpunn_device_info now{};
  now.struct_size = sizeof(now);
  const plugins::CallResult result =
      plugins::guarded([&](gpunn_error* error) { return bottom().table().device_info(bottom().device, &now, error); });
  return result.ok() ? now.free_bytes : 0;
}

void* Backend::Impl::allocate(uint64_t bytes) {
  plugins::CallResult result;
  void* const data = plugin_memory(GPUNN_MEMORY_DEVICE, bytes, result);
  if (data == nullptr && result.status != GPUNN_OUT_OF_MEMORY) {
    plugins::throw_failure(*bottom().plugin, request_text(bytes, GPUNN_MEMORY_DEVICE), result);
  }
  return data;
}

void Backend::Impl::release(void* data) noexcept {
  plugins::guarded_void([&] { bottom().table().memory_free(bottom().device, GPUNN_MEMORY_DEVICE, data); });
}

void Backend::Impl::wait() noexcept {
  if (bottom().stream == nullptr) return;
  ++synchronizations;
  gpunn_error ignored{};
  ignored.struct_size = sizeof(ignored);
  plugins::guarded_void([&] { bottom().table().stream_sync(bottom().stream, &ignored); });
}

Buffer Backend::allocate(uint64_t bytes, int32_t kind) {
  plugins::CallResult result;
  void* data = impl_->plugin_memory(kind, bytes, result);
  const PoolStatistics& pool = impl_->pool.statistics();
  if (data == nullptr && result.status == GPUNN_OUT_OF_MEMORY && pool.held_bytes > pool.used_bytes) {
    impl_->pool.trim();
    data = impl_->plugin_memory(kind, bytes, result);
  }
  if (data == nullptr) impl_->no_memory(kind, bytes, result);
  if (kind == GPUNN_MEMORY_DEVICE) impl_->allocated_bytes += bytes;
  return Buffer(this, kind, data, bytes, false);
}

Buffer Backend::allocate_temporary(uint64_t bytes) {
  if (!impl_->pooling) return allocate(bytes);
  void* const data = impl_->pool.take(bytes);
  if (data == nullptr) {
    impl_->no_memory(GPUNN_MEMORY_DEVICE, bytes, {GPUNN_OUT_OF_MEMORY, "there is none for a temporary buffer"});
  }
  impl_->allocated_bytes += bytes;
  return Buffer(this, GPUNN_MEMORY_DEVICE, data, bytes, true);
}

const PoolStatistics& Backend::pool_statistics() const { return impl_->pool.statistics(); }

uint64_t Backend::free_bytes() {
  const PoolStatistics& pool = impl_->pool.statistics();
  const uint64_t free = impl_->ask_free_bytes();
  return free == 0 ? 0 : free + (pool.held_bytes - pool.used_bytes);
}

}  // namespace gpunn::execution
