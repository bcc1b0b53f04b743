// Values of float, __nv_bfloat16 or __half in device memory.
#pragma once

#include <cstddef>
#include <vector>

#include <cuda_runtime_api.h>

#include "catch.hpp"
#include "device_memory.hpp"

template <class T>
std::vector<T> rounded(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

template <class T>
Memory on_device(const std::vector<T>& values) {
  Memory memory(values.size() * sizeof(T));
  REQUIRE(cudaMemcpy(memory.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  return memory;
}

template <class T>
std::vector<T> read(const Memory& memory, std::size_t count) {
  std::vector<T> values(count);
  REQUIRE(cudaMemcpy(values.data(), memory.data(), count * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(memory.border_is_whole());
  return values;
}
