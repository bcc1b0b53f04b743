#include <gpunn/error.hpp>

#include "execution/streams/event.hpp"

namespace gpunn::execution {

namespace {

class EventTimer final : public Backend::Timer {
 public:
  explicit EventTimer(Backend& backend) : start_(backend.make_event()), stop_(backend.make_event()) {}
  void start() override { start_.record(); }
  void stop() override { stop_.record(); }
  double milliseconds() override {
    if (!start_.recorded() || !stop_.recorded()) throw Error("a timer was read before it was started and stopped");
    stop_.synchronize();
    return stop_.milliseconds_since(start_);
  }

 private:
  Event start_, stop_;
};

}  // namespace

std::unique_ptr<Backend::Timer> Backend::make_timer() { return std::make_unique<EventTimer>(*this); }

}  // namespace gpunn::execution
