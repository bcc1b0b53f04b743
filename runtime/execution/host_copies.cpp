#include "execution/host_copies.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "common/text.hpp"
#include "execution/backend_impl.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

namespace {

void copy(const Level& level, void* destination, const void* source, uint64_t bytes, int32_t direction,
          const std::string& what) {
  if (bytes == 0) return;
  plugins::call(
      *level.plugin,
      [&] {
        return "copy of " + human_bytes(bytes) + (direction == GPUNN_DEVICE_TO_HOST ? " to" : " from") +
               " the host for " + what;
      },
      [&](gpunn_error* error) {
        return level.table().copy(level.stream, destination, source, bytes, direction, error);
      });
}

}  // namespace

uint64_t OpSizes::tensors() const {
  return std::accumulate(inputs.begin(), inputs.end(), uint64_t{0}) +
         std::accumulate(outputs.begin(), outputs.end(), uint64_t{0});
}

void HostCopies::Memory::grow(uint64_t bytes) {
  if (bytes <= bytes_) return;
  release();
  void* data = nullptr;
  plugins::call(
      *level_.plugin, [&] { return "memory_alloc of " + human_bytes(bytes) + " for host copies"; },
      [&](gpunn_error* error) { return level_.table().memory_alloc(level_.device, kind_, bytes, &data, error); });
  if (data == nullptr) {
    throw Error("plugin '" + level_.plugin->name() + "': memory_alloc of " + human_bytes(bytes) +
                " for host copies said OK but gave no address");
  }
  data_ = static_cast<std::byte*>(data);
  bytes_ = bytes;
  ++allocations_;
  if (kind_ == GPUNN_MEMORY_DEVICE && reinterpret_cast<uintptr_t>(data) % level_.info.alignment != 0) {
    throw Error("plugin '" + level_.plugin->name() + "': memory_alloc gave an address that is not aligned to the " +
                std::to_string(level_.info.alignment) + " bytes of its device_info");
  }
}

void HostCopies::Memory::release() noexcept {
  if (data_ != nullptr) plugins::guarded_void([&] { level_.table().memory_free(level_.device, kind_, data_); });
  data_ = nullptr;
  bytes_ = 0;
}

HostCopies::HostCopies(const Level& overlay, const Level& base, int64_t& synchronizations, int64_t& allocations)
    : overlay_(overlay),
      base_(base),
      synchronizations_(synchronizations),
      base_on_host_(base.on_host()),
      overlay_on_host_(overlay.on_host()),
      memory_(overlay, GPUNN_MEMORY_DEVICE, allocations),
      staging_(base, GPUNN_MEMORY_PINNED, allocations) {}

// The last op may still be on its way from the host's memory to the base's.
HostCopies::~HostCopies() {
  for (const Level* level : {&overlay_, &base_}) {
    if (level->stream == nullptr) continue;
    plugins::guarded([&](gpunn_error* error) { return level->table().stream_sync(level->stream, error); });
  }
}

uint64_t HostCopies::aligned(uint64_t bytes) const {
  const uint64_t alignment = overlay_.info.alignment;
  return (bytes + alignment - 1) / alignment * alignment;
}

void HostCopies::reserve(const OpSizes& sizes) {
  uint64_t bytes = aligned(sizes.workspace);
  for (const auto* list : {&sizes.inputs, &sizes.outputs}) {
    for (const uint64_t size : *list) bytes += aligned(std::max<uint64_t>(size, 1));
  }
  synchronize(base_, "growing the memory of host copies");
  memory_.grow(bytes);
  if (!base_on_host_ && !overlay_on_host_) staging_.grow(bytes);
  const std::size_t tensors = sizes.inputs.size() + sizes.outputs.size();
  offsets_.reserve(tensors);
  tensors_.reserve(tensors);
  pointers_.reserve(tensors);
}

void HostCopies::synchronize(const Level& level, const std::string& what) const {
  ++synchronizations_;
  plugins::call(
      *level.plugin, [&] { return "stream_sync for " + what; },
      [&](gpunn_error* error) { return level.table().stream_sync(level.stream, error); });
}

