#pragma once

#include <gpunn/check.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace gpunn::conformance {

// Announces the next call, so that the report can name it if it ends the process.
using Note = std::function<void(const std::string& what)>;

// The outcome of opening a backend.
struct Opened {
  std::string backend;    // its name
  std::string device;     // and that of its device
  std::string no_device;  // why it has none; empty: it has
  std::string base = {};  // the plugin under it; empty: none
  bool fuses = false;     // it has subgraphs of its own
};

// A sequence of checks of one backend. Plugins are called only in these functions, which may run in another process, so
// that only they see each other's changes.
class Work {
 public:
  virtual ~Work() = default;
  virtual Opened open() = 0;  // throws Error where the backend can't be used
  virtual std::size_t size() const = 0;
  // Fills verdict, detail and figures; an exception is a failure.
  virtual void run(std::size_t index, CheckCase& result, const Note& note) = 0;
  virtual void close() = 0;
};

struct WorkListener {
  std::function<void(const Opened&)> opened;
  std::function<void(std::size_t index, CheckCase result)> done;  // in order; no labels
};

struct WorkLimits {
  std::chrono::milliseconds open{120'000};
  std::chrono::milliseconds check{600'000};
};

// Does the work in a child process, forked before this one has had anything to do with the plugin. A check that
// crashes, hangs or loses the device is a failed one: a fresh child goes on behind it. Returns what went wrong outside
// the checks, in opening or closing: empty, or "device_open crashed (...)". Throws the Error of open().
std::string run_in_children(Work& work, const WorkListener& listener, const WorkLimits& limits = {});

// The same here, for debuggers and sanitizers: a crash ends the process, and after a lost device every check fails.
std::string run_here(Work& work, const WorkListener& listener);

}  // namespace gpunn::conformance
