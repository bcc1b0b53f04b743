#include <gpunn/error.hpp>

#include "execution/backend_impl.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

namespace {

// An event of the plugin at the bottom of the chain.
class Event {
 public:
  explicit Event(const Level& level) : level_(level) {
    plugins::call(*level.plugin, "event_create",
                  [&](gpunn_error* error) { return level.table().event_create(level.device, &handle_, error); });
    if (handle_ == nullptr) {
      throw Error("plugin '" + level.plugin->name() + "': event_create said OK but gave no event");
    }
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    plugins::guarded_void([&] { level_.table().event_destroy(handle_); });
  }

  void record() {
    plugins::call(*level_.plugin, "event_record",
                  [&](gpunn_error* error) { return level_.table().event_record(handle_, level_.stream, error); });
    recorded_ = true;
  }
  void wait() {
    plugins::call(*level_.plugin, "event_sync",
                  [&](gpunn_error* error) { return level_.table().event_sync(handle_, error); });
  }
  gpunn_event* handle() const { return handle_; }
  bool recorded() const { return recorded_; }

 private:
  const Level& level_;
  gpunn_event* handle_ = nullptr;
  bool recorded_ = false;
};

class EventTimer final : public Backend::Timer {
 public:
  explicit EventTimer(const Level& level) : level_(level), start_(level), stop_(level) {}
  void start() override { start_.record(); }
  void stop() override { stop_.record(); }
  double milliseconds() override {
    if (!start_.recorded() || !stop_.recorded()) throw Error("a timer was read before it was started and stopped");
    stop_.wait();
    float elapsed = 0;
    plugins::call(*level_.plugin, "event_elapsed", [&](gpunn_error* error) {
      return level_.table().event_elapsed(start_.handle(), stop_.handle(), &elapsed, error);
    });
    return elapsed;
  }

 private:
  const Level& level_;
  Event start_, stop_;
};

}  // namespace

std::unique_ptr<Backend::Timer> Backend::make_timer() { return std::make_unique<EventTimer>(impl_->bottom()); }

}  // namespace gpunn::execution
