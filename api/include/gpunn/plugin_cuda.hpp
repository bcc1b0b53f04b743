// The parts of plugin.hpp for backends that compute on an NVIDIA GPU: stream, event, captured graph and device over the
// CUDA runtime (12 or later). Neither header includes the other: the file that exports the backend includes both.
//
// Kernels launch on cuda_stream(stream). They must neither wait for the device nor allocate, and can then be captured.
#pragma once

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include <cuda_runtime_api.h>

namespace gpunn::plugin {

// The status that tells the host how to react to `code`. GPUNN_DEVICE_LOST: the context is unusable, so that every
// later call would fail as well.
inline gpunn_status cuda_status(cudaError_t code) noexcept {
  switch (code) {
    case cudaSuccess:
      return GPUNN_OK;
    case cudaErrorMemoryAllocation:
      return GPUNN_OUT_OF_MEMORY;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidDevice:
      return GPUNN_INVALID_ARGUMENT;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceNotLicensed:
      return GPUNN_NO_DEVICE;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorStreamCaptureUnsupported:
      return GPUNN_UNSUPPORTED;
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorExternalDevice:
#if CUDART_VERSION >= 13000
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
#endif
      return GPUNN_DEVICE_LOST;
    default:
      return GPUNN_INTERNAL;
  }
}

// Throws Failure with the status of `code`. `what` names the action, as "launching the product".
[[noreturn]] inline void throw_cuda(cudaError_t code, const char* what) {
  cudaGetLastError();  // clear the error, so that the next launch does not report it again
  throw Failure(cuda_status(code),
                std::string(what) + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")");
}

// Throws Failure unless `code` is success. `what` names the action, as "launching the product".
inline void check_cuda(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw_cuda(code, what);
}

// A stream of one device, made here or wrapped.
class CudaStream final : public Stream {
 public:
  // Does not wait for the legacy default stream, which other libraries of the process may use.
  explicit CudaStream(int device) : device_(device) {
    select();
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  }
  CudaStream(int device, cudaStream_t native) : device_(device), stream_(native), owned_(false) {}
  ~CudaStream() override {
    if (owned_) cudaStreamDestroy(stream_);
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  // Makes its device the calling thread's current one: a launch accepts only that device's streams.
  cudaStream_t handle() const {
    select();
    return stream_;
  }
  void* native() override { return stream_; }
  void synchronize() override { check_cuda(cudaStreamSynchronize(stream_), "waiting for the stream"); }
  void copy(void* destination, const void* source, uint64_t bytes, int32_t direction) override {
    const cudaMemcpyKind kind = kind_of(direction);
    if (bytes != 0) check_cuda(cudaMemcpyAsync(destination, source, bytes, kind, handle()), "copying");
  }
  void fill(void* destination, uint8_t value, uint64_t bytes) override {
    if (bytes != 0) check_cuda(cudaMemsetAsync(destination, value, bytes, handle()), "filling memory");
  }
  // Captures this thread only, so that other threads may allocate in the meantime.
  void begin_capture() override {
    check_cuda(cudaStreamBeginCapture(handle(), cudaStreamCaptureModeThreadLocal), "beginning to capture");
  }
  std::unique_ptr<CapturedGraph> end_capture() override;

 private:
  void select() const { check_cuda(cudaSetDevice(device_), "choosing the device"); }
  static cudaMemcpyKind kind_of(int32_t direction) {
    switch (direction) {
      case GPUNN_HOST_TO_DEVICE:
        return cudaMemcpyHostToDevice;
      case GPUNN_DEVICE_TO_HOST:
        return cudaMemcpyDeviceToHost;
      case GPUNN_DEVICE_TO_DEVICE:
        return cudaMemcpyDeviceToDevice;
      default:
        throw Failure(GPUNN_INVALID_ARGUMENT, "no copy direction " + std::to_string(direction));
    }
  }

  int device_;
  cudaStream_t stream_ = nullptr;
  bool owned_ = true;
};

// A kernel launches on this: the native stream behind the one that the host handed to this plugin.
inline cudaStream_t cuda_stream(Stream& stream) { return static_cast<CudaStream&>(stream).handle(); }

// A captured CUDA graph that can be launched.
class CudaGraph final : public CapturedGraph {
 public:
  explicit CudaGraph(cudaGraphExec_t executable) : executable_(executable) {}
  ~CudaGraph() override { cudaGraphExecDestroy(executable_); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  void launch(Stream& stream) override {
    check_cuda(cudaGraphLaunch(executable_, cuda_stream(stream)), "launching a captured graph");
  }

 private:
  cudaGraphExec_t executable_;
};

inline std::unique_ptr<CapturedGraph> CudaStream::end_capture() {
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamEndCapture(stream_, &graph), "ending the capture");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t made = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(made, "making the captured graph ready to run");
  auto captured = std::make_unique<CudaGraph>(executable);
  check_cuda(cudaGraphUpload(executable, stream_), "uploading the captured graph");
  return captured;
}

// A CUDA event that measures time.
class CudaEvent final : public Event {
 public:
  explicit CudaEvent(int device) {
    check_cuda(cudaSetDevice(device), "choosing the device");
    check_cuda(cudaEventCreate(&event_), "making an event");
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void record(Stream& stream) override {
    check_cuda(cudaEventRecord(event_, cuda_stream(stream)), "recording an event");
  }
  void wait(Stream& stream) override {
    check_cuda(cudaStreamWaitEvent(cuda_stream(stream), event_, 0), "having a stream wait for an event");
  }
  void synchronize() override { check_cuda(cudaEventSynchronize(event_), "waiting for an event"); }
  float milliseconds_since(Event& start) override {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, static_cast<CudaEvent&>(start).event_, event_),
               "reading the time between two events");
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// A GPU. Backends derive it and register their kernels.
class CudaDevice : public Device {
 public:
  // The alignment of every allocation of CUDA.
  static constexpr uint64_t kAlignment = 256;

