#include "execution/streams/event.hpp"

#include <gpunn/error.hpp>

#include <utility>

#include "execution/backend_impl.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

Event::Event(Backend& backend) : backend_(&backend) {
  const Level& level = backend.impl_->bottom();
  plugins::call(*level.plugin, "event_create",
                [&](gpunn_error* error) { return level.table().event_create(level.device, &handle_, error); });
  if (handle_ == nullptr) throw Error("plugin '" + level.plugin->name() + "': event_create said OK but gave no event");
}

Event::Event(Event&& other) noexcept
    : backend_(other.backend_), handle_(std::exchange(other.handle_, nullptr)), recorded_(other.recorded_) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(backend_, other.backend_);
  std::swap(handle_, other.handle_);
  std::swap(recorded_, other.recorded_);
  return *this;
}

Event::~Event() {
  if (handle_ == nullptr) return;
  const Level& level = backend_->impl_->bottom();
  plugins::guarded_void([&] { level.table().event_destroy(handle_); });
}

void Event::record() {
  const Level& level = backend_->impl_->bottom();
  plugins::call(*level.plugin, "event_record",
                [&](gpunn_error* error) { return level.table().event_record(handle_, level.stream, error); });
  recorded_ = true;
}

void Event::synchronize() {
  const Level& level = backend_->impl_->bottom();
  ++backend_->impl_->synchronizations;
  plugins::call(*level.plugin, "event_sync",
                [&](gpunn_error* error) { return level.table().event_sync(handle_, error); });
}

double Event::milliseconds_since(const Event& start) const {
  if (!start.recorded_ || !recorded_) throw Error("a time was asked for between events that were not recorded");
  const Level& level = backend_->impl_->bottom();
  float elapsed = 0;
  plugins::call(*level.plugin, "event_elapsed", [&](gpunn_error* error) {
    return level.table().event_elapsed(start.handle_, handle_, &elapsed, error);
  });
  return elapsed;
}

void Backend::wait_for(const Event& event) {
  const Level& level = impl_->bottom();
  plugins::call(*level.plugin, "event_wait",
                [&](gpunn_error* error) { return level.table().event_wait(level.stream, event.handle_, error); });
}

Event Backend::make_event() { return Event(*this); }

}  // namespace gpunn::execution
