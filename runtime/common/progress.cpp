#include <gpunn/progress.hpp>

#include <mutex>
#include <utility>

#include <pthread.h>

namespace gpunn {

namespace {

// All work that goes on. Never destroyed: work may end after the last static object has gone.
struct WorkList {
  std::mutex mutex;
  std::vector<LongWork*> all;
  std::mutex ending;  // taken before `mutex`, where both are
  std::function<void(uint64_t)> ended;

  static WorkList& get() {
    static WorkList* const list = make();
    return *list;
  }

 private:
  // A child process finds the mutexes free, whatever thread held them in the parent, and no display: that is a thread.
  static WorkList* make() {
    pthread_atfork([] { get().lock(); }, [] { get().unlock(); },
                   [] {
                     get().ended = nullptr;
                     get().unlock();
                   });
    return new WorkList;
  }
  void lock() {
    ending.lock();
    mutex.lock();
  }
  void unlock() {
    mutex.unlock();
    ending.unlock();
  }
};

uint64_t next_work_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

LongWork::LongWork(std::string what, uint64_t total, WorkUnit unit)
    : id_(next_work_id()), what_(std::move(what)), unit_(unit), total_(total) {
  WorkList& list = WorkList::get();
  const std::lock_guard lock(list.mutex);
  list.all.push_back(this);
}

LongWork::~LongWork() {
  WorkList& list = WorkList::get();
  {
    const std::lock_guard lock(list.mutex);
    std::erase(list.all, this);
  }
  const std::lock_guard lock(list.ending);
  if (list.ended) list.ended(id_);
}

void when_work_ends(std::function<void(uint64_t id)> ended) {
  WorkList& list = WorkList::get();
  const std::lock_guard lock(list.ending);
  list.ended = std::move(ended);
}

void LongWork::tell(std::string detail) {
  const std::lock_guard lock(WorkList::get().mutex);
  detail_ = std::move(detail);
}

std::vector<WorkReport> long_work() {
  const auto now = std::chrono::steady_clock::now();
  WorkList& list = WorkList::get();
  const std::lock_guard lock(list.mutex);
  std::vector<WorkReport> reports;
  for (const LongWork* work : list.all) {
    reports.push_back({.id = work->id_,
                       .what = work->what_,
                       .detail = work->detail_,
                       .unit = work->unit_,
                       .done = work->done_.load(std::memory_order_relaxed),
                       .total = work->total_.load(std::memory_order_relaxed),
                       .seconds = std::chrono::duration<double>(now - work->start_).count()});
  }
  return reports;
}

}  // namespace gpunn
