// Session's evaluations.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "program/variable_access.hpp"
#include "session/non_finite_rows.hpp"
#include "session/session.hpp"

namespace gpunn::training {

using graph::Storage;

namespace {

TensorType type_of(const graph::Graph& program, const char* variable) {
  return std::ranges::find(program.values(), variable, &graph::Value::name)->type;
}

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

bool Session::has_loss() const { return task().trains_layer(experiment_->model.output_layer().type); }

// Counted in batches.
LongWork Session::evaluation_work() const {
  return LongWork("evaluating on the " + std::string(name_of(dataset().evaluated)) + " rows",
                  static_cast<uint64_t>(data_->evaluation_sampling().steps_per_epoch()));
}

void Session::advance(LongWork& work, int64_t batches) {
  work.advance(static_cast<uint64_t>(batches));
  if (team_ != nullptr) team_->show_life();
}

struct Session::Evaluation {
  explicit Evaluation(const Session& session) : metrics(session.task().metrics()), non_finite(session.has_loss()) {}
  tasks::MetricTallies metrics;
  NonFiniteCount non_finite;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();

  void add(const tasks::EvaluatedRows& rows) {
    non_finite.add(rows);
    metrics.add(rows);
  }
};

EvalReport Session::report_of(const Evaluation& evaluation, distributed::Team* team) const {
  const tasks::Accumulated sums = sums_of(tasks::Phase::evaluation).read(team);
  return {.part = dataset().evaluated,
          .loss = sums.mean_loss(),
          .scores = evaluation.metrics.scores(sums, dataset().fields.target().count()),
          .rows = static_cast<int64_t>(sums.total(tasks::Total::rows)),
          .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - evaluation.start).count(),
          .non_finite = evaluation.non_finite.found()};
}

// The whole test split by launch(steps), which runs the next so many batches.
EvalReport Session::evaluate_by(StreamedProgram& program, Ranks ranks, Evaluation& evaluation,
                                const std::function<void(int64_t steps)>& launch) {
  const execution::HostSpan span(profiler_, "evaluation");
  evaluation.start = std::chrono::steady_clock::now();
  // A stream brings the batches of this rank alone.
  write_scalar<int64_t>(variables(), variable::kEvalStep, program.stream != nullptr ? 0 : ranks.rank);
  sums_of(tasks::Phase::evaluation).reset();
  const int64_t batches = data_->evaluation_batches(ranks);
  if (program.stream != nullptr) program.stream->seek(0, batches);
  program.run(batches, launch);
  return report_of(evaluation, ranks.world > 1 ? team_.get() : nullptr);
}

struct Session::SingleRow {
  std::string name;
  const Split& split;
  std::size_t index = 0;
  std::string prefix() const { return name + "."; }
};

std::unique_ptr<execution::RunnableProgram> Session::compile_single(const SingleRow& row) {
  ProgramContext of_row = context();
  of_row.outputs = data_->outputs_of(row.split);
  const SplitType type = split_type(row.name, dataset().fields, row.split);
  data_->upload(type, row.split);
  return std::make_unique<execution::RunnableProgram>(
      runner_->compile(inspection_program(of_row, type, 1, row.prefix())));
}

void Session::run_single(const SingleRow& row, execution::RunnableProgram& program, Evaluation& evaluation,
                         const std::function<void(const tasks::EvaluatedRows&)>& look) {
  execution::Executable& executable = runner_->ready(program);  // first: it creates the counter and the sums
  write_scalar<int64_t>(variables(), variable::kEvalStep, 0);
  if (row.index == 0) sums_of(tasks::Phase::evaluation).reset();
  executable.run();
  const auto read = [&](const char* name) { return read_floats(variables(), row.prefix() + name); };
  const std::vector<float> scores = read(variable::kRowScores), predictions = read(variable::kPredictions);
  const std::vector<float> losses = read(variable::kRowLosses);
  const tasks::EvaluatedRows seen{.dataset = dataset(),
                                  .first = static_cast<int64_t>(row.index),
                                  .scores = scores,
                                  .predictions = predictions,
                                  .losses = losses};
  evaluation.add(seen);
  look(seen);
}

void Session::drop_single(const SingleRow& row) {
  const SplitType type = split_type(row.name, dataset().fields, row.split);
  for (const DeviceField& field : type.fields) variables().drop(type.variable(field));
  for (const std::string& name : {type.samples_variable(), row.prefix() + variable::kRowScores,
                                  row.prefix() + variable::kPredictions, row.prefix() + variable::kRowLosses}) {
    variables().drop(name);
  }
}

// Each row by a program of its own size. The first ones stay for the next evaluation, with their rows on the device.
EvalReport Session::evaluate_singles(const std::function<void(const tasks::EvaluatedRows&)>& look) {
  const execution::HostSpan span(profiler_, "evaluation");
  Evaluation evaluation(*this);
  LongWork work = evaluation_work();
  const std::vector<Split>& rows = dataset().test.singles;
  uint64_t bytes = 0;
  for (std::size_t i = 0; i < rows.size(); ++i, advance(work, 1)) {
    bytes += rows[i].samples.bytes() + rows[i].fields.at(kTargetField).type.bytes();
    const SingleRow row{"single" + std::to_string(i), rows[i], i};
    if (bytes <= kept_bytes_) {
      if (singles_.size() == i) singles_.push_back(compile_single(row));
      run_single(row, *singles_[i], evaluation, look);
    } else {
      const auto program = compile_single(row);
      run_single(row, *program, evaluation, look);
      drop_single(row);
    }
  }
  return report_of(evaluation, nullptr);
}

EvalReport Session::evaluate(const std::function<void(const graph::Node&)>& after) {
  if (data_->evaluates_singly()) return evaluate_singles([](const tasks::EvaluatedRows&) {});
  if (!after && tasks::any_on_host(task().metrics())) return evaluate_rows([](const tasks::EvaluatedRows&) {});
  StreamedProgram& step = evaluation_step();
  execution::Executable& executable = after ? runner_->ready_op_by_op(step.program) : runner_->ready(step.program);
  LongWork work = evaluation_work();
  Evaluation evaluation(*this);
  return evaluate_by(step, ranks(), evaluation, [&](int64_t steps) {
    // A captured graph of several steps is launched as often as it fits, however the steps are cut.
    for (int64_t done = 0; done < steps;) {
      const int64_t now = after ? 1 : std::min(steps - done, executable.runs_per_launch());
      if (after) {
        executable.run_observed(after);
      } else {
        executable.run(now);
      }
      advance(work, now);
      done += now;
    }
  });
}

// Metrics of rows are computed on the host, from all rows: every rank evaluates all of them.
EvalReport Session::evaluate_rows(const std::function<void(const tasks::EvaluatedRows&)>& look) {
  if (data_->evaluates_singly()) return evaluate_singles(look);
  const int64_t batch = data_->evaluation_batch();
  graph::Graph program = inspection_program(context(), data_->test(), batch);
  Temporaries temporaries(variables());
  for (const char* name : {variable::kRowScores, variable::kPredictions}) {
    temporaries.create(name, type_of(program, name), Storage::state);
  }
  temporaries.create(variable::kRowLosses, {DType::f32, {batch}}, Storage::state);
  StreamedProgram step{runner_->compile(std::move(program)), data_->evaluation_stream({})};
  execution::Executable& executable = runner_->ready(step.program);
  int64_t first = 0;
  LongWork work = evaluation_work();
  Evaluation evaluation(*this);
  return evaluate_by(step, {}, evaluation, [&](int64_t steps) {
    for (int64_t i = 0; i < steps; ++i, first += batch, advance(work, 1)) {
      executable.run();
      const std::vector<float> scores = read_floats(variables(), variable::kRowScores);
      const std::vector<float> predictions = read_floats(variables(), variable::kPredictions);
      const std::vector<float> losses = read_floats(variables(), variable::kRowLosses);
      // The last batch may have rows that do not count.
      const auto rows = static_cast<std::size_t>(std::min(batch, data_->test().rows() - first));
      const auto rows_of = [&](const std::vector<float>& all) {
        return std::span(all).first(all.size() / static_cast<std::size_t>(batch) * rows);
      };
      const tasks::EvaluatedRows seen{.dataset = dataset(),
                                      .first = first,
                                      .scores = rows_of(scores),
                                      .predictions = rows_of(predictions),
                                      .losses = rows_of(losses)};
      evaluation.add(seen);
      look(seen);
    }
  });
}

}  // namespace gpunn::training
