#include "execution/streams/caller_stream.hpp"

#include <gpunn/error.hpp>

#include "common/text.hpp"
#include "execution/backend_impl.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

CallerStream::CallerStream(Backend& backend, void* native)
    : backend_(backend), native_(native), handles_(backend.impl_->wrap_stream(native)) {}

CallerStream::~CallerStream() {
  pool_.trim();
  const Level& bottom = backend_.impl_->bottom();
  if (mark_ != nullptr) plugins::guarded_void([&] { bottom.table().event_destroy(mark_); });
  backend_.impl_->destroy_streams(handles_);
}

void CallerStream::copy(void* to, const void* from, uint64_t bytes) const {
  if (bytes == 0) return;
  const Level& bottom = backend_.impl_->bottom();
  plugins::call(
      *bottom.plugin, [&] { return "copy of " + human_bytes(bytes) + " on the caller's stream"; },
      [&](gpunn_error* error) {
        return bottom.table().copy(handles_.back(), to, from, bytes, GPUNN_DEVICE_TO_DEVICE, error);
      });
}

void CallerStream::synchronize() {
  ++backend_.impl_->synchronizations;
  const Level& bottom = backend_.impl_->bottom();
  plugins::call(*bottom.plugin, "stream_sync of the caller's stream",
                [&](gpunn_error* error) { return bottom.table().stream_sync(handles_.back(), error); });
}

void CallerStream::mark() {
  const Level& bottom = backend_.impl_->bottom();
  if (mark_ == nullptr) {
    plugins::call(*bottom.plugin, "event_create",
                  [&](gpunn_error* error) { return bottom.table().event_create(bottom.device, &mark_, error); });
    if (mark_ == nullptr) throw Error("plugin '" + bottom.plugin->name() + "': event_create said OK but gave no event");
  }
  plugins::call(*bottom.plugin, "event_record",
                [&](gpunn_error* error) { return bottom.table().event_record(mark_, handles_.back(), error); });
}

void CallerStream::wait_for(const CallerStream& from) {
  if (from.mark_ == nullptr) return;
  const Level& bottom = backend_.impl_->bottom();
  plugins::call(*bottom.plugin, "event_wait",
                [&](gpunn_error* error) { return bottom.table().event_wait(handles_.back(), from.mark_, error); });
}

void* CallerStream::allocate(uint64_t bytes) { return backend_.impl_->allocate(bytes); }

void CallerStream::release(void* data) noexcept { backend_.impl_->release(data); }

void CallerStream::wait() noexcept {
  ++backend_.impl_->synchronizations;
  gpunn_error ignored{};
  ignored.struct_size = sizeof(ignored);
  const Level& bottom = backend_.impl_->bottom();
  plugins::guarded_void([&] { bottom.table().stream_sync(handles_.back(), &ignored); });
}

}  // namespace gpunn::execution
