#include "execution/streams/copy_stream.hpp"

#include <gpunn/error.hpp>

#include "common/text.hpp"
#include "execution/backend_impl.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

CopyStream::CopyStream(Backend& backend) : backend_(backend) {
  const Level& level = backend.impl_->bottom();
  plugins::call(*level.plugin, "stream_create",
                [&](gpunn_error* error) { return level.table().stream_create(level.device, &stream_, error); });
  if (stream_ == nullptr)
    throw Error("plugin '" + level.plugin->name() + "': stream_create said OK but gave no stream");
}

CopyStream::~CopyStream() {
  const Level& level = backend_.impl_->bottom();
  plugins::guarded([&](gpunn_error* error) { return level.table().stream_sync(stream_, error); });
  plugins::guarded_void([&] { level.table().stream_destroy(stream_); });
}

void CopyStream::upload(void* device, const void* pinned, uint64_t bytes) {
  if (bytes == 0) return;
  const Level& level = backend_.impl_->bottom();
  plugins::call(
      *level.plugin, [&] { return "copy of " + human_bytes(bytes) + " to the device"; },
      [&](gpunn_error* error) {
        return level.table().copy(stream_, device, pinned, bytes, GPUNN_HOST_TO_DEVICE, error);
      });
}

void CopyStream::record(Event& event) {
  const Level& level = backend_.impl_->bottom();
  plugins::call(*level.plugin, "event_record",
                [&](gpunn_error* error) { return level.table().event_record(event.handle_, stream_, error); });
  event.recorded_ = true;
}

void CopyStream::wait_for(const Event& event) {
  const Level& level = backend_.impl_->bottom();
  plugins::call(*level.plugin, "event_wait",
                [&](gpunn_error* error) { return level.table().event_wait(stream_, event.handle_, error); });
}

void CopyStream::synchronize() {
  const Level& level = backend_.impl_->bottom();
  ++backend_.impl_->synchronizations;
  plugins::call(*level.plugin, "stream_sync",
                [&](gpunn_error* error) { return level.table().stream_sync(stream_, error); });
}

}  // namespace gpunn::execution