// The offset of each tensor in the overlay's memory, and the end of them all. An output in the memory of an input lies
// in the memory of that input there, too.
uint64_t HostCopies::lay_out(const gpunn_op_args& args, const OpSizes& sizes) {
  offsets_.clear();
  uint64_t end = 0;
  const auto append = [&](uint64_t bytes) {
    offsets_.push_back(end);
    end += aligned(std::max<uint64_t>(bytes, 1));
  };
  for (const uint64_t bytes : sizes.inputs) append(bytes);
  for (std::size_t o = 0; o < sizes.outputs.size(); ++o) {
    std::size_t same = 0;
    while (same < sizes.inputs.size() &&
           (args.inputs[same]->data != args.outputs[o]->data || sizes.inputs[same] != sizes.outputs[o])) {
      ++same;
    }
    if (same < sizes.inputs.size()) {
      offsets_.push_back(offsets_[same]);
    } else {
      append(sizes.outputs[o]);
    }
  }
  return end;
}

// The host address of a tensor on its way between the two: its own if one of them is the host, or a buffer.
std::byte* HostCopies::host_side(const gpunn_tensor& of_base, uint64_t offset) const {
  if (base_on_host_) return static_cast<std::byte*>(of_base.data);
  return (overlay_on_host_ ? memory_ : staging_).data() + offset;
}

void HostCopies::copy_in(const gpunn_op_args& args, const OpSizes& sizes, const std::string& what) {
  if (!base_on_host_) {
    for (std::size_t i = 0; i < sizes.inputs.size(); ++i) {
      copy(base_, host_side(*args.inputs[i], offsets_[i]), args.inputs[i]->data, sizes.inputs[i], GPUNN_DEVICE_TO_HOST,
           what);
    }
  }
  synchronize(base_, what);  // what came before has been done, too
  if (!overlay_on_host_) {
    for (std::size_t i = 0; i < sizes.inputs.size(); ++i) {
      copy(overlay_, memory_.data() + offsets_[i], host_side(*args.inputs[i], offsets_[i]), sizes.inputs[i],
           GPUNN_HOST_TO_DEVICE, what);
    }
  }
}

void HostCopies::copy_out(const gpunn_op_args& args, const OpSizes& sizes, const std::string& what) {
  const uint64_t* const offset = offsets_.data() + sizes.inputs.size();
  if (!overlay_on_host_) {
    for (std::size_t o = 0; o < sizes.outputs.size(); ++o) {
      copy(overlay_, host_side(*args.outputs[o], offset[o]), memory_.data() + offset[o], sizes.outputs[o],
           GPUNN_DEVICE_TO_HOST, what);
    }
  }
  synchronize(overlay_, what);
  if (!base_on_host_) {
    for (std::size_t o = 0; o < sizes.outputs.size(); ++o) {
      copy(base_, args.outputs[o]->data, host_side(*args.outputs[o], offset[o]), sizes.outputs[o], GPUNN_HOST_TO_DEVICE,
           what);
    }
  }
}

void HostCopies::run(gpunn_kernel* kernel, const gpunn_op_args& args, const OpSizes& sizes, const std::string& what) {
  const uint64_t end = lay_out(args, sizes);
  copy_in(args, sizes, what);

  tensors_.clear();
  pointers_.clear();
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    const bool input = i < sizes.inputs.size();
    tensors_.push_back(input ? *args.inputs[i] : *args.outputs[i - sizes.inputs.size()]);
    tensors_.back().data = memory_.data() + offsets_[i];
  }
  for (const gpunn_tensor& tensor : tensors_) pointers_.push_back(&tensor);
  gpunn_op_args mine = args;
  mine.inputs = pointers_.data();
  mine.outputs = pointers_.data() + sizes.inputs.size();
  mine.workspace = sizes.workspace > 0 ? memory_.data() + end : nullptr;
  mine.workspace_bytes = sizes.workspace;
  plugins::call(
      *overlay_.plugin, [&] { return "op_enqueue of " + what; },
      [&](gpunn_error* error) { return overlay_.table().op_enqueue(kernel, overlay_.stream, &mine, error); });

  copy_out(args, sizes, what);
}

}  // namespace gpunn::execution