  explicit CudaDevice(const gpunn_device_options& options)
      : index_(options.index), log_(options.log), log_context_(options.log_context) {
    int count = 0;
    check_cuda(cudaGetDeviceCount(&count), "counting the GPUs");
    if (index_ < 0 || index_ >= count) {
      throw Failure(GPUNN_INVALID_ARGUMENT,
                    "there is no GPU " + std::to_string(index_) + ", only 0 to " + std::to_string(count - 1));
    }
    select();
    check_cuda(cudaGetDeviceProperties(&properties_, index_), "reading the GPU's properties");
    check_cuda(cudaFree(nullptr), "starting the GPU");
  }

  int index() const { return index_; }
  const cudaDeviceProp& properties() const { return properties_; }
  void log(int32_t level, const std::string& message) const {
    if (log_ != nullptr) log_(log_context_, level, message.c_str());
  }

  void info(gpunn_device_info& info) override {
    select();
    int version = 0;
    check_cuda(cudaDriverGetVersion(&version), "reading the driver's version");
    std::size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "reading the GPU's memory");
    copy_text(info.name, sizeof(info.name), properties_.name);
    copy_text(info.driver, sizeof(info.driver), driver_version() + ", CUDA " + version_text(version));
    copy_text(info.memory_domain, sizeof(info.memory_domain), "cuda:" + uuid_text());
    info.total_bytes = total;
    info.free_bytes = free;
    info.alignment = kAlignment;
    info.compute_units = properties_.multiProcessorCount;
  }

  void* allocate(int32_t kind, uint64_t bytes) override {
    select();
    void* data = nullptr;
    const uint64_t size = std::max<uint64_t>(bytes, 1);
    const bool pinned = kind == GPUNN_MEMORY_PINNED;
    const cudaError_t code = pinned ? cudaMallocHost(&data, size) : cudaMalloc(&data, size);
    if (code != cudaErrorMemoryAllocation) check_cuda(code, "allocating memory");
    if (data != nullptr) return data;
    cudaGetLastError();
    const std::string needed = mebibytes(bytes);
    if (pinned) throw Failure(GPUNN_OUT_OF_MEMORY, "no " + needed + " of pinned host memory");
    std::size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "reading the GPU's memory");
    throw Failure(GPUNN_OUT_OF_MEMORY, "needs " + needed + ", and of the " + mebibytes(total) + " of " +
                                           properties_.name + " " + mebibytes(free) + " are free");
  }
  void release(int32_t kind, void* data) noexcept override {
    cudaSetDevice(index_);
    kind == GPUNN_MEMORY_PINNED ? cudaFreeHost(data) : cudaFree(data);
  }

