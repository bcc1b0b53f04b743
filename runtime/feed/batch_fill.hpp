#pragma once

#include <gpunn/batch_source.hpp>
#include <gpunn/data.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "data/variation/sample_variation.hpp"
#include "distributed/team.hpp"
#include "fields/standardise.hpp"
#include "program/batch_ops.hpp"
#include "program/sampling.hpp"

namespace gpunn::training {

// The rows that were written, and those of the step on all ranks.
struct FilledRows {
  int64_t count = 0, all = 0;
};

// Writes the batch of a step to the front of the arrays, which have room for a full batch.
using BatchFill = std::function<FilledRows(int64_t step, const BatchRoom& room)>;

// Brings samples, and the other fields of SplitType, to the device.
struct Standardisers {
  fields::Standardiser samples;
  std::vector<fields::Standardiser> fields;
};

// Memory for a batch of these rows, as the device has it.
class OwnBatchRoom {
 public:
  OwnBatchRoom(const SplitType& type, int64_t rows);
  const BatchRoom& room() const { return room_; }

 private:
  std::vector<std::vector<std::byte>> arrays_;
  BatchRoom room_;
};

// Rows of the split, which has to stay where it is, as the sampling picks them; varied, where a variation is given, on
// as many threads as the machine has.
BatchFill fill_from_split(const Split& split, const SplitType& type, const Sampling& sampling,
                          const Standardisers& standardisers, const data::SampleVariation* variation = nullptr);

// The same of a part of each step's rows.
BatchFill fill_from_split_part(const Split& split, const SplitType& type, const Sampling& sampling,
                               distributed::Share part, const Standardisers& standardisers,
                               const data::SampleVariation* variation = nullptr);

// A part of what `whole` fills in, which are `rows` rows.
BatchFill fill_from_part(BatchFill whole, const SplitType& type, int64_t rows, distributed::Share part);

// Batches of the calling program, of `batch` rows, of which a training of so many steps is asked for no more. Throws
// Error(usage) where one has no rows, or more than there is room for. `samples` is the type of the program's samples.
BatchFill fill_from_source(BatchSource& source, const SplitType& type, const TensorType& samples, int64_t batch,
                           int64_t steps, const Standardisers& standardisers);

}  // namespace gpunn::training
