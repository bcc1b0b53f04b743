#include "cuda_common/device.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "cuda_common/check.hpp"
#include "cuda_common/stream.hpp"

namespace gpunn::cuda {
namespace {

void select(int index) { check(cudaSetDevice(index), "choosing the device"); }

// "GPU-01234567-89ab-...", as nvidia-smi writes it.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

std::string mebibytes(uint64_t bytes) { return std::to_string(bytes >> 20U) + " MiB"; }

}  // namespace

std::string driver_version() {
  std::ifstream in("/sys/module/nvidia/version");
  std::string version;
  if (in >> version) return version;
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ..."
  std::ifstream proc("/proc/driver/nvidia/version");
  for (std::string word; proc >> word;) {
    const bool number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (number && std::count(word.begin(), word.end(), '.') >= 1) return word;
  }
  return "?";
}

CudaDevice::CudaDevice(const gpunn_device_options& options)
    : index_(options.index), log_(options.log), log_context_(options.log_context) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "counting the GPUs");
  if (index_ < 0 || index_ >= count) {
    throw plugin::Failure(GPUNN_INVALID_ARGUMENT,
                          "there is no GPU " + std::to_string(index_) + ", only 0 to " + std::to_string(count - 1));
  }
  select(index_);
  check(cudaGetDeviceProperties(&properties_, index_), "reading the GPU's properties");
  check(cudaFree(nullptr), "starting the GPU");
}

void CudaDevice::log(int32_t level, const std::string& message) const {
  if (log_ != nullptr) log_(log_context_, level, message.c_str());
}

void CudaDevice::info(gpunn_device_info& info) {
  select(index_);
  int version = 0;
  check(cudaDriverGetVersion(&version), "reading the driver's version");
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "reading the GPU's memory");
  plugin::copy_text(info.name, sizeof(info.name), properties_.name);
  plugin::copy_text(
      info.driver, sizeof(info.driver),
      driver_version() + ", CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10));
  plugin::copy_text(info.memory_domain, sizeof(info.memory_domain), "cuda:" + uuid_text(properties_.uuid));
  info.total_bytes = total;
  info.free_bytes = free;
  info.alignment = kAlignment;
  info.compute_units = properties_.multiProcessorCount;
}

void* CudaDevice::allocate(int32_t kind, uint64_t bytes) {
  select(index_);
  void* data = nullptr;
  const uint64_t size = std::max<uint64_t>(bytes, 1);
  const cudaError_t code = kind == GPUNN_MEMORY_PINNED ? cudaMallocHost(&data, size) : cudaMalloc(&data, size);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total), "reading the GPU's memory");
    throw plugin::Failure(GPUNN_OUT_OF_MEMORY, kind == GPUNN_MEMORY_PINNED
                                                   ? "no " + mebibytes(bytes) + " of pinned host memory"
                                                   : "needs " + mebibytes(bytes) + ", and of the " + mebibytes(total) +
                                                         " of " + properties_.name + " " + mebibytes(free) +
                                                         " are free");
  }
  check(code, "allocating memory");
  return data;
}

void CudaDevice::release(int32_t kind, void* data) noexcept {
  cudaSetDevice(index_);
  if (kind == GPUNN_MEMORY_PINNED) {
    cudaFreeHost(data);
  } else {
    cudaFree(data);
  }
}

std::unique_ptr<plugin::Stream> CudaDevice::create_stream() { return std::make_unique<CudaStream>(index_); }

std::unique_ptr<plugin::Stream> CudaDevice::wrap_stream(void* native) {
  return std::make_unique<CudaStream>(index_, static_cast<cudaStream_t>(native));
}

std::unique_ptr<plugin::Event> CudaDevice::create_event() { return std::make_unique<CudaEvent>(index_); }

}  // namespace gpunn::cuda
