#include "serving/models/batcher.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace gpunn::serving {

namespace {

constexpr const char* kStopped = "the model is being unloaded";
constexpr std::size_t kSmallBatch = std::size_t{64} << 10;
constexpr std::size_t kMostShared = 4;

// The part of a batch's output that answers one request. It shares the memory of the batch, but a client that reads
// slowly must not hold much more than its own answer.
SharedBytes part_of(const std::shared_ptr<char[]>& batch, std::size_t batch_bytes, std::size_t first, std::size_t bytes,
                    AnswerMemory& memory) {
  if (batch_bytes <= std::max(kSmallBatch, kMostShared * bytes)) return {batch, {batch.get() + first, bytes}};
  std::shared_ptr<char[]> own = memory.take(bytes);
  std::memcpy(own.get(), batch.get() + first, bytes);
  const std::string_view view(own.get(), bytes);
  return {std::move(own), view};
}

// The samples of all jobs for an input, in f64 if `row` is. Numbers of f32 are widened where others are f64.
void gather(const std::vector<Job>& jobs, std::size_t which, const TensorType& row, std::string& gathered) {
  std::size_t all = 0;
  for (const Job& job : jobs) all += static_cast<std::size_t>(job.rows);
  gathered.resize(all * row.bytes());
  char* target = gathered.data();
  for (const Job& job : jobs) {
    const JobInput& input = job.inputs[which];
    const std::size_t bytes = static_cast<std::size_t>(job.rows) * row.bytes();
    if (row.dtype != DType::f64 || input.dtype == DType::f64) {
      std::memcpy(target, input.samples, bytes);
    } else {
      for (std::size_t i = 0; i < bytes / sizeof(double); ++i) {
        float number = 0;
        std::memcpy(&number, static_cast<const char*>(input.samples) + i * sizeof(float), sizeof(float));
        const auto wide = static_cast<double>(number);
        std::memcpy(target + i * sizeof(double), &wide, sizeof(double));
      }
    }
    target += bytes;
  }
}

}  // namespace

Batcher::Batcher(Model model, const BatchOptions& options, Statistics& statistics)
    : model_(std::move(model)), options_(options), statistics_(statistics) {
  for (int i = 0; i < std::max(options.instances, 1); ++i) {
    threads_.emplace_back([this] { work(); });
  }
}

Batcher::~Batcher() { stop(); }

void Batcher::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Batcher::submit(Job job) {
  job.queued = Clock::now();
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    if (lost_) {
      why = lost_why_;
    } else if (stopping_) {
      why = kStopped;
    } else if (queue_.size() >= options_.queue) {
      why = "Exceeds maximum queue size: " + std::to_string(options_.queue) + " requests wait for the model";
    } else {
      queued_rows_ += job.rows;
      queue_.push_back(std::move(job));
      statistics_.enter_queue();
    }
  }
  if (!why.empty()) return refuse(job, Failure::rejected, 503, why);
  wake_.notify_one();
}

void Batcher::work() {
  std::vector<std::string> gathered(model_.inputs().size());  // the inputs of a batch of several requests
  std::unique_lock lock(mutex_);
  while (wait_for_batch(lock)) {
    Jobs jobs = take_batch();
    lock.unlock();
    run(jobs, gathered);
    jobs.clear();  // what it held may be the last of something large
    lock.lock();
  }
}

bool Batcher::wait_for_batch(std::unique_lock<std::mutex>& lock) {
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return false;
    const auto full = [&] { return stopping_ || queue_.empty() || queued_rows_ >= model_.max_batch(); };
    if (options_.delay.count() > 0) wake_.wait_until(lock, queue_.front().queued + options_.delay, full);
    if (!queue_.empty()) return true;  // else another instance took them
  }
}

Batcher::Jobs Batcher::take_batch() {
  Jobs jobs;
  int64_t rows = 0;
  while (!queue_.empty() && rows + queue_.front().rows <= model_.max_batch()) {
    rows += queue_.front().rows;
    jobs.push_back(std::move(queue_.front()));
    queue_.pop_front();
    statistics_.leave_queue();
  }
  queued_rows_ -= rows;
  if (!queue_.empty()) wake_.notify_one();
  return jobs;
}

