#pragma once

#include <cstddef>
#include <memory>

namespace gpunn::serving {

// Memory for the answers of a model. Large blocks are used again: the pages of new ones would cost more than the copy
// of an answer into them. Threads may share it.
class AnswerMemory {
 public:
  AnswerMemory();
  // `bytes` that are not set to anything. The block comes back when the last pointer to it goes, which may be after the
  // AnswerMemory has gone.
  std::shared_ptr<char[]> take(std::size_t bytes);

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;
};

}  // namespace gpunn::serving
