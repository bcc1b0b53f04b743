// What the parts of Session share.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "training/batch_stream.hpp"
#include "training/session.hpp"

namespace gpunn::training {

// A program with its kernels. Programs never run at the same time, so they share the arena. It is sized for training
// and evaluation at once; a prediction that needs more replaces it, and programs bound to the old one are bound again
// when they are next used.
struct Session::Bound {
  execution::CompiledProgram program;
  std::unique_ptr<execution::Executable> executable;
  const void* arena = nullptr;
  // Where the program has claims, and was run node by node all the same.
  std::optional<graph::MemoryPlan> op_by_op_plan;
  std::unique_ptr<execution::Executable> op_by_op;
  const void* op_by_op_arena = nullptr;
  std::unique_ptr<BatchStream> stream;  // of its batches, where the data is streamed

  // So many steps by launch(steps), each with its batch in place.
  template <class F>
  void run(int64_t count, F launch) {
    if (stream == nullptr) return launch(count);
    while (count > 0) {
      const int64_t steps = std::min(count, stream->steps_at_once());
      stream->before(steps);
      launch(steps);
      stream->after();
      count -= steps;
    }
  }
};

}  // namespace gpunn::training
