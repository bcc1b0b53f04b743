#include <gpunn/augmentation.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "program/variable_access.hpp"
#include "session/session.hpp"

namespace gpunn {

namespace {

std::vector<std::byte> bytes_of_pixels(std::span<const float> x, const std::vector<float>& scale,
                                       const std::vector<float>& shift, std::size_t plane) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i / plane % scale.size();
    const float value = (x[i] - shift[c]) / scale[c];
    bytes.push_back(static_cast<std::byte>(std::lround(std::clamp(value, 0.0F, 255.0F))));
  }
  return bytes;
}

}  // namespace

namespace training {

Split Session::augmented_batches(int64_t steps) {
  upload_mixup();
  execution::RunnableProgram program = runner_->compile(batch_program(context(), data_->train()));
  const std::vector<float> scale = values_of<float>(variables().read(variable::kScale));
  const std::vector<float> shift = values_of<float>(variables().read(variable::kShift));
  Split result;
  result.samples = dataset().train.samples;
  const Shape& shape = result.samples.shape;
  std::size_t plane = 1;
  int64_t rows = 0;
  std::map<std::string, std::vector<std::byte>> kept;
  for (std::size_t i = 2; i < shape.size(); ++i) plane *= static_cast<std::size_t>(shape[i]);
  const auto batch = static_cast<std::size_t>(samples_per_step());
  StreamedProgram streamed{std::move(program), data_->training_stream(steps)};
  if (streamed.stream != nullptr) streamed.stream->seek(0);
  for (int64_t step = 0; step < steps; ++step) {
    streamed.run(1, [&](int64_t) { runner_->ready(streamed.program).run(1); });
    const auto count = static_cast<std::size_t>(read_scalar<int32_t>(variables(), variable::kBatchCount));
    const std::vector<float> x = values_of<float>(variables().read(variable::kBatchSamples));
    rows += static_cast<int64_t>(count);
    for (const DeviceField& field : data_->train().fields) {
      const std::vector<std::byte> of_batch = variables().read(variable::kBatchFields + field.name);
      const std::size_t row_bytes = of_batch.size() / batch;
      std::vector<std::byte>& all = kept[field.name];
      all.insert(all.end(), of_batch.begin(), of_batch.begin() + static_cast<std::ptrdiff_t>(count * row_bytes));
    }
    const std::span<const float> filled = std::span(x).first(count * scale.size() * plane);
    const std::vector<std::byte> raw =
        result.samples.dtype == DType::u8 ? bytes_of_pixels(filled, scale, shift, plane) : data_->raw_samples(filled);
    result.values.insert(result.values.end(), raw.begin(), raw.end());
  }
  result.samples.shape[0] = rows;
  for (const DeviceField& field : data_->train().fields) {
    result.fields[field.name] = data_->raw_field(field, kept[field.name]);
  }
  return result;
}

}  // namespace training

Dataset augmented_samples(const Experiment& experiment, int64_t rows) {
  Experiment resident = experiment;
  if (!data::SampleVariation::is_wanted(resident.augmentation)) resident.data.residency = Residency::device;
  training::Session session = training::Session::open(resident);
  if (session.dataset().batches != nullptr) {
    throw Error("the batches of '" + session.dataset().name + "' come while training; there are none to be shown",
                ExitCode::usage);
  }
  const int64_t batch = session.samples_per_step();
  const int64_t steps = std::clamp<int64_t>((rows + batch - 1) / batch, 1, session.steps_per_epoch());
  Dataset result = session.dataset();
  result.train = session.augmented_batches(steps);
  result.test = {};
  result.validation = {};
  return result;
}

}  // namespace gpunn
