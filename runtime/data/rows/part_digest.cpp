#include "data/rows/part_digest.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <zlib.h>

#include "common/parallel.hpp"

namespace gpunn::data {

namespace {

constexpr std::size_t kDigestStretch = std::size_t{1} << 20;

}  // namespace

// Stretches have one each, which zlib combines.
uint32_t crc32_of(std::span<const std::byte> bytes) {
  const auto* const data = reinterpret_cast<const Bytef*>(bytes.data());
  const std::size_t stretches = (bytes.size() + kDigestStretch - 1) / kDigestStretch;
  const auto length_of = [&](std::size_t i) { return std::min(kDigestStretch, bytes.size() - i * kDigestStretch); };
  std::vector<uLong> crcs(stretches);
  for_row_stretches(static_cast<int64_t>(stretches), 1, [&](int64_t first, int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      crcs[i] = crc32_z(0, data + i * kDigestStretch, length_of(i));
    }
  });
  uLong all = 0;
  for (std::size_t i = 0; i < stretches; ++i) {
    all = crc32_combine(all, crcs[i], static_cast<z_off_t>(length_of(i)));
  }
  return static_cast<uint32_t>(all);
}

namespace {

// Classes, and other fields in the order of their names. Digests in older checkpoints have classes first, without a
// name.
uint32_t crc_of_targets(const Split& split) {
  const std::vector<int32_t> classes = labels_of(split);
  uLong all = crc32_of(std::as_bytes(std::span(classes)));
  const auto add = [&](std::span<const std::byte> bytes) {
    all = crc32_combine(all, crc32_of(bytes), static_cast<z_off_t>(bytes.size()));
  };
  for (const auto& [name, field] : split.fields) {
    if (name == kLabelField) continue;
    add(std::as_bytes(std::span(name)));
    add(field.bytes());
    add(std::as_bytes(std::span(field.offsets)));
  }
  return static_cast<uint32_t>(all);
}

PartDigest digest_of_part(const Split& split) {
  PartDigest digest{.rows = split.rows(), .samples = crc32_of(split.sample_bytes()), .targets = crc_of_targets(split)};
  if (split.source != nullptr) digest.samples = split.source->digest(split.source_rows);
  for (const Split& single : split.singles) {
    const PartDigest one = digest_of_part(single);
    const std::array<uint32_t, 2> so_far = {digest.samples, one.samples}, targets = {digest.targets, one.targets};
    digest.samples = crc32_of(std::as_bytes(std::span(so_far)));
    digest.targets = crc32_of(std::as_bytes(std::span(targets)));
  }
  return digest;
}

}  // namespace

DataDigest digest_of(const Dataset& set) {
  PartDigest train = digest_of_part(set.train);
  if (set.batches != nullptr) train.samples = set.batches->digest();
  return {.name = set.name,
          .source = set.source,
          .train = train,
          .validation = digest_of_part(set.validation),
          .test = digest_of_part(set.test)};
}

}  // namespace gpunn::data
