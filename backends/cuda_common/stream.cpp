#include "cuda_common/stream.hpp"

#include "cuda_common/check.hpp"

namespace gpunn::cuda {
namespace {

class CudaGraph final : public plugin::CapturedGraph {
 public:
  explicit CudaGraph(cudaGraphExec_t executable) : executable_(executable) {}
  ~CudaGraph() override { cudaGraphExecDestroy(executable_); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void launch(plugin::Stream& stream) override {
    check(cudaGraphLaunch(executable_, native(stream)), "launching a captured graph");
  }

 private:
  cudaGraphExec_t executable_;
};

cudaMemcpyKind kind_of(int32_t direction) {
  switch (direction) {
    case GPUNN_HOST_TO_DEVICE:
      return cudaMemcpyHostToDevice;
    case GPUNN_DEVICE_TO_HOST:
      return cudaMemcpyDeviceToHost;
    case GPUNN_DEVICE_TO_DEVICE:
      return cudaMemcpyDeviceToDevice;
    default:
      throw plugin::Failure(GPUNN_INVALID_ARGUMENT, "no copy direction " + std::to_string(direction));
  }
}

}  // namespace

// Does not wait for the legacy default stream, which other libraries of the process may use.
CudaStream::CudaStream(int device) : device_(device) {
  check(cudaSetDevice(device_), "choosing the device");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
}

CudaStream::~CudaStream() {
  if (owned_) cudaStreamDestroy(stream_);
}

void CudaStream::synchronize() { check(cudaStreamSynchronize(stream_), "waiting for the stream"); }

void CudaStream::copy(void* destination, const void* source, uint64_t bytes, int32_t direction) {
  const cudaMemcpyKind kind = kind_of(direction);
  if (bytes == 0) return;
  check(cudaSetDevice(device_), "choosing the device");
  check(cudaMemcpyAsync(destination, source, bytes, kind, stream_), "copying");
}

void CudaStream::fill(void* destination, uint8_t value, uint64_t bytes) {
  if (bytes == 0) return;
  check(cudaSetDevice(device_), "choosing the device");
  check(cudaMemsetAsync(destination, value, bytes, stream_), "filling memory");
}

// Of this thread alone: what others do in the meantime, such as allocating, does not spoil the capture.
void CudaStream::begin_capture() {
  check(cudaSetDevice(device_), "choosing the device");
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "beginning to capture");
}

std::unique_ptr<plugin::CapturedGraph> CudaStream::end_capture() {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream_, &graph), "ending the capture");
  const auto destroy = [](cudaGraph_t captured) { cudaGraphDestroy(captured); };
  const std::unique_ptr<CUgraph_st, decltype(destroy)> owner(graph, destroy);
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph, 0), "making the captured graph ready to run");
  auto captured = std::make_unique<CudaGraph>(executable);
  check(cudaGraphUpload(executable, stream_), "uploading the captured graph");
  return captured;
}

CudaEvent::CudaEvent(int device) : device_(device) {
  check(cudaSetDevice(device_), "choosing the device");
  check(cudaEventCreate(&event_), "making an event");
}

CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

void CudaEvent::record(plugin::Stream& stream) { check(cudaEventRecord(event_, native(stream)), "recording an event"); }

void CudaEvent::wait(plugin::Stream& stream) {
  check(cudaStreamWaitEvent(native(stream), event_, 0), "having a stream wait for an event");
}

void CudaEvent::synchronize() { check(cudaEventSynchronize(event_), "waiting for an event"); }

float CudaEvent::milliseconds_since(plugin::Event& start) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, static_cast<CudaEvent&>(start).event_, event_),
        "reading the time between two events");
  return milliseconds;
}

}  // namespace gpunn::cuda
