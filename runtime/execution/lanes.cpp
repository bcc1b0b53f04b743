#include "execution/lanes.hpp"

#include <gpunn/error.hpp>

#include "execution/backend_impl.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

Lanes::Lanes(Backend& backend, std::size_t count) : backend_(backend) {
  streams_.emplace_back();
  for (const Level& level : backend.impl_->levels) streams_.front().push_back(level.stream);
  try {
    while (streams_.size() < count) streams_.push_back(backend.impl_->make_streams());
  } catch (...) {
    close();
    throw;
  }
}

Lanes::~Lanes() { close(); }

void Lanes::close() noexcept {
  forget_marks();
  for (std::size_t lane = 1; lane < streams_.size(); ++lane) backend_.impl_->destroy_streams(streams_[lane]);
}

gpunn_event* Lanes::mark(std::size_t lane) {
  const Level& level = backend_.impl_->bottom();
  gpunn_event* event = nullptr;
  plugins::call(*level.plugin, "event_create",
                [&](gpunn_error* error) { return level.table().event_create(level.device, &event, error); });
  if (event == nullptr) throw Error("plugin '" + level.plugin->name() + "': event_create said OK but gave no event");
  marks_.push_back(event);
  plugins::call(*level.plugin, "event_record",
                [&](gpunn_error* error) { return level.table().event_record(event, streams_[lane].back(), error); });
  return event;
}

void Lanes::wait(std::size_t lane, gpunn_event* mark) {
  const Level& level = backend_.impl_->bottom();
  plugins::call(*level.plugin, "event_wait",
                [&](gpunn_error* error) { return level.table().event_wait(streams_[lane].back(), mark, error); });
}

void Lanes::forget_marks() noexcept {
  const Level& level = backend_.impl_->bottom();
  for (gpunn_event* event : marks_) plugins::guarded_void([&] { level.table().event_destroy(event); });
  marks_.clear();
}

}  // namespace gpunn::execution
