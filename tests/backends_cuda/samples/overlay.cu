// An overlay on cuda_naive for tests: its RELU can be told to fault, its TABLE_LOAD (the learning rate of a step) to
// wait on the device until the host lets it go, and to fault at one step:
//
//   GPUNN_TEST_LOSE=7    TABLE_LOAD at step 7, counted from 0, writes to an address that is nowhere
#include <gpunn/plugin.hpp>
#include <gpunn/plugin_cuda.hpp>

#include <cstdlib>

#include "control.hpp"

// Not an unnamed one: nvcc warns of a template of the header that would have to show what is in it.
namespace cuda_test {

using namespace gpunn::plugin;

CudaControl control;

constexpr uint64_t kPatience = 10'000'000'000;  // nanoseconds

__device__ void write_nowhere() { *reinterpret_cast<volatile float*>(uintptr_t{16}) = 1.0F; }

__global__ void relu(const float* x, float* y, int64_t n, bool fault) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (fault && i == 0) write_nowhere();
  if (i < n) y[i] = x[i] < 0.0F ? 0.0F : x[i];
}

__device__ uint64_t nanoseconds() {
  uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void load(const float* table, int64_t length, const int64_t* step, float* y, const volatile int32_t* open,
                     volatile int32_t* gave_up, int64_t fault_step) {
  const uint64_t begin = nanoseconds();
  while (*open == 0) {
    if (nanoseconds() - begin > kPatience) {
      *gave_up = 1;
      break;
    }
  }
  if (*step == fault_step) write_nowhere();
  *y = table[min(max(*step, int64_t{0}), length - 1)];
}

Support query_relu(const OpDesc& desc) {
  const bool plain = desc.input(0).dtype == GPUNN_F32 && is_packed(desc.input(0)) && is_packed(desc.output(0));
  return plain ? Support::yes() : Support::no("packed f32 only");
}

std::unique_ptr<Kernel> create_relu(const OpDesc& desc) {
  return make_kernel([n = element_count(desc.output(0))](Stream& stream, const OpArgs& args) {
    if (n == 0) return;
    ++control.relus;
    relu<<<static_cast<unsigned>((n + 255) / 256), 256, 0, cuda_stream(stream)>>>(args.in<float>(0), args.out<float>(0),
                                                                                  n, control.fault);
    check_cuda(cudaGetLastError(), "launching relu");
  });
}

Support query_load(const OpDesc& desc) {
  return desc.input(0).dtype == GPUNN_F32 ? Support::yes() : Support::no("f32 only");
}

std::unique_ptr<Kernel> create_load(const OpDesc& desc) {
  const char* lose = std::getenv("GPUNN_TEST_LOSE");
  const int64_t fault_step = lose == nullptr ? -1 : std::strtoll(lose, nullptr, 10);
  return make_kernel([length = desc.input(0).dim[0], fault_step](Stream& stream, const OpArgs& args) {
    load<<<1, 1, 0, cuda_stream(stream)>>>(args.in<float>(0), length, args.in<int64_t>(1), args.out<float>(0),
                                           control.open, control.gave_up, fault_step);
    check_cuda(cudaGetLastError(), "launching table_load");
  });
}

class TestDevice final : public CudaDevice {
 public:
  explicit TestDevice(const gpunn_device_options& options) : CudaDevice(options) {
    add(GPUNN_OP_RELU, {.query = query_relu, .create = create_relu});
    add(GPUNN_OP_TABLE_LOAD, {.query = query_load, .create = create_load});
    // Pinned, so that the device reaches it while a kernel runs; for as long as the process lives.
    if (control.open == nullptr) {
      auto* flags = static_cast<volatile int32_t*>(allocate(GPUNN_MEMORY_PINNED, 2 * sizeof(int32_t)));
      flags[0] = 1;
      flags[1] = 0;
      control.open = flags;
      control.gave_up = flags + 1;
    }
  }
};

class TestBackend final : public Backend {
 public:
  const char* name() const override { return "cuda_test"; }
  const char* version() const override { return "1"; }
  const char* base() const override { return "cuda_naive"; }
  bool concurrent_streams() const override { return true; }
  int probe() override { return probe_cuda(reinterpret_cast<const void*>(relu), "this machine"); }
  std::unique_ptr<Device> open(const gpunn_device_options& options) override {
    return std::make_unique<TestDevice>(options);
  }
  const void* extension(const char* name) override {
    return std::strcmp(name, "test.cuda_control") == 0 ? &control : nullptr;
  }
};

}  // namespace cuda_test

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<cuda_test::TestBackend>(major, minor);
}
