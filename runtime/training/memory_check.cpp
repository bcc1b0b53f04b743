#include "training/memory_check.hpp"

#include "common/text.hpp"
#include "execution/backend.hpp"

namespace gpunn::training {

namespace {

// The largest batch below `batch` whose arena fits; 0: none. A larger batch never has a smaller arena, but for the
// workspaces that a library asks for; so the batch that is found is one that fits, if not always the very largest.
int64_t largest_batch(const MemoryNeed& need, uint64_t free, int64_t batch,
                      const std::function<uint64_t(int64_t batch)>& arena_of) {
  int64_t fits = 0;
  int64_t too_large = batch;
  while (fits + 1 < too_large) {
    const int64_t middle = fits + (too_large - fits) / 2;
    if (need.persistent + need.data + arena_of(middle) <= free) {
      fits = middle;
    } else {
      too_large = middle;
    }
  }
  return fits;
}

}  // namespace

void require_memory(const std::string& where, const MemoryNeed& need, const gpunn_device_info& device, int64_t batch,
                    const std::function<uint64_t(int64_t batch)>& arena_of) {
  if (device.free_bytes == 0 || need.total() <= device.free_bytes) return;
  std::string text = where + ": the training needs " + human_bytes(need.total()) + " of device memory (" +
                     human_bytes(need.arena) + " for activations, " + human_bytes(need.persistent) +
                     " for parameters and their states, " + human_bytes(need.data) + " for data), and " +
                     human_bytes(device.free_bytes) + " of the " + human_bytes(device.total_bytes) + " of '" +
                     device.name + "' are free";
  if (arena_of) {
    const int64_t fits = largest_batch(need, device.free_bytes, batch, arena_of);
    text += fits > 0 ? "; the largest data.batch_size that fits is " + std::to_string(fits) + ", " +
                           std::to_string(batch) + " was asked for"
                     : "; not even a data.batch_size of 1 fits: try data.residency=stream, a smaller model or another "
                       "device";
  }
  throw execution::OutOfMemory(text);
}

}  // namespace gpunn::training
