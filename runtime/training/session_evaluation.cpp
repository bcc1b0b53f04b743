// Session's evaluations and predictions.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "training/metric.hpp"
#include "training/row_metrics.hpp"
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

std::unique_ptr<BatchStream> Session::evaluation_stream() {
  if (!test_split_.ring) return nullptr;
  return std::make_unique<BatchStream>(*backend_, *variables_, dataset_.test, test_split_,
                                       evaluation_sampling(test_split_, evaluation_batch()));
}

// Counted in batches.
LongWork Session::evaluation_work() const {
  return LongWork("evaluating on the " + std::string(name_of(dataset_.evaluated)) + " rows",
                  static_cast<uint64_t>(evaluation_sampling(test_split_, evaluation_batch()).steps_per_epoch()));
}

// The whole test split by launch(steps), which runs the next so many batches.
EvalReport Session::evaluate_by(Bound& bound, const std::function<void(int64_t steps)>& launch) {
  const execution::HostSpan span(profiler_, "evaluation");
  const auto start = std::chrono::steady_clock::now();
  write_scalar<int64_t>(*variables_, variable::kEvalStep, 0);
  variables_->write(variable::kEvalTotals, bytes_of(std::vector<double>(4, 0.0)));
  const int64_t batches = evaluation_sampling(test_split_, evaluation_batch()).steps_per_epoch();
  if (bound.stream != nullptr) bound.stream->seek(0, batches);
  bound.run(batches, launch);
  const Totals totals = read_totals(*variables_, variable::kEvalTotals);
  return {.part = dataset_.evaluated,
          .loss = totals.mean_loss(),
          .scores = scores_of(task(), Of::evaluation, totals, dataset_.classes),
          .rows = static_cast<int64_t>(totals.count),
          .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

EvalReport Session::evaluate(const std::function<void(const graph::Node&)>& after) {
  if (!after && has_row_metrics(task())) return evaluate_rows([](const RowOutputs&) {});
  Bound& bound = evaluation_bound();
  execution::Executable& executable = after ? ready_op_by_op(bound) : ready(bound);
  LongWork work = evaluation_work();
  return evaluate_by(bound, [&](int64_t steps) {
    // A captured graph of several steps is launched as often as it fits, however the steps are cut.
    for (int64_t done = 0; done < steps;) {
      const int64_t now = after ? 1 : std::min(steps - done, executable.runs_per_launch());
      if (after) {
        executable.run_observed(after);
      } else {
        executable.run(now);
      }
      work.advance(static_cast<uint64_t>(now));
      done += now;
    }
  });
}

EvalReport Session::evaluate_rows(const std::function<void(const RowOutputs&)>& look) {
  const int64_t batch = evaluation_batch();
  graph::Graph program = inspection_program(context(), test_split_, batch);
  Temporaries temporaries(*variables_);
  for (const char* name : {variable::kRowScores, variable::kPredictions}) {
    temporaries.create(name, {DType::f32, {batch, dataset_.classes}}, Storage::state);
  }
  temporaries.create(variable::kRowLosses, {DType::f32, {batch}}, Storage::state);
  const std::unique_ptr<Bound> bound = bind(std::move(program));
  bound->stream = evaluation_stream();
  execution::Executable& executable = ready(*bound);
  int64_t first = 0;
  LongWork work = evaluation_work();
  RowMetrics metrics(task());
  EvalReport report = evaluate_by(*bound, [&](int64_t steps) {
    for (int64_t i = 0; i < steps; ++i, first += batch, work.advance()) {
      executable.run();
      const std::vector<float> scores = values_of<float>(variables_->read(variable::kRowScores));
      std::vector<float> predictions = values_of<float>(variables_->read(variable::kPredictions));
      to_data_units(predictions);
      const std::vector<float> losses = values_of<float>(variables_->read(variable::kRowLosses));
      // The last batch may have rows that do not count.
      const auto rows = static_cast<std::size_t>(std::min(batch, test_split_.rows() - first));
      const std::size_t values = rows * static_cast<std::size_t>(dataset_.classes);
      const RowOutputs seen{.first = first,
                            .scores = std::span(scores).first(values),
                            .predictions = std::span(predictions).first(values),
                            .losses = std::span(losses).first(rows)};
      metrics.add(seen, dataset_);
      look(seen);
    }
  });
  report.scores = metrics.put_into(report.scores);
  return report;
}

void Session::to_data_units(std::span<float> predictions) const {
  const auto columns = static_cast<std::size_t>(dataset_.classes);
  for (std::size_t i = 0; !dataset_.target_mean.empty() && i < predictions.size(); ++i) {
    const double scaled = static_cast<double>(predictions[i]) * dataset_.target_stddev[i % columns];
    predictions[i] = static_cast<float>(scaled + dataset_.target_mean[i % columns]);
  }
}

std::vector<float> Session::predictions(const Split& samples) {
  const SplitType type = split_type("predict", experiment_, samples.samples, dataset_.classes);
  const int64_t batch = std::min<int64_t>(type.rows(), 64);
  graph::Graph program = prediction_program(context(), type, batch);
  Temporaries temporaries(*variables_);
  temporaries.create(type.samples_variable(), samples.samples, Storage::data);
  temporaries.create(type.rows_variable(), type.rows_type(type.rows()), Storage::data);
  temporaries.create(variable::kPredictions, {DType::f32, {batch, dataset_.classes}}, Storage::state);
  upload(type, samples);
  const std::unique_ptr<Bound> bound = bind(std::move(program));
  execution::Executable& executable = ready(*bound);
  write_scalar<int64_t>(*variables_, variable::kEvalStep, 0);
  std::vector<float> result;
  for (int64_t first = 0; first < type.rows(); first += batch) {
    executable.run();
    const std::vector<float> values = values_of<float>(variables_->read(variable::kPredictions));
    const int64_t rows = std::min(batch, type.rows() - first);
    result.insert(result.end(), values.begin(), values.begin() + rows * dataset_.classes);
  }
  to_data_units(result);
  return result;
}

std::vector<std::byte> Session::test_samples() const {
  return test_split_.ring ? dataset_.test.values : variables_->read(test_split_.samples_variable());
}

}  // namespace gpunn::training
