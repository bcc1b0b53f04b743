#pragma once

#include <gpunn/model.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "serving/http/exchange.hpp"
#include "serving/models/answer_memory.hpp"
#include "serving/models/statistics.hpp"

namespace gpunn::serving {

struct BatchOptions {
  std::chrono::microseconds delay{0};    // that the first request of a batch waits for others at most
  std::size_t queue = 4096;              // requests that may wait
  int instances = 1;                     // batches that may run at the same time
  std::chrono::milliseconds warm_up{0};  // that loading a model may take longer, to have its kernels ready
};

// The result of a request: the packed outputs that it asked for, or the reason why there are none.
struct JobResult {
  int status = 200;
  std::string message = {};  // where the status is not 200
  std::vector<SharedBytes> outputs = {};
};

// The samples of a request for one of a model's inputs.
struct JobInput {
  const void* samples = nullptr;
  DType dtype = DType::u8;  // the model's, or f64 for f32
};

// A request to a model: `rows` samples for each of its inputs, in its order, which `keep` keeps alive.
struct Job {
  int64_t rows = 0;
  std::vector<JobInput> inputs;
  std::shared_ptr<const void> keep;
  std::vector<std::size_t> outputs;  // which of the model's, in the order of the result
  Clock::time_point received, queued;
  Clock::time_point deadline = Clock::time_point::max();  // it is refused where it still waits then
  std::function<bool()> abandoned;                        // whether a result would go nowhere
  std::function<void(JobResult)> done;                    // called once, on any thread
};

// Gathers requests to batches and runs them. Threads may share it.
class Batcher {
 public:
  Batcher(Model model, const BatchOptions& options, Statistics& statistics);
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;
  ~Batcher();  // refuses what waits

  // Answers at once if the request is refused: the queue is full, the device is lost, or the model is unloaded.
  void submit(Job job);
  // Runs the waiting requests and refuses new ones. Returns when all are done.
  void stop();
  bool lost() const { return lost_.load(std::memory_order_relaxed); }  // the device

 private:
  using Jobs = std::vector<Job>;

  void work();
  bool wait_for_batch(std::unique_lock<std::mutex>& lock);
  Jobs take_batch();
  void run(Jobs& jobs, std::vector<std::string>& gathered);
  void infer(Jobs& jobs, int64_t rows, std::vector<std::string>& gathered, Clock::time_point begin);
  void refuse(Job& job, Failure why, int status, const std::string& message);
  void lose(const std::string& why);

  Model model_;
  BatchOptions options_;
  Statistics& statistics_;
  AnswerMemory memory_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> queue_;
  int64_t queued_rows_ = 0;
  bool stopping_ = false;
  std::atomic<bool> lost_{false};
  std::string lost_why_;
  std::vector<std::thread> threads_;
};

}  // namespace gpunn::serving
