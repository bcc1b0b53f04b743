#pragma once

#include <gpunn/export.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace gpunn {

namespace data {
class SampleDraw;
}

// Samples that stay in their files, as images, and are read each time they are needed. Any number of threads may read.
class GPUNN_API SampleSource {
 public:
  SampleSource() = default;
  SampleSource(const SampleSource&) = delete;
  SampleSource& operator=(const SampleSource&) = delete;
  virtual ~SampleSource() = default;

  // Writes the sample of a row in Split::samples' type. With `draw` it is varied by the numbers drawn for it; without,
  // it is as evaluations see it. The same arguments give the same bytes. Throws Error with the file and its mistake.
  virtual void read(int64_t row, data::SampleDraw* draw, std::span<std::byte> sample) const = 0;
  // Identifies some of the rows, so that a resumed training notices other samples.
  virtual uint32_t digest(std::span<const int64_t> rows) const = 0;
};

}  // namespace gpunn
