#include <gpunn/plan.hpp>
#include <gpunn/summary.hpp>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errands/errand.hpp"
#include "values/arrays.hpp"
#include "values/record.hpp"
#include "values/settings.hpp"

namespace gpunn::python {

namespace {

void bind_step_plan(nb::module_& module) {
  Record<PlannedTensor>(module, "PlannedTensor", "A tensor of a training step, and where it lies.")
      .field("name", &PlannedTensor::name)
      .computed(
          "type", [](const PlannedTensor& t) { return to_string(t.type); }, "\"f32[128, 10]\".")
      .field("storage", &PlannedTensor::storage)
      .field("offset", &PlannedTensor::offset, "In its storage, in bytes.")
      .field("bytes", &PlannedTensor::bytes)
      .field("first_op", &PlannedTensor::first_op)
      .field("last_op", &PlannedTensor::last_op);
  Record<PlannedOp>(module, "PlannedOp", "An op of a training step.")
      .field("op", &PlannedOp::op)
      .field("name", &PlannedOp::name)
      .field("backend", &PlannedOp::backend)
      .field("kernel", &PlannedOp::kernel, "The wanted one; empty: the backend's own choice.")
      .field("refusal", &PlannedOp::refusal, "Why the plugins above `backend` do not run it.")
      .field("attributes", &PlannedOp::attributes)
      .field("inputs", &PlannedOp::inputs)
      .field("outputs", &PlannedOp::outputs)
      .field("workspace_bytes", &PlannedOp::workspace_bytes)
      .field("flops", &PlannedOp::flops)
      .field("subgraph", &PlannedOp::subgraph, "Its fused subgraph, an index; -1: none.");
  Record<PlannedSubgraph>(module, "PlannedSubgraph", "Consecutive ops that a plugin fuses.")
      .field("name", &PlannedSubgraph::name)
      .field("backend", &PlannedSubgraph::backend)
      .field("first_op", &PlannedSubgraph::first_op)
      .field("last_op", &PlannedSubgraph::last_op)
      .field("workspace_bytes", &PlannedSubgraph::workspace_bytes);
  Record<PlanReport>(module, "PlanReport", "A training step as it would run.")
      .field("notice", &PlanReport::notice)
      .field("data", &PlanReport::data)
      .field("start", &PlanReport::start)
      .field("backend", &PlanReport::backend)
      .field("chain", &PlanReport::chain, "The backend and its bases.")
      .field("ops", &PlanReport::ops)
      .field("subgraphs", &PlanReport::subgraphs)
      .field("not_fused", &PlanReport::not_fused)
      .field("tensors", &PlanReport::tensors)
      .field("parameters", &PlanReport::parameters)
      .field("trainable", &PlanReport::trainable)
      .field("arena_bytes", &PlanReport::arena_bytes)
      .field("persistent_bytes", &PlanReport::persistent_bytes)
      .field("data_bytes", &PlanReport::data_bytes)
      .field("residency", &PlanReport::residency)
      .field("peak_bytes", &PlanReport::peak_bytes);
}

void bind_schedule(nb::module_& module) {
  Record<SchedulePoint>(module, "SchedulePoint", "A step at which a learning rate begins, turns or ends.")
      .field("step", &SchedulePoint::step, "Counts from 1.")
      .field("epoch", &SchedulePoint::epoch)
      .field("learning_rate", &SchedulePoint::learning_rate)
      .field("what", &SchedulePoint::what);
  Record<ScheduleReport>(module, "ScheduleReport", "The learning rates that a training will have.")
      .field("notice", &ScheduleReport::notice)
      .field("experiment", &ScheduleReport::experiment)
      .field("type", &ScheduleReport::type)
      .field("steps_per_epoch", &ScheduleReport::steps_per_epoch)
      .field("steps", &ScheduleReport::steps)
      .field("reacts", &ScheduleReport::reacts)
      .field("points", &ScheduleReport::points)
      .of()
      .def_ro("learning_rates", &ScheduleReport::learning_rates, "Of each step.");
}

void bind_summary(nb::module_& module) {
  Record<SummaryLayer>(module, "SummaryLayer", "A layer of a model. FLOPs are of one batch.")
      .field("name", &SummaryLayer::name)
      .field("type", &SummaryLayer::type)
      .computed(
          "output", [](const SummaryLayer& l) { return sizes_of(l.output); }, "The shape of a batch.")
      .field("parameters", &SummaryLayer::parameters)
      .field("trainable", &SummaryLayer::trainable)
      .field("buffers", &SummaryLayer::buffers)
      .field("forward_flops", &SummaryLayer::forward_flops)
      .field("step_flops", &SummaryLayer::step_flops);
  Record<SummaryReport>(module, "SummaryReport", "What a model is made of, and what training it takes.")
      .field("model", &SummaryReport::model)
      .field("data", &SummaryReport::data)
      .field("start", &SummaryReport::start)
      .field("notice", &SummaryReport::notice)
      .computed(
          "sample", [](const SummaryReport& s) { return sizes_of(s.sample); }, "(C, H, W) or (features,).")
      .field("batch_size", &SummaryReport::batch_size)
      .field("samples_per_step", &SummaryReport::samples_per_step)
      .field("layers", &SummaryReport::layers)
      .field("parameters", &SummaryReport::parameters)
      .field("trainable", &SummaryReport::trainable)
      .field("buffers", &SummaryReport::buffers)
      .field("forward_flops", &SummaryReport::forward_flops)
      .field("step_flops", &SummaryReport::step_flops)
      .field("parameter_bytes", &SummaryReport::parameter_bytes)
      .field("gradient_bytes", &SummaryReport::gradient_bytes)
      .field("optimizer_bytes", &SummaryReport::optimizer_bytes)
      .field("activation_bytes", &SummaryReport::activation_bytes)
      .field("total_bytes", &SummaryReport::total_bytes);
}

}  // namespace

void bind_plan(nb::module_& module) {
  bind_step_plan(module);
  bind_schedule(module);
  bind_summary(module);
  module.def(
      "plan",
      [](const Experiment& experiment) { return on_errand(false, [experiment](Errand&) { return plan(experiment); }); },
      nb::arg("experiment"), "Plans a training step without running it.");
  module.def(
      "plan_schedule",
      [](const Experiment& experiment) {
        return on_errand(false, [experiment](Errand&) { return plan_schedule(experiment); });
      },
      nb::arg("experiment"), "The learning rates that a training will have.");
  module.def(
      "summary",
      [](const std::filesystem::path& file, const Settings& settings, const Shape& input) {
        const SummaryRequest request{.file = file, .overrides = overrides_of(settings), .input = input};
        return on_errand(false, [request](Errand&) { return summarize(request); });
      },
      nb::arg("file"), nb::arg("settings"), nb::arg("input"), "What a model is made of. No device is touched.");
}

}  // namespace gpunn::python
