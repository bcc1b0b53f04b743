// Session's evaluations.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "training/metric.hpp"
#include "training/row_metrics.hpp"
#include "training/session.hpp"
#include "training/targets.hpp"
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

// Counted in batches.
LongWork Session::evaluation_work() const {
  return LongWork("evaluating on the " + std::string(name_of(dataset().evaluated)) + " rows",
                  static_cast<uint64_t>(data_->evaluation_sampling().steps_per_epoch()));
}

// The whole test split by launch(steps), which runs the next so many batches.
EvalReport Session::evaluate_by(StreamedProgram& program, const std::function<void(int64_t steps)>& launch) {
  const execution::HostSpan span(profiler_, "evaluation");
  const auto start = std::chrono::steady_clock::now();
  write_scalar<int64_t>(variables(), variable::kEvalStep, 0);
  variables().write(variable::kEvalTotals, bytes_of(std::vector<double>(4, 0.0)));
  const int64_t batches = data_->evaluation_sampling().steps_per_epoch();
  if (program.stream != nullptr) program.stream->seek(0, batches);
  program.run(batches, launch);
  const Totals totals = read_totals(variables(), variable::kEvalTotals);
  return {.part = dataset().evaluated,
          .loss = totals.mean_loss(),
          .scores = scores_of(task(), Of::evaluation, totals, dataset().classes),
          .rows = static_cast<int64_t>(totals.count),
          .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

// Each image by a program of its own size. Programs are compiled anew for each evaluation, so that the device need not
// have memory for all of them at once.
EvalReport Session::evaluate_singles(const std::function<void(const RowOutputs&)>& look) {
  const execution::HostSpan span(profiler_, "evaluation");
  const auto start = std::chrono::steady_clock::now();
  LongWork work = evaluation_work();
  RowMetrics metrics(task());
  const std::vector<Split>& images = dataset().test.singles;
  for (std::size_t i = 0; i < images.size(); ++i, work.advance()) {
    const int64_t outputs = data_->outputs_of(images[i]);
    const SplitType type = split_type("single", *experiment_, images[i].samples, outputs);
    ProgramContext program_context = context();
    program_context.outputs = outputs;
    Temporaries temporaries(variables());
    for (const char* name : {variable::kRowScores, variable::kPredictions}) {
      temporaries.create(name, {DType::f32, {1, outputs}}, Storage::state);
    }
    temporaries.create(variable::kRowLosses, {DType::f32, {1}}, Storage::state);
    temporaries.create(type.samples_variable(), images[i].samples, Storage::data);
    variables().write(type.samples_variable(), images[i].sample_bytes());
    temporaries.create(type.rows_variable(), type.rows_type(1), Storage::data);
    variables().write(type.rows_variable(), images[i].fields.at(kTargetField).values);
    execution::RunnableProgram program = runner_->compile(inspection_program(program_context, type, 1));
    execution::Executable& executable = runner_->ready(program);  // first: it creates the counter and the totals
    write_scalar<int64_t>(variables(), variable::kEvalStep, 0);
    if (i == 0) variables().write(variable::kEvalTotals, bytes_of(std::vector<double>(4, 0.0)));
    executable.run();
    const std::vector<float> scores = values_of<float>(variables().read(variable::kRowScores));
    const std::vector<float> predictions = values_of<float>(variables().read(variable::kPredictions));
    const std::vector<float> losses = values_of<float>(variables().read(variable::kRowLosses));
    const RowOutputs seen{
        .first = static_cast<int64_t>(i), .scores = scores, .predictions = predictions, .losses = losses};
    metrics.add(seen, dataset());
    look(seen);
  }
  const Totals totals = read_totals(variables(), variable::kEvalTotals);
  EvalReport report{.part = dataset().evaluated,
                    .loss = totals.mean_loss(),
                    .scores = scores_of(task(), Of::evaluation, totals, dataset().classes),
                    .rows = static_cast<int64_t>(totals.count),
                    .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  report.scores = metrics.put_into(report.scores);
  return report;
}

EvalReport Session::evaluate(const std::function<void(const graph::Node&)>& after) {
  if (data_->evaluates_singly()) return evaluate_singles([](const RowOutputs&) {});
  if (!after && has_row_metrics(task())) return evaluate_rows([](const RowOutputs&) {});
  StreamedProgram& step = evaluation_step();
  execution::Executable& executable = after ? runner_->ready_op_by_op(step.program) : runner_->ready(step.program);
  LongWork work = evaluation_work();
  return evaluate_by(step, [&](int64_t steps) {
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
  if (data_->evaluates_singly()) return evaluate_singles(look);
  const int64_t batch = data_->evaluation_batch();
  graph::Graph program = inspection_program(context(), data_->test(), batch);
  Temporaries temporaries(variables());
  for (const char* name : {variable::kRowScores, variable::kPredictions}) {
    temporaries.create(name, {DType::f32, {batch, dataset().classes}}, Storage::state);
  }
  temporaries.create(variable::kRowLosses, {DType::f32, {batch}}, Storage::state);
  StreamedProgram step{runner_->compile(std::move(program)), data_->evaluation_stream()};
  execution::Executable& executable = runner_->ready(step.program);
  int64_t first = 0;
  LongWork work = evaluation_work();
  RowMetrics metrics(task());
  EvalReport report = evaluate_by(step, [&](int64_t steps) {
    for (int64_t i = 0; i < steps; ++i, first += batch, work.advance()) {
      executable.run();
      const std::vector<float> scores = values_of<float>(variables().read(variable::kRowScores));
      std::vector<float> predictions = values_of<float>(variables().read(variable::kPredictions));
      to_data_units(predictions, dataset().target_mean, dataset().target_stddev);
      const std::vector<float> losses = values_of<float>(variables().read(variable::kRowLosses));
      // The last batch may have rows that do not count.
      const auto rows = static_cast<std::size_t>(std::min(batch, data_->test().rows() - first));
      const std::size_t values = rows * static_cast<std::size_t>(dataset().classes);
      const RowOutputs seen{.first = first,
                            .scores = std::span(scores).first(values),
                            .predictions = std::span(predictions).first(values),
                            .losses = std::span(losses).first(rows)};
      metrics.add(seen, dataset());
      look(seen);
    }
  });
  report.scores = metrics.put_into(report.scores);
  return report;
}

}  // namespace gpunn::training
