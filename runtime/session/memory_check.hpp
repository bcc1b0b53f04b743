#pragma once

#include <gpunn/abi.h>
#include <gpunn/experiment.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include "program/layout.hpp"

namespace gpunn::training {

// Bytes of device memory that a training holds.
struct MemoryNeed {
  uint64_t arena = 0;       // activations and workspaces
  uint64_t persistent = 0;  // parameters, gradients, optimizer states, tables
  uint64_t data = 0;        // resident samples and labels, or the ring of a streamed set
  uint64_t total() const { return arena + persistent + data; }
};

// Throws execution::OutOfMemory where the device does not have so much free (0 free: it does not tell), saying what is
// needed, what is free, and the largest batch that fits. `arena_of` plans the arena of a smaller batch; empty: no batch
// is suggested. `where` begins the message.
void require_memory(const std::string& where, const MemoryNeed& need, const gpunn_device_info& device, int64_t batch,
                    const std::function<uint64_t(int64_t batch)>& arena_of);

// The device as `require_memory` is to take it: one that computes in the host's memory has no more than the host can
// still give this process.
gpunn_device_info with_host_limits(gpunn_device_info device);

// Throws execution::OutOfMemory where parameters, gradients and optimizer states alone don't fit, or the host can't
// hold the first weights: before any of them is made.
void require_memory_for_weights(const Experiment& experiment, const ParameterLayout& parameters,
                                const ParameterLayout& buffers, const gpunn_device_info& device);

}  // namespace gpunn::training
