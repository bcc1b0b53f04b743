#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "execution/steps/program_runner.hpp"
#include "feed/batch_stream.hpp"

namespace gpunn::training {

// A step program, with the stream of its batches if the data set is streamed.
struct StreamedProgram {
  execution::RunnableProgram program;
  std::unique_ptr<BatchStream> stream = nullptr;

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
