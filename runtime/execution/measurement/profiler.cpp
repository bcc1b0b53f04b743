#include "execution/measurement/profiler.hpp"

#include <gpunn/error.hpp>
#include <gpunn/version.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/files.hpp"
#include "common/text.hpp"
#include "execution/measurement/device_hold.hpp"
#include "execution/op_text.hpp"
#include "graph/op_attributes.hpp"
#include "ops/op.hpp"

namespace gpunn::execution {

namespace {

// Steps that run as in a training. The first two bind and capture, and are not measured. The work of other streams,
// which may come once in many steps, shows only here, where the device is not held.
constexpr int64_t kBeforeWhole = 2, kWhole = 10, kWholeBesideStreams = 100;
// A long training reads back often; so much of it is kept.
constexpr int64_t kMostHostSpans = 100'000;
constexpr const char* kHow =
    "ops are enqueued one by one, each between two events on the stream, and not as the captured graph that a training "
    "launches where it can; 'training step' spans are steps as a training runs them, though one a launch";

double rate(double work, double seconds) { return seconds > 0 ? work / seconds * 1e-9 : 0; }

// A plugin's clock may be anything.
double sane(double value) { return std::isfinite(value) && value > 0 ? value : 0; }

std::string list_of(const std::vector<TensorType>& types) {
  std::vector<std::string> texts;
  for (const TensorType& type : types) texts.push_back(to_string(type));
  return join(texts, ", ");
}

}  // namespace

struct Profiler::Op {
  std::string op, name, backend, inputs, outputs, attributes;
  double flops = 0, bytes = 0;
  double seconds = 0;  // of all steps read
};

Profiler::Profiler(ProfileOptions options) : options_(std::move(options)), whole_steps_(kWhole) {
  if (options_.steps < 1 || options_.warmup < 0) {
    throw Error("a profile takes at least one step, and no less than 0 before it", ExitCode::usage);
  }
  host_row_ = trace_.add_row(trace_.add_process("host"), "training");
  trace_.note("gpunn", version());
}

Profiler::~Profiler() = default;

double Profiler::microseconds(Clock::time_point time) const {
  return std::chrono::duration<double, std::micro>(time - start_).count();
}

void Profiler::attach(Backend& backend) {
  const HostSpan span(this, "measuring the device's ceilings");
  backend_ = &backend;
  backend_name_ = backend.name();
  device_name_ = backend.info().name;
  chain_ = backend.chain();
  ceilings_ = measure_ceilings(backend);
  if (ceilings_.asynchronous) hold_ = std::make_unique<DeviceHold>(backend);
  base_.emplace(backend.make_event());
  device_process_ = trace_.add_process("device: " + device_name_);
  step_row_ = trace_.add_row(device_process_, "stream 0: compute");
  describe_device();
}

void Profiler::describe_device() {
  const gpunn_device_info& info = backend_->info();
  trace_.note("backend", join(chain_, " over "));
  trace_.note("device", device_name_);
  trace_.note("driver", std::string(info.driver));
  trace_.note("how", std::string(kHow));
  trace_.note("ceiling GB/s", ceilings_.bytes_per_second * 1e-9);
  trace_.note("ceiling GB/s is", ceilings_.copy_by + ", " + human_bytes(ceilings_.copied_bytes) +
                                     " within the device, bytes read and written");
  trace_.note("ceiling GFLOP/s", ceilings_.flops_per_second * 1e-9);
  trace_.note("ceiling GFLOP/s is", ceilings_.matmul_size == 0 ? "unknown: the backend multiplies no matrices"
                                                               : ceilings_.matmul_by + ", " +
                                                                     std::to_string(ceilings_.matmul_size) + " cubed");
  trace_.note(
      "share of ceiling is",
      std::string("the larger of FLOPs at the one ceiling and bytes at the other, over the time taken; more than "
                  "1 is possible where data comes from a cache"));
  trace_.note("device is", std::string(ceilings_.asynchronous ? "asynchronous: each step waits behind a hold, so that "
                                                                "its ops are enqueued before the first of them runs"
                                                              : "synchronous: an op is done when its call returns"));
  trace_.note("microseconds of an empty op", mark_seconds() * 1e6);
}

// The time between two events with nothing between them. It is part of every op's time.
double Profiler::mark_seconds() {
  constexpr std::size_t kMarks = 65;
  std::vector<Event> marks;
  for (std::size_t i = 0; i < kMarks; ++i) marks.push_back(backend_->make_event());
  double seconds = 0;
  for (int pass = 0; pass < 2; ++pass) {
    backend_->synchronize();
    hold_device(1e-3);
    for (Event& mark : marks) mark.record();
    backend_->synchronize();
    seconds = sane(marks.back().milliseconds_since(marks.front())) * 1e-3 / (kMarks - 1);
  }
  return seconds;
}

void Profiler::hold_device(double seconds) {
  if (hold_ != nullptr) hold_->enqueue(seconds);
}

void Profiler::describe(const CompiledProgram& program) {
  for (std::size_t i = 0; i < program.graph.nodes().size(); ++i) {
    const graph::Node& node = program.graph.nodes()[i];
    const graph::OpSignature signature = program.graph.signature(node);
    const ops::OpInfo& info = ops::op_info(node.op);
    Op op;
    op.op = info.name;
    op.name = node.name;
    op.backend = chain_[static_cast<std::size_t>(program.placements[i].level)];
    op.inputs = list_of(signature.inputs);
    op.outputs = list_of(signature.outputs);
    op.attributes = graph::attributes_text(node.op, node.attrs);
    op.flops = ops::flops_of(signature);
    op.bytes = ops::bytes_of(signature);
    ops_.push_back(std::move(op));
  }
  for (std::size_t i = 0; i <= ops_.size(); ++i) marks_.push_back(backend_->make_event());
  std::string fused;
  for (const Subgraph& subgraph : program.subgraphs.taken) {
    subgraphs_.push_back(chain_[static_cast<std::size_t>(subgraph.level)] + ": " + subgraph.name + ", " +
                         text_of(program.graph, subgraph.nodes));
    fused += (fused.empty() ? "" : "; ") + subgraphs_.back();
  }
  if (!fused.empty()) trace_.note("fused in whole steps", fused);
}

bool Profiler::finished() const {
  return backend_ == nullptr || steps_begun_ > options_.warmup + options_.steps + kBeforeWhole + whole_steps_;
}

void Profiler::step(Executable& executable, Executable& op_by_op, const CompiledProgram& program) {
  if (backend_ == nullptr) throw Error("a profiler was given a step before a backend");
  if (ops_.empty()) describe(program);
  const int64_t whole = steps_begun_ - options_.warmup - options_.steps;
  if (step_pending_) read_step();
  if (steps_begun_ < options_.warmup) {
    warm_up(op_by_op);
  } else if (whole < 0) {
    measured_step(op_by_op);
  } else if (whole < kBeforeWhole + whole_steps_) {
    whole_step(executable);
  } else {
    read_pending();
    executable.run();
  }
  ++steps_begun_;
}

// Under the same marks as a measured step, so that the host's time is known.
void Profiler::warm_up(Executable& executable) {
  const HostSpan span(this, "warm-up step");
  const auto start = Clock::now();
  executable.run_marked([&](std::size_t i) { marks_[i + 1].record(); });
  enqueue_seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
  backend_->synchronize();
}

void Profiler::begin_device_time() {
  backend_->synchronize();
  base_->record();
  // The spans drawn so far end before later ones begin.
  base_microseconds_ = std::max(microseconds(Clock::now()), device_end_);
  recording_ = true;
}

double Profiler::device_microseconds(const Event& event) const {
  const double since = event.milliseconds_since(*base_) * 1e3;
  return base_microseconds_ + (std::isfinite(since) ? since : 0);
}

void Profiler::measured_step(Executable& executable) {
  begin_device_time();
  // A third more than the host takes, and some for its scheduler.
  hold_device(enqueue_seconds_ * 4 / 3 + 100e-6);
  const auto start = Clock::now();
  marks_.front().record();
  executable.run_marked([&](std::size_t i) { marks_[i + 1].record(); });
  step_pending_ = true;
  add_host_span("enqueue step " + std::to_string(steps_begun_ + 1), start);
}

void Profiler::read_step() {
  step_pending_ = false;
  {
    const HostSpan span(this, "wait for the device");
    marks_.back().synchronize();
  }
  const std::string name = "step " + std::to_string(steps_begun_);
  const double begin = std::max(device_microseconds(marks_.front()), base_microseconds_);
  if (begin - base_microseconds_ > 0 && hold_ != nullptr) {
    trace_.add_span(step_row_, "hold", "profiler", base_microseconds_, begin - base_microseconds_,
                    {{"why", std::string("keeps the device busy until the whole step is enqueued")}});
  }
  double at = begin;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    Op& op = ops_[i];
    const double seconds = sane(marks_[i + 1].milliseconds_since(marks_[i])) * 1e-3;
    op.seconds += seconds;
    trace_.add_span(step_row_, op.name + ": " + op.op, "op", at, seconds * 1e6, arguments(op, seconds));
    at += seconds * 1e6;
  }
  trace_.add_span(step_row_, name, "step", begin, at - begin, {{"ops", static_cast<int64_t>(ops_.size())}});
  device_end_ = at;
  ++steps_read_;
}

