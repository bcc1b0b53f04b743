// A plugin on plugin.hpp in which everything but probe and open throws.
#include <gpunn/plugin.hpp>

namespace {

using namespace gpunn::plugin;

[[noreturn]] void refuse(const char* where) { throw std::runtime_error(std::string("thrown in ") + where); }

class ThrowingStream final : public Stream {
 public:
  void* native() override { return nullptr; }
  void synchronize() override { refuse("synchronize"); }
  void copy(void*, const void*, uint64_t, int32_t) override { refuse("copy"); }
  void fill(void*, uint8_t, uint64_t) override { throw 42; }
};

class ThrowingDevice final : public HostDevice {
 public:
  ThrowingDevice() {
    add(GPUNN_OP_RELU, {.query = [](const OpDesc&) -> Support { refuse("query"); }, .create = nullptr});
    add(GPUNN_OP_COPY, {.query = [](const OpDesc&) { return Support::yes(); },
                        .create = [](const OpDesc&) -> std::unique_ptr<Kernel> {
                          throw Failure(GPUNN_UNSUPPORTED, "thrown in create");
                        }});
    add(GPUNN_OP_FILL,
        {.query = [](const OpDesc&) { return Support::yes(); },
         .create = [](const OpDesc&) { return make_kernel([](Stream&, const OpArgs&) { refuse("enqueue"); }); }});
  }
  void* allocate(int32_t, uint64_t) override { throw std::bad_alloc(); }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<ThrowingStream>(); }
  std::unique_ptr<Event> create_event() override { refuse("create_event"); }
};

class Throwing final : public Backend {
 public:
  const char* name() const override { return "throwing"; }
  const char* version() const override { return "1"; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options&) override { return std::make_unique<ThrowingDevice>(); }
  const void* extension(const char*) override { refuse("extension"); }
  void shutdown() override { refuse("shutdown"); }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Throwing>(major, minor);
}
