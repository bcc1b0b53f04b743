#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "execution/backend.hpp"
#include "execution/measurement/profiler.hpp"
#include "execution/steps/variables.hpp"
#include "execution/streams/copy_stream.hpp"
#include "execution/streams/event.hpp"
#include "feed/batch_fill.hpp"
#include "feed/batch_loader.hpp"
#include "feed/loader_report.hpp"
#include "program/batch_ops.hpp"

namespace gpunn::training {

// Keeps the ring of a streamed split filled ahead of the step program that reads it. Three things go on at the same
// time, each on a group of batches:
//
//   loader thread   fills a pinned buffer with batches
//   copy stream     copies the other pinned buffer to the ring's group that is free
//   compute stream  trains on the ring's other group
//
// The order is kept by events: a group is computed on when it has been copied, copied over when it has been computed
// on, and its pinned buffer is filled anew when it has been copied. All calls into the backend are made by the caller's
// thread.
class BatchStream {
 public:
  static constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max() / 2;

  // Creates the variables of the type's ring. A profiler is told of the copies.
  BatchStream(execution::Backend& backend, execution::Variables& variables, const SplitType& type, BatchFill batch_fill,
              execution::Profiler* profiler = nullptr);
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;
  ~BatchStream();  // waits for both streams

  // The next step is `first`; none is asked for from `end` on. Waits for both streams.
  void seek(int64_t first, int64_t end = kNoEnd);
  // Waits for both streams; the next step is where it was.
  void drain();

  // Around a launch of so many steps: before(n), n steps onto the backend's stream, after(). A launch of more steps
  // than a group has is refused. The host is held where it is more than a group ahead of the device. Both throw what
  // went wrong in the loader.
  void before(int64_t steps = 1);
  void after();
  LoaderCounts counts() const;                                                 // since the stream was made
  int64_t steps_at_once() const { return ring_.group - next_ % ring_.group; }  // to the end of the group

 private:
  static constexpr auto kGroups = static_cast<std::size_t>(BatchRing::kGroups);

  void fill(int64_t group, std::size_t buffer);
  void start();
  void wait_for_loader(int64_t group);
  void upload_next();
  void upload_filled();
  void tell_profiler(int64_t group);
  bool may_upload() const { return uploaded_ < consumed_ + BatchRing::kGroups; }

  execution::Backend& backend_;
  const BatchFill fill_;
  const BatchRing ring_;
  const std::size_t row_bytes_;
  const std::vector<DeviceField> fields_;
  void* const device_samples_;
  void* const device_rows_;
  execution::Buffer pinned_samples_, pinned_rows_;  // laid out as the ring
  // By group modulo kGroups: when its copy begins and ends, when it has been computed on.
  std::vector<execution::Event> copying_, copied_, computed_;
  execution::CopyStream copies_;
  execution::Profiler* const profiler_;
  int profiler_row_ = 0;
  std::array<bool, kGroups> in_profile_{};  // by group modulo kGroups: whether its copy belongs into the profile

  bool running_ = false;
  int64_t next_ = 0, end_ = kNoEnd;  // steps
  int64_t launching_ = 0;            // steps before this one are launched when after() is called
  // Groups, by number: those below each have been ...
  int64_t first_ = 0;     // (the first since seek)
  int64_t uploaded_ = 0;  // put on the copy stream
  int64_t awaited_ = 0;   // waited for by the backend's stream
  int64_t released_ = 0;  // handed back to the loader
  int64_t consumed_ = 0;  // computed on, as far as the host is concerned: their event is recorded
  // Of counts(); the loader's thread adds to the first two.
  std::atomic<int64_t> samples_{0}, filling_nanoseconds_{0};
  double waited_seconds_ = 0;
  BatchLoader loader_;  // last: its thread uses the others
};

}  // namespace gpunn::training