Trace::Arguments Profiler::arguments(const Op& op, double seconds) const {
  Trace::Arguments result{{"op", op.op},           {"layer", op.name},  {"plugin", op.backend}, {"inputs", op.inputs},
                          {"outputs", op.outputs}, {"FLOPs", op.flops}, {"bytes", op.bytes}};
  if (!op.attributes.empty()) result.emplace_back("attributes", op.attributes);
  result.emplace_back("GFLOP/s", rate(op.flops, seconds));
  result.emplace_back("GB/s", rate(op.bytes, seconds));
  const double best = ceilings_.seconds_at_best(op.flops, op.bytes);
  result.emplace_back("share of ceiling", seconds > 0 ? best / seconds : 0.0);
  result.emplace_back("ceiling",
                      std::string(ceilings_.bound_by_flops(op.flops, op.bytes) ? "computing" : "moving bytes"));
  return result;
}

void Profiler::whole_step(Executable& executable) {
  const int64_t index = steps_begun_ - options_.warmup - options_.steps - kBeforeWhole;
  if (index < 0) {
    recording_ = false;
    executable.run();
    return;
  }
  if (index == 0) {
    while (std::ssize(whole_marks_) < 2 * whole_steps_) whole_marks_.push_back(backend_->make_event());
    begin_device_time();
  }
  const auto start = Clock::now();
  const auto at = static_cast<std::size_t>(2 * index);
  whole_marks_[at].record();
  executable.run();
  whole_marks_[at + 1].record();
  captured_ = executable.captured();
  add_host_span("launch step " + std::to_string(steps_begun_ + 1), start);
}

