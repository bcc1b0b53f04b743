// What a training tells and ends with.
#include <gpunn/training.hpp>

#include <map>
#include <string>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "values/record.hpp"
#include "values/scores.hpp"

namespace gpunn::python {

namespace {

// One that does not apply, as top-5 accuracy of three classes, is left out. An undefined one is NaN.
void add_scores(nb::dict& to, const std::string& prefix, const Scores& scores) {
  for (const Score& score : scores) {
    if (score.applies) to[nb::str((prefix + score.metric.name).c_str())] = score.value;
  }
}

nb::dict values_of(const EvalReport& report) {
  nb::dict result;
  add_scores(result, "", report.scores);
  result["loss"] = report.loss;
  return result;
}

nb::dict values_of(const EpochReport& report) {
  nb::dict result;
  result["epoch"] = report.epoch;
  result["global_step"] = report.global_step;
  result["loss"] = report.train_loss;
  add_scores(result, "", report.train_scores);
  if (report.evaluation.rows > 0) {
    result["val_loss"] = report.evaluation.loss;
    add_scores(result, "val_", report.evaluation.scores);
  }
  result["learning_rate"] = report.learning_rate;
  result["seconds"] = report.train_seconds;
  result["samples_per_second"] = report.samples_per_second;
  return result;
}

nb::dict values_of(const StepReport& report) {
  nb::dict result;
  add_scores(result, "", report.scores);
  result["epoch"] = report.epoch;
  result["epochs"] = report.epochs;
  result["step"] = report.step;
  result["steps"] = report.steps;
  result["global_step"] = report.global_step;
  result["loss"] = report.loss;
  result["learning_rate"] = report.learning_rate;
  result["samples_per_second"] = report.samples_per_second;
  result["seconds_left"] = report.seconds_left;
  return result;
}

// A report's numbers by the names of a training's history: report["val_loss"], dict(report).
template <typename T>
void add_values(nb::class_<T>& record) {
  record.def("keys", [](const T& report) { return nb::typed<nb::list, std::string>(values_of(report).keys()); })
      .def("__getitem__",
           [](const T& report, const std::string& name) {
             const nb::dict values = values_of(report);
             const nb::object found = values.attr("get")(name);
             if (!found.is_none()) return nb::typed<nb::object, double>(found);
             const std::string names = nb::cast<std::string>(nb::str(", ").attr("join")(values.keys()));
             throw nb::key_error(("there is no '" + name + "'; there are " + names).c_str());
           })
      .def("__contains__", [](const T& report, nb::handle name) {
        return nb::cast<bool>(values_of(report).attr("__contains__")(name));
      });
}

void bind_steps(nb::module_& module) {
  Record<Metric>(module, "Metric", "A number that says how good a model is.")
      .field("name", &Metric::name, "In experiments and records: \"top5_accuracy\".")
      .field("title", &Metric::title, "For readers: \"top-5 accuracy\".")
      .field("larger_is_better", &Metric::larger_is_better)
      .field("is_share", &Metric::is_share, "Lies between 0 and 1.");
  Record<LossScale>(module, "LossScale", "What a training in f16 multiplies its loss by.")
      .field("scale", &LossScale::scale)
      .field("skipped_steps", &LossScale::skipped_steps, "Steps so far whose gradients overflowed.");
  Record<LoaderReport>(module, "LoaderReport", "Of batches that the host makes or gathers while the device trains.")
      .field("samples_per_second", &LoaderReport::samples_per_second, "While the host is at work.")
      .field("waited_seconds", &LoaderReport::waited_seconds,
             "That the device had nothing to do because a batch was not there.");
  Record<StepReport> step(module, "StepReport", "Where a training is. Times in seconds.");
  step.field("epoch", &StepReport::epoch, "Counts from 1.")
      .field("epochs", &StepReport::epochs)
      .field("step", &StepReport::step, "Steps done in this epoch.")
      .field("steps", &StepReport::steps, "Steps of an epoch.")
      .field("global_step", &StepReport::global_step, "Steps done in all.")
      .field("loss", &StepReport::loss, "The running mean of this epoch.")
      .computed(
          "metrics", [](const StepReport& r) { return scores_of(r.scores); }, kScoresDoc)
      .field("learning_rate", &StepReport::learning_rate)
      .field("samples_per_second", &StepReport::samples_per_second)
      .field("seconds_left", &StepReport::seconds_left)
      .field("gradient_norm", &StepReport::gradient_norm, "Of this step, where it is recorded.")
      .field("loss_scale", &StepReport::loss_scale, "Of a training in f16.");
  add_values(step.of());
  Record<NonFiniteRows>(module, "NonFiniteRows", "Evaluated rows whose outputs or loss are NaN or infinite.")
      .field("rows", &NonFiniteRows::rows)
      .field("first", &NonFiniteRows::first, "Counts from 0.")
      .field("cause", &NonFiniteRows::cause, "The likely one.");
  Record<EvalReport> evaluation(module, "EvalReport", "How a model does on data that it was not trained on.");
  evaluation
      .computed(
          "part", [](const EvalReport& r) { return std::string(name_of(r.part)); }, "\"test\" or \"validation\".")
      .field("loss", &EvalReport::loss)
      .computed(
          "metrics", [](const EvalReport& r) { return scores_of(r.scores); }, kScoresDoc)
      .field("rows", &EvalReport::rows)
      .field("seconds", &EvalReport::seconds)
      .field("non_finite", &EvalReport::non_finite, "Of an evaluation that looks at each row, as gpunn.evaluate does.");
  add_values(evaluation.of());
  Record<EpochReport> epoch(module, "EpochReport", "An epoch that is over.");
  epoch.field("epoch", &EpochReport::epoch, "Counts from 1.")
      .field("global_step", &EpochReport::global_step)
      .field("train_loss", &EpochReport::train_loss)
      .computed(
          "train_metrics", [](const EpochReport& r) { return scores_of(r.train_scores); }, kScoresDoc)
      .field("evaluation", &EpochReport::evaluation)
      .field("learning_rate", &EpochReport::learning_rate)
      .field("train_seconds", &EpochReport::train_seconds)
      .field("samples_per_second", &EpochReport::samples_per_second)
      .field("best", &EpochReport::best, "The best epoch so far, by checkpoint.monitor.")
      .field("loss_scale", &EpochReport::loss_scale, "Of a training in f16.")
      .field("loader", &EpochReport::loader, "Where the host makes or gathers the batches.");
  add_values(epoch.of());
}

void bind_profile(nb::module_& module) {
  Record<ProfiledOp>(module, "ProfiledOp", "An op of the training step, over all measured steps. Times in seconds.")
      .field("op", &ProfiledOp::op)
      .field("name", &ProfiledOp::name)
      .field("backend", &ProfiledOp::backend)
      .field("count", &ProfiledOp::count)
      .field("seconds", &ProfiledOp::seconds)
      .field("share", &ProfiledOp::share)
      .field("flops", &ProfiledOp::flops)
      .field("bytes", &ProfiledOp::bytes)
      .field("gflops", &ProfiledOp::gflops)
      .field("gigabytes", &ProfiledOp::gigabytes)
      .field("ceiling_share", &ProfiledOp::ceiling_share);
  Record<ProfileReport>(module, "ProfileReport", "Where the time of training steps goes. Times in seconds.")
      .field("file", &ProfileReport::file)
      .field("backend", &ProfileReport::backend)
      .field("device", &ProfileReport::device)
      .field("steps", &ProfileReport::steps)
      .field("step_seconds", &ProfileReport::step_seconds)
      .field("whole_step_seconds", &ProfileReport::whole_step_seconds)
      .field("captured", &ProfileReport::captured)
      .field("subgraphs", &ProfileReport::subgraphs)
      .field("ceiling_gflops", &ProfileReport::ceiling_gflops)
      .field("ceiling_gigabytes", &ProfileReport::ceiling_gigabytes)
      .field("ops", &ProfileReport::ops);
}

}  // namespace

void bind_reports(nb::module_& module) {
  bind_steps(module);
  bind_profile(module);
  Record<BackendComparison>(module, "BackendComparison",
                            "Of backend \"check:A,B\": how far B came from A, which trained.")
      .field("trained", &BackendComparison::trained)
      .field("checked", &BackendComparison::checked)
      .field("steps", &BackendComparison::steps)
      .field("op_error", &BackendComparison::op_error)
      .field("op", &BackendComparison::op)
      .field("parameter_difference", &BackendComparison::parameter_difference)
      .field("parameter", &BackendComparison::parameter);
  Record<RunResult>(module, "RunResult", "What a training ends with. Times in seconds.")
      .field("run", &RunResult::run, "The run folder.")
      .field("backend", &RunResult::backend)
      .field("epochs", &RunResult::epochs, "Those of this call.")
      .field("final_evaluation", &RunResult::final_evaluation)
      .field("monitor", &RunResult::monitor, "What best_metric is.")
      .field("best_metric", &RunResult::best_metric, "NaN without a best epoch.")
      .field("best_epoch", &RunResult::best_epoch, "0: there is none.")
      .field("stopped_early", &RunResult::stopped_early)
      .field("interrupted", &RunResult::interrupted)
      .field("train_seconds", &RunResult::train_seconds, "Of the steps alone.")
      .field("total_seconds", &RunResult::total_seconds)
      .field("arena_bytes", &RunResult::arena_bytes)
      .field("persistent_bytes", &RunResult::persistent_bytes)
      .field("data_bytes", &RunResult::data_bytes)
      .field("profile", &RunResult::profile)
      .field("comparison", &RunResult::comparison);
}

}  // namespace gpunn::python
