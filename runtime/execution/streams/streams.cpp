#include "execution/streams/streams.hpp"

#include <gpunn/error.hpp>

#include "execution/backend_impl.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

Streams::Streams(Backend& backend, std::size_t count) : backend_(backend) {
  streams_.emplace_back();
  for (const Level& level : backend.impl_->levels) streams_.front().push_back(level.stream);
  try {
    while (streams_.size() < count) streams_.push_back(backend.impl_->make_streams());
  } catch (...) {
    close();
    throw;
  }
}

Streams::~Streams() { close(); }

void Streams::close() noexcept {
  forget_marks();
  for (std::size_t stream = 1; stream < streams_.size(); ++stream) backend_.impl_->destroy_streams(streams_[stream]);
}

gpunn_event* Streams::mark(std::size_t stream) {
  const Level& level = backend_.impl_->bottom();
  gpunn_event* event = nullptr;
  plugins::call(*level.plugin, "event_create",
                [&](gpunn_error* error) { return level.table().event_create(level.device, &event, error); });
  if (event == nullptr) throw Error("plugin '" + level.plugin->name() + "': event_create said OK but gave no event");
  marks_.push_back(event);
  plugins::call(*level.plugin, "event_record",
                [&](gpunn_error* error) { return level.table().event_record(event, streams_[stream].back(), error); });
  return event;
}

void Streams::wait(std::size_t stream, gpunn_event* mark) {
  const Level& level = backend_.impl_->bottom();
  plugins::call(*level.plugin, "event_wait",
                [&](gpunn_error* error) { return level.table().event_wait(streams_[stream].back(), mark, error); });
}

void Streams::forget_marks() noexcept {
  const Level& level = backend_.impl_->bottom();
  for (gpunn_event* event : marks_) plugins::guarded_void([&] { level.table().event_destroy(event); });
  marks_.clear();
}

}  // namespace gpunn::execution
