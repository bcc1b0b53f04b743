#pragma once

#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execution/measurement/profiler.hpp"
#include "execution/steps/program_runner.hpp"
#include "feed/batch_fill.hpp"
#include "feed/batch_stream.hpp"
#include "program/batch_ops.hpp"
#include "program/division.hpp"

namespace gpunn::training {

// The data set of a training and its way to the device: whole from the start, or batch by batch while training.
class DataFeed {
 public:
  // A data set whose `test` is what is evaluated. Nothing is on a device yet. `shift` is Sampling::shift of the
  // training samples.
  DataFeed(const Experiment& experiment, Dataset dataset, Ranks ranks, int64_t shift = 0);
  DataFeed(const DataFeed&) = delete;
  DataFeed& operator=(const DataFeed&) = delete;

  // Puts it on the device, or chooses to stream it; and what its samples are normalised with.
  void place(execution::ProgramRunner& runner, execution::Profiler* profiler);

  const Dataset& dataset() const { return dataset_; }  // the values of its splits are here only where it is streamed
  const SplitType& train() const { return train_; }
  const SplitType& test() const { return test_; }
  Residency residency() const { return residency_; }  // device or stream
  bool resident() const { return residency_ != Residency::stream; }
  bool evaluates() const { return test_.rows() > 0; }  // there are rows to evaluate
  // Those rows have sizes of their own: each is a batch, and is uploaded when its turn comes.
  bool evaluates_singly() const { return !dataset_.test.singles.empty(); }
  // The numbers that a row of the split is to be learnt from.
  int64_t outputs_of(const Split& split) const;
  // The numbers that a row's targets have; these are as many but for boxes.
  int64_t target_size_of(const Split& split) const;
  int64_t evaluation_batch() const;  // rows
  Sampling evaluation_sampling() const;
  Sampling training_sampling() const;
  Division division() const;  // of a training step
  // Of an evaluation, a rank's batches: every `world`th from the one of its number on.
  int64_t evaluation_batches(Ranks ranks) const;
  // Why the data set is streamed, where the experiment does not ask for that; else empty.
  std::string streaming_notice() const;

  // Samples of their own beside the data set's, until the type's variables are dropped.
  void upload(const SplitType& type, const Split& split);
  // What writes this rank's batches of a training of so many steps.
  BatchFill training_fill(int64_t steps) const;
  // Streams of batches; none where the data set is resident.
  std::unique_ptr<BatchStream> training_stream(int64_t steps) const;  // of a training of so many steps
  std::unique_ptr<BatchStream> evaluation_stream(Ranks ranks) const;
  // A sample of the test split, in the type and the units of the data set.
  std::vector<std::byte> test_sample(int64_t row) const;
  // Training rows of the device, whose samples are not bytes, in the type and the units of the data set.
  std::vector<std::byte> raw_samples(std::span<const float> rows) const;
  FieldValues raw_field(const DeviceField& field, std::span<const std::byte> rows) const;

 private:
  // The numbers of each channel: those of the experiment, or else of the data set.
  void take_normalisation();
  void upload_normalisation();
  fields::Standardiser sample_standardiser(const TensorType& samples) const { return {samples, mean_, stddev_}; }
  Standardisers standardisers(const SplitType& type, const Split& split) const;
  bool must_stream() const;
  const data::SampleVariation* variation() const { return variation_ ? &*variation_ : nullptr; }

  const Experiment& experiment_;
  const Ranks ranks_;
  const int64_t shift_;
  Dataset dataset_;
  SplitType train_, test_;
  std::vector<double> mean_, stddev_;  // by channel
  std::optional<data::SampleVariation> variation_;
  mutable std::vector<std::byte> read_back_;  // the test samples of a device, once one is asked for
  Residency residency_ = Residency::device;
  execution::ProgramRunner* runner_ = nullptr;
  execution::Profiler* profiler_ = nullptr;
};

}  // namespace gpunn::training
