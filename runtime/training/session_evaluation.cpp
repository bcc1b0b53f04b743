// Session's evaluations and predictions.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "training/session_bound.hpp"
#include "training/variable_access.hpp"

namespace gpunn::training {

using graph::Storage;

namespace {

// Variables of one call: the next one may bring another number of rows.
class Temporaries {
 public:
  explicit Temporaries(execution::Variables& variables) : variables_(variables) {}
  Temporaries(const Temporaries&) = delete;
  Temporaries& operator=(const Temporaries&) = delete;
  ~Temporaries() {
    for (const std::string& name : names_) variables_.drop(name);
  }
  void create(const std::string& name, const TensorType& type, Storage storage) {
    variables_.create_temporary(name, type, storage);
    names_.push_back(name);
  }

 private:
  execution::Variables& variables_;
  std::vector<std::string> names_;
};

}  // namespace

EvalReport Session::evaluate(const std::function<void(const graph::Node&)>& after) {
  const execution::HostSpan span(profiler_, "evaluation");
  const auto start = std::chrono::steady_clock::now();
  const int64_t batch = evaluation_batch();
  execution::Executable& executable = ready(evaluation_bound());
  write_scalar<int64_t>(*variables_, variable::kEvalStep, 0);
  variables_->write(variable::kEvalTotals, bytes_of(std::vector<double>(4, 0.0)));
  const int64_t batches = evaluation_sampling(test_split_, batch).steps_per_epoch();
  if (evaluation_->stream != nullptr) evaluation_->stream->seek(0, batches);
  evaluation_->run(batches, [&](int64_t steps) {
    if (!after) return executable.run(steps);
    for (int64_t i = 0; i < steps; ++i) executable.run_observed(after);
  });
  const Totals totals = read_totals(*variables_, variable::kEvalTotals);
  return {.loss = totals.mean_loss(),
          .accuracy = totals.accuracy(),
          .top5_accuracy = totals.top5_accuracy(),
          .rows = static_cast<int64_t>(totals.count),
          .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

std::vector<float> Session::probabilities(const Split& samples) {
  const SplitType type{"predict", samples.samples};
  const int64_t batch = std::min<int64_t>(type.rows(), 64);
  graph::Graph program = prediction_program(context(), type, batch);
  Temporaries temporaries(*variables_);
  temporaries.create(type.samples_variable(), samples.samples, Storage::data);
  temporaries.create(type.rows_variable(), {DType::i32, {type.rows()}}, Storage::data);
  temporaries.create(variable::kProbabilities, {DType::f32, {batch, dataset_.classes}}, Storage::state);
  upload(type, samples);
  const std::unique_ptr<Bound> bound = bind(std::move(program));
  execution::Executable& executable = ready(*bound);
  write_scalar<int64_t>(*variables_, variable::kEvalStep, 0);
  std::vector<float> result;
  for (int64_t first = 0; first < type.rows(); first += batch) {
    executable.run();
    const std::vector<std::byte> bytes = variables_->read(variable::kProbabilities);
    const auto rows = static_cast<std::size_t>(std::min(batch, type.rows() - first));
    const std::size_t before = result.size();
    result.resize(before + rows * static_cast<std::size_t>(dataset_.classes));
    std::memcpy(result.data() + before, bytes.data(), (result.size() - before) * sizeof(float));
  }
  return result;
}

}  // namespace gpunn::training