void Profiler::read_whole_steps() {
  std::size_t recorded = 0;
  while (recorded < whole_marks_.size() && whole_marks_[recorded].recorded()) ++recorded;
  if (recorded == 0) return;
  whole_marks_[recorded - 1].synchronize();
  for (std::size_t i = 0; i + 1 < recorded; i += 2) {
    const double begin = std::max(device_microseconds(whole_marks_[i]), device_end_);
    const double seconds = sane(whole_marks_[i + 1].milliseconds_since(whole_marks_[i])) * 1e-3;
    whole_seconds_.push_back(seconds);
    trace_.add_span(step_row_, "training step", "step", begin, seconds * 1e6,
                    {{"run as", std::string(captured_ ? "captured graph" : "ops one by one")}});
    device_end_ = begin + seconds * 1e6;
  }
  whole_marks_.clear();
}

void Profiler::read_pending() {
  if (step_pending_) read_step();
  read_whole_steps();
  recording_ = false;
}

void Profiler::detach() {
  if (backend_ == nullptr) return;
  Backend& backend = *std::exchange(backend_, nullptr);
  recording_ = false;
  // A device that is lost has nothing more to tell; what was read before stands.
  try {
    backend.synchronize();
    read_pending();
  } catch (const std::exception& exception) {
    trace_.note("cut short", std::string(exception.what()));
  }
  marks_.clear();
  whole_marks_.clear();
  base_.reset();
  hold_.reset();
}

int Profiler::add_stream(const std::string& name) {
  whole_steps_ = kWholeBesideStreams;
  return trace_.add_row(device_process_, name);
}

void Profiler::add_span(int stream, const std::string& name, const Event& begin, const Event& end, double bytes) {
  const double start = std::max(device_microseconds(begin), 0.0);
  const double seconds = sane(end.milliseconds_since(begin)) * 1e-3;
  Trace::Arguments arguments;
  if (bytes > 0) arguments = {{"bytes", bytes}, {"GB/s", rate(bytes, seconds)}};
  trace_.add_span(stream, name, "stream", start, seconds * 1e6, std::move(arguments));
}

void Profiler::add_host_span(const std::string& name, Clock::time_point start) {
  if (++host_spans_ > kMostHostSpans) return;
  const double from = microseconds(start);
  trace_.add_span(host_row_, name, "host", from, microseconds(Clock::now()) - from);
}

ProfileReport Profiler::report() const {
  ProfileReport report;
  report.backend = backend_name_;
  report.device = device_name_;
  report.steps = steps_read_;
  report.ceiling_gflops = ceilings_.flops_per_second * 1e-9;
  report.ceiling_gigabytes = ceilings_.bytes_per_second * 1e-9;
  report.captured = captured_;
  report.subgraphs = subgraphs_;
  if (!whole_seconds_.empty()) {
    std::vector<double> sorted = whole_seconds_;
    std::ranges::sort(sorted);
    report.whole_step_seconds = sorted[sorted.size() / 2];
  }
  if (steps_read_ == 0) return report;
  const auto steps = static_cast<double>(steps_read_);
  double total = 0;
  for (const Op& op : ops_) total += op.seconds;
  report.step_seconds = total / steps;
  for (const Op& op : ops_) {
    report.ops.push_back(
        {.op = op.op,
         .name = op.name,
         .backend = op.backend,
         .count = steps_read_,
         .seconds = op.seconds,
         .share = total > 0 ? op.seconds / total : 0,
         .flops = op.flops,
         .bytes = op.bytes,
         .gflops = rate(op.flops * steps, op.seconds),
         .gigabytes = rate(op.bytes * steps, op.seconds),
         .ceiling_share = op.seconds > 0 ? ceilings_.seconds_at_best(op.flops, op.bytes) * steps / op.seconds : 0});
  }
  std::ranges::stable_sort(report.ops, [](const ProfiledOp& a, const ProfiledOp& b) { return a.seconds > b.seconds; });
  return report;
}

void Profiler::write(const std::filesystem::path& file) const { write_atomically(file, trace_.json()); }

HostSpan::~HostSpan() {
  if (profiler_ == nullptr) return;
  try {
    profiler_->add_host_span(name_, start_);
  } catch (const std::exception&) {  // no memory: the span is left out
  }
}

}  // namespace gpunn::execution
