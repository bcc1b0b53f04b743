#pragma once

#include <gpunn/abi.h>

#include "execution/backend.hpp"

namespace gpunn::execution {

// A mark on a stream of a backend: Backend::make_event(). Must not outlive the backend; destroyed only when what it
// marks is done.
class Event {
 public:
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  // Behind what is on the backend's stream now. A second record takes the place of the first.
  void record();
  void synchronize();  // until it is reached
  bool recorded() const { return recorded_; }
  // On the device, between two recorded events; both must be reached.
  double milliseconds_since(const Event& start) const;

 private:
  friend class Backend;
  friend class CopyStream;
  explicit Event(Backend& backend);
  Backend* backend_ = nullptr;
  gpunn_event* handle_ = nullptr;
  bool recorded_ = false;
};

}  // namespace gpunn::execution
