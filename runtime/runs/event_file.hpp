#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// What TensorBoard reads: files of records, each a protobuf message `Event` in TFRecord framing. The messages are those
// of tensorflow/core/util/event.proto and framework/summary.proto, the framing that of lib/io/record_writer.cc.
namespace gpunn::training::event_file {

struct Scalar {
  std::string tag;   // "loss/train": the part before the slash groups the charts
  double value = 0;  // written as f32
};

// CRC-32C (Castagnoli), rotated and offset as the framing has it.
uint32_t masked_crc32c(std::string_view bytes);

// Length, its checksum, the message, its checksum; all little-endian.
std::string record(std::string_view message);

// Records; times in seconds since 1970.
std::string version_record(double time);              // the first of a file
std::string start_record(double time, int64_t step);  // what was recorded of this step and later ones is void
std::string scalar_record(double time, int64_t step, const std::vector<Scalar>& scalars);

}  // namespace gpunn::training::event_file
