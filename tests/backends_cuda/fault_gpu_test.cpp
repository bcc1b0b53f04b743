// A kernel that writes to an address that is nowhere. In a process of its own, which can do nothing on the GPU after
// it.
#include <gpunn/ops.h>

#include "catch.hpp"
#include "gpu.hpp"

using gpunn::DType;
using gpunn::TensorType;
using gpunn::execution::Backend;
using gpunn::execution::Buffer;

TEST_CASE("a wild address is told at the next wait as a lost device, and ever after", "[fault]") {
  Backend backend(gpu::registry(), "cuda_test");
  const TensorType type{DType::f32, {1000}};
  const Buffer buffer = backend.allocate(type.bytes());
  backend.fill(buffer.data(), 0, type.bytes());
  const gpunn_tensor tensor = gpunn::execution::abi_tensor(type, buffer.data());
  auto kernel = backend.create({GPUNN_OP_RELU, {}, {type}, {type}}, 0);
  kernel.enqueue({&tensor, 1}, {&tensor, 1}, nullptr, "relu");
  backend.synchronize();

  gpu::control().fault = true;
  kernel.enqueue({&tensor, 1}, {&tensor, 1}, nullptr, "relu");
  std::string text;
  try {
    backend.synchronize();
  } catch (const gpunn::DeviceLostError& error) {
    text = error.what();
  }
  INFO(text);
  CHECK_THAT(text, Contains("DEVICE_LOST"));
  CHECK_THAT(text, Contains("illegal"));
  CHECK_THAT(text, Contains("cudaErrorIllegalAddress"));
  CHECK_THROWS_AS(backend.synchronize(), gpunn::DeviceLostError);
  CHECK_THROWS_AS(kernel.enqueue({&tensor, 1}, {&tensor, 1}, nullptr, "relu"), gpunn::DeviceLostError);
}
