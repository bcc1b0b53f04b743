#include "feed/data_feed.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <utility>

#include "common/text.hpp"
#include "feed/residency.hpp"
#include "feed/targets.hpp"
#include "program/programs.hpp"
#include "program/variable_access.hpp"

namespace gpunn::training {

using graph::Storage;

DataFeed::DataFeed(const Experiment& experiment, Dataset dataset, Ranks ranks, int64_t shift)
    : experiment_(experiment), ranks_(ranks), shift_(shift), dataset_(std::move(dataset)) {
  train_ = split_type("train", dataset_.fields, dataset_.train);
  train_.brought = dataset_.batches != nullptr;
  test_ = split_type("test", dataset_.fields, dataset_.test);
  if (data::SampleVariation::is_wanted(experiment_.augmentation)) {
    variation_.emplace(experiment_.augmentation, experiment_.seed);
  }
}

// Made batch by batch on the host, or sources of their own, or picked as SAMPLE_INDICES can't.
bool DataFeed::must_stream() const {
  return dataset_.batches != nullptr || variation_ || dataset_.train.source != nullptr ||
         dataset_.test.source != nullptr || training_sampling().joins();
}

Sampling DataFeed::training_sampling() const {
  Sampling sampling = training::training_sampling(experiment_, train_);
  sampling.shift = shift_;
  return sampling;
}

Division DataFeed::division() const { return division_of(experiment_, ranks_, training_sampling()); }

void DataFeed::place(execution::ProgramRunner& runner, execution::Profiler* profiler) {
  runner_ = &runner;
  profiler_ = profiler;
  take_normalisation();
  const gpunn_device_info& device = runner.backend().info();
  residency_ = must_stream() ? Residency::stream
                             : training::choose_residency(experiment_.data.residency, resident_bytes(dataset_), device);
  if (resident()) {
    upload(train_, dataset_.train);
    if (evaluates() && !evaluates_singly()) upload(test_, dataset_.test);
    for (Split* split : {&dataset_.train, &dataset_.test}) {
      split->values = {};
      split->lent = nullptr;
    }
  } else {
    const Division division = this->division();
    const int64_t batch = division.divided ? division.my_width() : training_sampling().width();
    train_.ring = dataset_.batches != nullptr && !dataset_.batches->always_full()
                      ? ring_of_source(train_.samples, train_.fields, batch, device.alignment)
                      : lay_out_ring(train_.samples, train_.fields, batch, device.alignment,
                                     variation_ || dataset_.train.source != nullptr);
    if (evaluates() && !evaluates_singly()) {
      test_.ring = lay_out_ring(test_.samples, test_.fields, evaluation_batch(), device.alignment,
                                dataset_.test.source != nullptr);
    }
  }
  upload_normalisation();
}

void DataFeed::upload(const SplitType& type, const Split& split) {
  const execution::HostSpan span(profiler_, "data upload");
  execution::Variables& variables = runner_->variables();
  const auto write = [&](const std::string& name, const fields::Standardiser& standardiser,
                         std::span<const std::byte> rows) {
    if (standardiser.copies()) return variables.write(name, rows);
    variables.write(name, standardiser.converted(rows));
  };
  variables.create(type.samples_variable(), type.samples, Storage::data);
  write(type.samples_variable(), sample_standardiser(split.samples), split.sample_bytes());
  const Standardisers to_device = standardisers(type, split);
  for (std::size_t i = 0; i < type.fields.size(); ++i) {
    const DeviceField& field = type.fields[i];
    variables.create(type.variable(field), field.rows(split.rows()), Storage::data);
    write(type.variable(field), to_device.fields[i], split.fields.at(field.name).bytes());
  }
}

Standardisers DataFeed::standardisers(const SplitType& type, const Split& split) const {
  Standardisers result{sample_standardiser(split.samples), {}};
  for (const DeviceField& wanted : type.fields) {
    const Field& field = *dataset_.fields.find(wanted.name);
    const auto values = split.fields.find(wanted.name);
    const bool brought = dataset_.batches != nullptr && values == split.fields.end();
    const DType dtype = brought                        ? dataset_.batches->dtype_of(field)
                        : values == split.fields.end() ? wanted.row.dtype
                                                       : values->second.type.dtype;
    result.fields.push_back(field_standardiser(field, dtype));
  }
  return result;
}

void DataFeed::take_normalisation() {
  if (!are_normalised(fields::device_type(dataset_.train.samples).dtype)) return;
  const DataConfig& data = experiment_.data;
  mean_ = data.mean.empty() ? dataset_.fields.input().mean : data.mean;
  stddev_ = data.stddev.empty() ? dataset_.fields.input().stddev : data.stddev;
  const auto channels = static_cast<std::size_t>(dataset_.train.samples.shape[1]);
  if (mean_.size() != channels || stddev_.size() != channels) {
    throw Error(experiment_.file.string() + ": data.mean and data.stddev must have one number for each of the " +
                    std::to_string(channels) + " channels of '" + dataset_.name + "', have " +
                    std::to_string(mean_.size()) + " and " + std::to_string(stddev_.size()),
                ExitCode::usage);
  }
}

void DataFeed::upload_normalisation() {
  const DType samples = dataset_.train.samples.dtype;
  const Normalisation normalisation = device_normalisation(samples, mean_, stddev_);
  const Normalisation raw = raw_normalisation(samples, mean_, stddev_);
  const TensorType type{DType::f32, {static_cast<int64_t>(mean_.size())}};
  for (const auto& [name, values] :
       {std::pair{variable::kScale, &normalisation.scale}, std::pair{variable::kShift, &normalisation.shift},
        std::pair{variable::kRawScale, &raw.scale}, std::pair{variable::kRawShift, &raw.shift}}) {
    if (mean_.empty()) break;
    runner_->variables().create(name, type, Storage::data);
    runner_->variables().write(name, bytes_of(*values));
  }
  for (const DeviceField& field : train_.fields) {
    if (!field.normalised) continue;
    const Field& image = *dataset_.fields.find(field.name);
    const Normalisation numbers = raw_normalisation(field.row.dtype, image.mean, image.stddev);
    for (const auto& [what, values] : {std::pair{"scale", &numbers.scale}, std::pair{"shift", &numbers.shift}}) {
      const std::string name = normalisation_variable(field.name, what);
      runner_->variables().create(name, {DType::f32, {std::ssize(*values)}}, Storage::data);
      runner_->variables().write(name, bytes_of(*values));
    }
  }
}

int64_t DataFeed::outputs_of(const Split& split) const {
  const Field& target = dataset_.fields.target();
  return target.names.empty() ? target_size_of(split) : target.count();
}

int64_t DataFeed::target_size_of(const Split& split) const {
  const Field& target = dataset_.fields.target();
  const auto values = split.fields.find(target.name);
  if (values != split.fields.end() && split.rows() > 0) return values->second.type.elements() / split.rows();
  return target.type.elements();
}

int64_t DataFeed::evaluation_batch() const {
  if (evaluates_singly()) return 1;
  const DataConfig& data = experiment_.data;
  return std::min(data.eval_batch_size > 0 ? data.eval_batch_size : data.batch_size, test_.rows());
}

Sampling DataFeed::evaluation_sampling() const { return training::evaluation_sampling(test_, evaluation_batch()); }

std::string DataFeed::streaming_notice() const {
  if (resident() || must_stream() || experiment_.data.residency != Residency::automatic) return "";
  return "data set '" + dataset_.name + "', " + human_bytes(resident_bytes(dataset_)) +
         ", is streamed from the host: " + "the device has " + human_bytes(runner_->backend().info().free_bytes) +
         " free, and at most half is given to data";
}

BatchFill DataFeed::training_fill(int64_t steps) const {
  const Sampling sampling = training_sampling();
  const Standardisers to_device = standardisers(train_, dataset_.train);
  BatchFill fill =
      dataset_.batches != nullptr
          ? fill_from_source(*dataset_.batches, train_, dataset_.train.samples, sampling.batch, steps, to_device)
          : fill_from_split(dataset_.train, train_, sampling, to_device, variation());
  const Division division = this->division();
  if (division.divided) {
    fill = dataset_.batches != nullptr
               ? fill_from_part(std::move(fill), train_, division.rows, division.my_rows())
               : fill_from_split_part(dataset_.train, train_, sampling, division.my_rows(), to_device, variation());
  }
  return fill;
}

std::unique_ptr<BatchStream> DataFeed::training_stream(int64_t steps) const {
  if (resident()) return nullptr;
  return std::make_unique<BatchStream>(runner_->backend(), runner_->variables(), train_, training_fill(steps),
                                       profiler_);
}

std::unique_ptr<BatchStream> DataFeed::evaluation_stream(Ranks ranks) const {
  if (resident() || evaluates_singly()) return nullptr;
  BatchFill fill = fill_from_split(dataset_.test, test_, evaluation_sampling(), standardisers(test_, dataset_.test));
  const BatchFill own = [fill, ranks](int64_t step, const BatchRoom& room) {
    return fill(step * ranks.world + ranks.rank, room);
  };
  return std::make_unique<BatchStream>(runner_->backend(), runner_->variables(), test_, own);
}

int64_t DataFeed::evaluation_batches(Ranks ranks) const {
  return (evaluation_sampling().steps_per_epoch() - ranks.rank + ranks.world - 1) / ranks.world;
}

std::vector<std::byte> DataFeed::test_sample(int64_t row) const {
  if (!resident()) return sample_of(dataset_.test, row);
  if (read_back_.empty()) read_back_ = runner_->variables().read(test_.samples_variable());
  const std::size_t bytes = test_.samples.bytes() / static_cast<std::size_t>(test_.rows());
  const auto first = read_back_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(row) * bytes);
  const std::vector<std::byte> sample = {first, first + static_cast<std::ptrdiff_t>(bytes)};
  const fields::Standardiser standardiser = sample_standardiser(dataset_.test.samples);
  return standardiser.copies() ? sample : standardiser.restored(values_of<float>(sample));
}

std::vector<std::byte> DataFeed::raw_samples(std::span<const float> rows) const {
  return sample_standardiser(dataset_.train.samples).restored(rows);
}

FieldValues DataFeed::raw_field(const DeviceField& field, std::span<const std::byte> rows) const {
  const auto values = dataset_.train.fields.find(field.name);
  const DType dtype = values == dataset_.train.fields.end() ? field.row.dtype : values->second.type.dtype;
  TensorType type = field.rows(static_cast<int64_t>(rows.size() / std::max<std::size_t>(field.row.bytes(), 1)));
  type.dtype = dtype;
  const fields::Standardiser standardiser = field_standardiser(*dataset_.fields.find(field.name), dtype);
  if (standardiser.copies()) return {.type = type, .values = {rows.begin(), rows.end()}};
  return {.type = type, .values = standardiser.restored(values_of<float>({rows.begin(), rows.end()}))};
}

}  // namespace gpunn::training