  std::unique_ptr<Stream> create_stream() override { return std::make_unique<CudaStream>(index_); }
  std::unique_ptr<Stream> wrap_stream(void* native) override {
    return std::make_unique<CudaStream>(index_, static_cast<cudaStream_t>(native));
  }
  std::unique_ptr<Event> create_event() override { return std::make_unique<CudaEvent>(index_); }

  // "13.0", of a number as CUDART_VERSION.
  static std::string version_text(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  // "580.159.04", the version of the kernel's driver; "?" if the system does not tell.
  static std::string driver_version() {
    std::ifstream in("/sys/module/nvidia/version");
    std::string version;
    return in >> version ? version : "?";
  }

 private:
  void select() const { check_cuda(cudaSetDevice(index_), "choosing the device"); }
  static std::string mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20U) + " MiB"; }
  // "GPU-01234567-89ab-...", as nvidia-smi writes it.
  std::string uuid_text() const {
    std::string text = "GPU-";
    for (std::size_t i = 0; i < sizeof(properties_.uuid.bytes); ++i) {
      char digits[3];
      std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned>(properties_.uuid.bytes[i]) & 0xFFU);
      if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
      text += digits;
    }
    return text;
  }

  int index_;
  cudaDeviceProp properties_{};
  gpunn_log_fn log_;
  void* log_context_;
};

// The number of GPUs. Throws Failure(GPUNN_NO_DEVICE) with the reason if there is none: no driver, one that is too old
// for the toolkit of this build, no visible GPU, or none for which the plugin contains machine code or PTX. `kernel` is
// any __global__ function of the plugin; `architectures` says what it was compiled for, for the message.
inline int probe_cuda(const void* kernel, const char* architectures) {
  const auto no_device = [](const std::string& why) { throw Failure(GPUNN_NO_DEVICE, why); };
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    cudaGetLastError();
    no_device(
        "no NVIDIA driver is loaded (libcuda.so.1 was not found or does not start); install one, or choose another "
        "backend");
  }
  if (driver / 1000 < CUDART_VERSION / 1000) {
    no_device("the NVIDIA driver is too old: it supports CUDA " + CudaDevice::version_text(driver) +
              ", this backend was built with CUDA " + CudaDevice::version_text(CUDART_VERSION) +
              "; update the driver, or build the backend with an older toolkit");
  }
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess) cudaGetLastError();
  if (code != cudaSuccess && code != cudaErrorNoDevice) {
    no_device(std::string("the NVIDIA driver can't be used: ") + cudaGetErrorString(code) + " (" +
              cudaGetErrorName(code) + ")");
  }
  if (count == 0) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    no_device(visible == nullptr ? std::string("the NVIDIA driver sees no GPU")
                                 : "no GPU is visible: CUDA_VISIBLE_DEVICES is '" + std::string(visible) + "'");
  }
  cudaError_t tried = cudaSuccess;
  for (int index = 0; index < count; ++index) {
    cudaFuncAttributes attributes{};
    tried = cudaSetDevice(index);
    if (tried == cudaSuccess) tried = cudaFuncGetAttributes(&attributes, kernel);
    if (tried == cudaSuccess) return count;
    cudaGetLastError();
  }
  if (tried != cudaErrorNoKernelImageForDevice && tried != cudaErrorInvalidDeviceFunction) {
    no_device(std::string("no GPU can be used: ") + cudaGetErrorString(tried) + " (" + cudaGetErrorName(tried) + ")");
  }
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0), "reading the GPU's properties");
  const std::string found = std::to_string(properties.major) + std::to_string(properties.minor);
  no_device(std::string("this plugin was built for ") + architectures + ", the GPU '" + properties.name + "' is sm_" +
            found + "; build it on this machine, or with -DCMAKE_CUDA_ARCHITECTURES=" + found);
  return 0;
}

}  // namespace gpunn::plugin
