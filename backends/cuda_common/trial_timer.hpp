// How the autotuner's trials get memory and take times.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "cuda_common/stream.hpp"

namespace gpunn::cuda {

// Device memory of one piece, dealt out in parts.
class Scratch {
 public:
  explicit Scratch(uint64_t bytes);  // throws Failure GPUNN_OUT_OF_MEMORY
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* take(uint64_t bytes);

 private:
  void* data_ = nullptr;
  uint64_t used_ = 0;
};

// Takes times on a stream of that device, which it does not own.
class TrialTimer {
 public:
  TrialTimer(CudaStream& stream, int device) : stream_(stream), start_(device), stop_(device) {}

  // Of what `enqueue` puts on the stream, in a captured graph, which is how a training step runs it: one by one, small
  // kernels would be timed by how fast the host gives them out. Throws what `enqueue` throws, and where it can't be
  // captured.
  double milliseconds(const std::function<void()>& enqueue);

 private:
  std::unique_ptr<plugin::CapturedGraph> captured(const std::function<void()>& enqueue, int repetitions);
  double timed(const std::function<void()>& work);

  CudaStream& stream_;
  CudaEvent start_, stop_;
};

}  // namespace gpunn::cuda
