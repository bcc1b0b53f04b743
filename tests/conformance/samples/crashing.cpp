// A host plugin that ends more than its own work: its queries crash on nonsense, SCALE ends the process and ADD loses
// the device, after which nothing works any more. It opens devices that it does not have, and what it says of its
// device makes no sense.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "loops.hpp"

namespace {

using namespace samples;

class CrashingDevice final : public gpunn::plugin::HostDevice {
 public:
  CrashingDevice() {
    add(GPUNN_OP_SCALE, serve<gpunn_scale_attrs>([](const gpunn_scale_attrs&, const OpArgs&) {
          std::fputs("SCALE is my downfall\n", stderr);
          std::abort();
        }));
    add(GPUNN_OP_ADD, serve<NoAttrs>([this](const NoAttrs&, const OpArgs&) {
          lost_ = true;
          throw gpunn::plugin::Failure(GPUNN_DEVICE_LOST, "an illegal address was met");
        }));
    add(GPUNN_OP_RELU, serve<NoAttrs>([this](const NoAttrs&, const OpArgs& args) {
          if (lost_) throw gpunn::plugin::Failure(GPUNN_DEVICE_LOST, "an illegal address was met long ago");
          for (int64_t i = 0; i < element_count(args.output(0)); ++i) {
            const float x = args.in<float>(0)[i];
            args.out<float>(0)[i] = x < 0 ? 0 : x;
          }
        }));
  }
  void info(gpunn_device_info& info) override {
    HostDevice::info(info);
    info.compute_units = 0;
  }

 private:
  bool lost_ = false;
};

class Crashing final : public gpunn::plugin::Backend {
 public:
  const char* name() const override { return "crashing"; }
  const char* version() const override { return "1"; }
  int probe() override { return 1; }
  std::unique_ptr<gpunn::plugin::Device> open(const gpunn_device_options&) override {
    return std::make_unique<CrashingDevice>();
  }
};

// plugin.hpp keeps nonsense from kernels, so that the table itself has to fall for it: as a division by a stride of 0
// does, without asking a sanitizer's leave.
gpunn_status crashing_query(gpunn_device* device, const gpunn_op_desc* desc, gpunn_op_support* support,
                            gpunn_error* error) {
  if (desc->op == GPUNN_OP_CONV2D && desc->attrs == nullptr) std::raise(SIGFPE);
  return gpunn::plugin::export_backend<Crashing>(GPUNN_ABI_MAJOR, GPUNN_ABI_MINOR)
      ->op_query(device, desc, support, error);
}

}  // namespace

extern "C" GPUNN_EXPORT const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  const gpunn_plugin* const table = gpunn::plugin::export_backend<Crashing>(major, minor);
  if (table == nullptr) return nullptr;
  static gpunn_plugin crashing = *table;
  crashing.op_query = crashing_query;
  return &crashing;
}
