#pragma once

#include <gpunn/export.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace gpunn {

namespace data {
class SampleDraw;
}

// The samples of a data set that stay where they are, as images in their files, and are made each time that they are
// wanted. Any number of threads may ask.
class GPUNN_API SampleSource {
 public:
  SampleSource() = default;
  SampleSource(const SampleSource&) = delete;
  SampleSource& operator=(const SampleSource&) = delete;
  virtual ~SampleSource() = default;

  // Writes the sample of a row, of Split::samples' type: varied as what is drawn for it says, else as evaluations see
  // it. The same arguments give the same bytes. Throws Error with the file and what is wrong with it.
  virtual void read(int64_t row, data::SampleDraw* draw, std::span<std::byte> sample) const = 0;
  // What some of the rows are known by, so that a resumed training notices others.
  virtual uint32_t digest(std::span<const int64_t> rows) const = 0;
};

}  // namespace gpunn
