#include "program/batch_ring.hpp"

#include <algorithm>

namespace gpunn::training {

namespace {

constexpr int64_t kMostBatches = 32;  // of a group; as many steps as one launch may have
constexpr int64_t kGroupBytes = int64_t{32} << 20;

// With so many batches a group.
BatchRing ring_of_groups(const TensorType& samples, const std::vector<DeviceField>& fields, int64_t batch,
                         int64_t group, uint64_t alignment) {
  BatchRing ring;
  ring.batch = batch;
  ring.group = group;
  ring.samples = samples;
  ring.samples.shape[0] = ring.slots() * batch;

  const int64_t step = std::max<int64_t>(static_cast<int64_t>(alignment / sizeof(int32_t)), 1);
  const auto aligned = [&](int64_t words) { return (words + step - 1) / step * step; };
  constexpr auto kWord = static_cast<int64_t>(sizeof(int32_t));
  for (const DeviceField& field : fields) {
    ring.fields_at.push_back(ring.index_at);
    ring.index_at += aligned((static_cast<int64_t>(field.rows(batch).bytes()) + kWord - 1) / kWord);
  }
  ring.count_at = ring.index_at + aligned(batch);
  ring.all_at = ring.count_at + aligned(1);
  ring.rows = {DType::i32, {ring.slots(), ring.all_at + aligned(1)}};
  return ring;
}

}  // namespace

BatchRing lay_out_ring(const TensorType& split, const std::vector<DeviceField>& fields, int64_t batch,
                       uint64_t alignment, bool slow) {
  if (slow) return ring_of_groups(split, fields, batch, 1, alignment);
  TensorType one = split;
  one.shape[0] = batch;
  const auto batch_bytes = std::max<int64_t>(static_cast<int64_t>(one.bytes()), 1);
  const int64_t group = std::clamp<int64_t>(kGroupBytes / batch_bytes, 1, kMostBatches);
  return ring_of_groups(split, fields, batch, group, alignment);
}

BatchRing ring_of_source(const TensorType& samples, const std::vector<DeviceField>& fields, int64_t batch,
                         uint64_t alignment) {
  BatchRing ring = ring_of_groups(samples, fields, batch, 1, alignment);
  ring.varied = true;
  return ring;
}

}  // namespace gpunn::training
