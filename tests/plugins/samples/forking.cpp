// A backend in a memory domain of its own whose capture follows events from stream to stream, as CUDA's does. A launch
// runs the streams in the least likely order that the events allow: always the stream that was made last goes on as far
// as it can. What should have been ordered by an event and was not comes out wrong. ADD, SCALE and RELU of f32.
#include <gpunn/plugin.hpp>

#include <limits>
#include <optional>
#include <vector>

#include "control.hpp"

namespace {

using namespace gpunn::plugin;

Control control;
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

struct Work {
  int32_t op;
  float factor;
  const float* a;
  const float* b;
  float* y;
  int64_t count;

  void run() const {
    for (int64_t i = 0; i < count; ++i) {
      if (op == GPUNN_OP_ADD) y[i] = a[i] + b[i];
      if (op == GPUNN_OP_SCALE) y[i] = factor * a[i];
      if (op == GPUNN_OP_RELU) y[i] = a[i] > 0 ? a[i] : 0;
    }
  }
};

// One of: work, reaching a mark, waiting for a mark.
struct Item {
  std::optional<Work> work;
  std::size_t reaches = kNone;
  std::size_t waits = kNone;
};

// What is captured now, by stream in the order in which they joined; the first is the one that captures.
struct Recording {
  std::vector<std::vector<Item>> streams;
  std::size_t marks = 0;
};
std::optional<Recording> recording;

class Tape final : public CapturedGraph {
 public:
  explicit Tape(Recording of) : recording_(std::move(of)) { ++control.open_graphs; }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  ~Tape() override { --control.open_graphs; }

  void launch(Stream&) override {
    ++control.launches;
    std::vector<bool> reached(recording_.marks, false);
    std::vector<std::size_t> next(recording_.streams.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = next.size(); s-- > 0 && !moved;) {
        const std::vector<Item>& items = recording_.streams[s];
        while (next[s] < items.size() && (items[next[s]].waits == kNone || reached[items[next[s]].waits])) {
          const Item& item = items[next[s]++];
          if (item.work) item.work->run();
          if (item.reaches != kNone) reached[item.reaches] = true;
          moved = true;
        }
      }
    }
    for (std::size_t s = 0; s < next.size(); ++s) {
      if (next[s] != recording_.streams[s].size())
        throw Failure(GPUNN_INTERNAL, "the captured streams are at a deadlock");
    }
  }

 private:
  Recording recording_;
};

class ForkingStream final : public Stream {
 public:
  void* native() override { return this; }
  void synchronize() override {
    if (captures()) throw Failure(GPUNN_INTERNAL, "a stream can't be synchronised while it captures");
  }
  void copy(void* to, const void* from, uint64_t bytes, int32_t) override { std::memmove(to, from, bytes); }
  void fill(void* to, uint8_t value, uint64_t bytes) override { std::memset(to, value, bytes); }
  void begin_capture() override {
    recording.emplace();
    join();
  }
  std::unique_ptr<CapturedGraph> end_capture() override {
    auto tape = std::make_unique<Tape>(std::move(*recording));
    recording.reset();
    return tape;
  }
  void take(const Work& work) {
    if (!captures()) {
      ++control.enqueues;
      work.run();
      return;
    }
    ++control.recorded;
    control.streams = std::max<int32_t>(control.streams, static_cast<int32_t>(recording->streams.size()));
    items().push_back({.work = work, .reaches = kNone, .waits = kNone});
  }
  bool captures() const {
    return recording.has_value() && place_ < recording->streams.size() && epoch_ == control.epoch;
  }
  void join() {
    if (captures()) return;
    if (recording->streams.empty()) ++control.epoch;
    place_ = recording->streams.size();
    epoch_ = control.epoch;
    recording->streams.emplace_back();
  }
  std::vector<Item>& items() { return recording->streams[place_]; }

 private:
  std::size_t place_ = kNone;
  int32_t epoch_ = -1;
};

class ForkingEvent final : public Event {
 public:
  void record(Stream& stream) override {
    auto& on = static_cast<ForkingStream&>(stream);
    mark_ = kNone;
    if (!on.captures()) return;
    mark_ = recording->marks++;
    on.items().push_back({.work = {}, .reaches = mark_, .waits = kNone});
  }
  void wait(Stream& stream) override {
    if (mark_ == kNone || !recording) return;
    auto& on = static_cast<ForkingStream&>(stream);
    on.join();
    on.items().push_back({.work = {}, .reaches = kNone, .waits = mark_});
  }
  void synchronize() override {}
  float milliseconds_since(Event&) override { return 0; }

 private:
  std::size_t mark_ = kNone;
};

class ForkingDevice final : public HostDevice {
 public:
  ForkingDevice() {
    for (const int32_t op : {GPUNN_OP_ADD, GPUNN_OP_SCALE, GPUNN_OP_RELU}) {
      add(op, {.query = [](const OpDesc&) { return Support::yes(); },
               .create =
                   [op](const OpDesc& desc) {
                     const float factor = op == GPUNN_OP_SCALE ? desc.attrs<gpunn_scale_attrs>().factor : 1.0F;
                     return make_kernel([op, factor](Stream& stream, const OpArgs& args) {
                       const float* b = args.inputs() > 1 ? args.in<float>(1) : nullptr;
                       static_cast<ForkingStream&>(stream).take(
                           {op, factor, args.in<float>(0), b, args.out<float>(0), element_count(args.output(0))});
                     });
                   }});
    }
  }
  void info(gpunn_device_info& info) override {
    HostDevice::info(info);
    copy_text(info.memory_domain, sizeof(info.memory_domain), "sample:forking");
  }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<ForkingStream>(); }
  std::unique_ptr<Event> create_event() override { return std::make_unique<ForkingEvent>(); }
};

class Forking final : public Backend {
 public:
  const char* name() const override { return "forking"; }
  const char* version() const override { return "1"; }
  bool can_capture() const override { return true; }
  bool concurrent_streams() const override { return true; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options&) override { return std::make_unique<ForkingDevice>(); }
  const void* extension(const char* name) override {
    return std::strcmp(name, "test.control") == 0 ? &control : nullptr;
  }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Forking>(major, minor);
}
