#pragma once

#include <gpunn/profile.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "execution/measurement/ceilings.hpp"
#include "execution/measurement/trace.hpp"
#include "execution/steps/compiler.hpp"
#include "execution/steps/executable.hpp"
#include "execution/streams/event.hpp"

namespace gpunn::execution {

class DeviceHold;

// Measures training steps and draws them as a timeline.
//
// After a few steps to warm up it runs a window of steps op by op, each op between two events on the stream, which are
// read only when the step is over. On an asynchronous device the host enqueues slower than small kernels run, and
// events would measure the host; so a step is enqueued behind other work that keeps the device busy for as long. Then
// follow some steps that run as a training runs them (as a captured graph where there is one), each between two events;
// then nothing more is measured but what the host does.
class Profiler {
 public:
  explicit Profiler(ProfileOptions options);
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;
  ~Profiler();

  // Measures the device's ceilings and opens its rows. The backend must outlive the next detach().
  void attach(Backend& backend);
  // Waits for the enqueued work, reads its events and releases the backend. Does nothing the second time.
  void detach();

  // Runs one training step, measured or not. Both executables are made of `program`: `executable` as a training runs
  // it, `op_by_op` without fused subgraphs. They are the same if there are no subgraphs.
  void step(Executable& executable, Executable& op_by_op, const CompiledProgram& program);

  // Rows for other streams of the device. While recording(), their owner may add spans between two of its own events,
  // both reached. `bytes` were moved; 0: unknown.
  int add_stream(const std::string& name);
  bool recording() const { return recording_; }
  // No step will be measured any more.
  bool finished() const;
  void add_span(int stream, const std::string& name, const Event& begin, const Event& end, double bytes = 0);

  // A span of the host from `start` until now. HostSpan is more convenient.
  void add_host_span(const std::string& name, std::chrono::steady_clock::time_point start);
  // A note about the whole trace.
  void note(const std::string& key, const Trace::Value& value) { trace_.note(key, value); }

  // After detach().
  ProfileReport report() const;
  // Writes the trace to the file and replaces its content.
  void write(const std::filesystem::path& file) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Op;
  double microseconds(Clock::time_point time) const;
  void describe(const CompiledProgram& program);
  void describe_device();
  double mark_seconds();
  void hold_device(double seconds);
  void begin_device_time();
  double device_microseconds(const Event& event) const;
  void warm_up(Executable& executable);
  void measured_step(Executable& executable);
  void whole_step(Executable& executable);
  void read_step();
  void read_whole_steps();
  void read_pending();
  Trace::Arguments arguments(const Op& op, double seconds) const;

  ProfileOptions options_;
  int64_t whole_steps_;  // that run as in a training
  Clock::time_point start_ = Clock::now();
  Trace trace_;
  int host_row_ = 0, device_process_ = 0, step_row_ = 0;
  int64_t host_spans_ = 0;
  Backend* backend_ = nullptr;
  std::string backend_name_, device_name_;
  std::vector<std::string> chain_;
  Ceilings ceilings_;
  std::unique_ptr<DeviceHold> hold_;

  std::vector<Op> ops_;
  std::vector<std::string> subgraphs_;  // of whole steps, in words
  double enqueue_seconds_ = 0;          // what the host takes for a step
  int64_t steps_begun_ = 0;             // of every kind
  int64_t steps_read_ = 0;              // op by op
  bool recording_ = false;

  // Device time is counted from an event that was recorded on an idle stream at a known host time.
  std::optional<Event> base_;
  double base_microseconds_ = 0;
  double device_end_ = 0;     // of the last span of the backend's stream
  std::vector<Event> marks_;  // of the step on the stream: one more than there are ops
  bool step_pending_ = false;
  std::vector<Event> whole_marks_;  // two a step
  std::vector<double> whole_seconds_;
  bool captured_ = false;
};

// A span of the host from here to the end of the scope. Does nothing without a profiler.
class HostSpan {
 public:
  HostSpan(Profiler* profiler, const char* name)
      : profiler_(profiler), name_(name), start_(std::chrono::steady_clock::now()) {}
  HostSpan(const HostSpan&) = delete;
  HostSpan& operator=(const HostSpan&) = delete;
  ~HostSpan();

 private:
  Profiler* profiler_;
  const char* name_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace gpunn::execution