void Batcher::refuse(Job& job, Failure why, int status, const std::string& message) {
  statistics_.add_failure(why, Clock::now() - job.received);
  job.done({.status = status, .message = message});
}

void Batcher::run(Jobs& jobs, std::vector<std::string>& gathered) {
  const Clock::time_point begin = Clock::now();
  std::erase_if(jobs, [&](Job& job) {
    if (job.abandoned && job.abandoned()) {
      refuse(job, Failure::canceled, 499, "the client has closed the connection");
      return true;
    }
    if (begin > job.deadline) {
      refuse(job, Failure::rejected, 503, "Request timeout expired: it waited too long for its batch");
      return true;
    }
    return false;
  });
  if (jobs.empty()) return;
  int64_t rows = 0;
  for (const Job& job : jobs) rows += job.rows;
  int status = 500;
  std::string failure;
  try {
    return infer(jobs, rows, gathered, begin);
  } catch (const DeviceLostError& error) {
    status = 503;
    failure = error.what();
    lose(failure);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  for (Job& job : jobs) {
    if (job.done) refuse(job, Failure::backend, status, failure);
  }
}

void Batcher::infer(Jobs& jobs, int64_t rows, std::vector<std::string>& gathered, Clock::time_point begin) {
  const std::vector<ModelTensor>& tensors = model_.inputs();
  std::vector<Shape> input_shapes;
  for (const ModelTensor& input : tensors) input_shapes.push_back(batch_shape(input.row.shape, rows));
  std::vector<ArrayView> inputs;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool wide = std::ranges::any_of(jobs, [&](const Job& job) { return job.inputs[i].dtype == DType::f64; });
    const DType type = wide ? DType::f64 : tensors[i].row.dtype;
    const void* samples = jobs.front().inputs[i].samples;
    if (jobs.size() > 1) {
      gather(jobs, i, TensorType{type, tensors[i].row.shape}, gathered[i]);
      samples = gathered[i].data();
    }
    inputs.push_back({.name = tensors[i].name, .dtype = type, .shape = input_shapes[i], .data = samples});
  }
  std::vector<Shape> shapes;
  std::vector<std::size_t> wanted;
  for (const Job& job : jobs) wanted.insert(wanted.end(), job.outputs.begin(), job.outputs.end());
  std::ranges::sort(wanted);
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  for (const std::size_t output : wanted) shapes.push_back(batch_shape(model_.outputs()[output].row.shape, rows));
  std::vector<MutableArrayView> outputs;
  std::vector<std::shared_ptr<char[]>> batch(model_.outputs().size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const ModelTensor& tensor = model_.outputs()[wanted[i]];
    std::shared_ptr<char[]>& values = batch[wanted[i]];
    values = memory_.take(static_cast<std::size_t>(rows) * tensor.row.bytes());
    outputs.push_back({.name = tensor.name, .dtype = tensor.row.dtype, .shape = shapes[i], .data = values.get()});
  }
  const Clock::time_point ready = Clock::now();
  model_.run(inputs, outputs);
  const Clock::time_point ran = Clock::now();
  std::vector<JobResult> results(jobs.size());
  std::size_t first = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto count = static_cast<std::size_t>(jobs[i].rows);
    for (const std::size_t output : jobs[i].outputs) {
      const std::size_t bytes = model_.outputs()[output].row.bytes();
      results[i].outputs.push_back(
          part_of(batch[output], static_cast<std::size_t>(rows) * bytes, first * bytes, count * bytes, memory_));
    }
    first += count;
  }
  const Clock::time_point end = Clock::now();
  statistics_.add_execution(rows, ready - begin, ran - ready, end - ran, jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    statistics_.add_success({.queue = begin - jobs[i].queued, .total = end - jobs[i].received});
    std::exchange(jobs[i].done, nullptr)(std::move(results[i]));
  }
}

// Nothing can be done on the device any more: what waits is refused, too.
void Batcher::lose(const std::string& why) {
  std::deque<Job> waiting;
  {
    const std::lock_guard lock(mutex_);
    lost_why_ = "the model's device is lost: " + why;
    lost_ = true;
    waiting.swap(queue_);
    queued_rows_ = 0;
  }
  for (Job& job : waiting) {
    statistics_.leave_queue();
    refuse(job, Failure::backend, 503, lost_why_);
  }
}

}  // namespace gpunn::serving
