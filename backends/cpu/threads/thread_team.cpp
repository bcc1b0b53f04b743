#include "threads/thread_team.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <vector>

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <strings.h>

#include "threads/futex.hpp"

namespace gpunn::cpu {
namespace {

using std::chrono::microseconds;

// A step's gaps between two loops that need a thread are shorter.
constexpr microseconds kPatience{200};
// With other programs on the processors.
constexpr microseconds kPatienceInACrowd{2};
// Between two looks at the clock that follow each other: another program had the processor, for a time slice.
constexpr microseconds kStopped{500};
constexpr std::chrono::milliseconds kCrowdedFor{20};
constexpr int kPausesPerLook = 16;

// Bits of Share::next that hold the task. The others count loops, twice: enough for years.
constexpr int kTaskBits = 20;
constexpr int64_t kMostTasks = (int64_t{1} << kTaskBits) - 1;

std::atomic<ThreadTeam*> process_team{nullptr};

// Whether the user wishes that idle threads sleep at once.
bool asked_to_be_passive() {
  const char* policy = std::getenv("OMP_WAIT_POLICY");
  return policy != nullptr && strcasecmp(policy, "passive") == 0;
}

// Binds a worker to its place where the user has OpenMP bind threads (OMP_PROC_BIND). OpenMP has bound the thread that
// loaded it then, whose only processor the workers would inherit.
void bind_as_openmp_does(pthread_t thread, int worker) {
  const int places = omp_get_proc_bind() == omp_proc_bind_false ? 0 : omp_get_num_places();
  if (places == 0) return;
  std::vector<int> processors(static_cast<std::size_t>(omp_get_place_num_procs(worker % places)));
  omp_get_place_proc_ids(worker % places, processors.data());
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  pthread_setaffinity_np(thread, sizeof(set), &set);
}

// Tells the processor that this is a spinning loop.
inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadTeam& ThreadTeam::of_process() {
  ThreadTeam* team = process_team.load(std::memory_order_acquire);
  if (team != nullptr) return *team;
  // The child of a fork has none of the workers, and perhaps half a loop of another thread's.
  static const int registered = pthread_atfork(nullptr, nullptr, [] { process_team.store(nullptr); });
  static_cast<void>(registered);
  std::unique_ptr<ThreadTeam> mine(new ThreadTeam);
  if (process_team.compare_exchange_strong(team, mine.get())) return *mine.release();
  return *team;
}

ThreadTeam::ThreadTeam() : processors_(omp_get_num_procs()), passive_(asked_to_be_passive()) {}

void ThreadTeam::run(int threads, int64_t tasks, Body body, const void* context) {
  threads = static_cast<int>(std::min<int64_t>({threads, tasks, kMostThreads}));
  Slot* slot = threads > 1 ? take_slot() : nullptr;
  if (slot == nullptr) {
    for (int64_t task = 0; task < tasks; ++task) body(context, task, 0);
    return;
  }
  if (workers() < threads - 1) start_workers(threads - 1);
  for (int64_t first = 0; first < tasks; first += kMostTasks) {
    Loop loop;
    loop.body = body;
    loop.context = context;
    loop.first = first;
    loop.tasks = std::min(tasks - first, kMostTasks);
    loop.places = static_cast<int>(std::min<int64_t>(threads, loop.tasks));
    run_loop(*slot, loop);
  }
  slot->taken.store(false, std::memory_order_release);
}

// A free slot, or null. The first slots first: workers look at the used ones alone.
ThreadTeam::Slot* ThreadTeam::take_slot() {
  for (int i = 0; i < kSlots; ++i) {
    Slot* slot = slots_[i].load(std::memory_order_acquire);
    if (slot == nullptr) {
      auto made = std::make_unique<Slot>();
      made->taken.store(true, std::memory_order_relaxed);
      if (slots_[i].compare_exchange_strong(slot, made.get())) {
        used_slots_.fetch_add(1);
        return made.release();
      }
    }
    if (!slot->taken.load(std::memory_order_relaxed) && !slot->taken.exchange(true, std::memory_order_acquire)) {
      return slot;
    }
  }
  return nullptr;
}

// Starts as many as the system allows: a loop gets along with any number.
void ThreadTeam::start_workers(int count) {
  const std::lock_guard lock(starting_);
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    while (workers() < count) {
      const int place = workers() + 1;
      std::thread thread([this, place] { work(place); });
      pthread_setname_np(thread.native_handle(), "gpunn cpu team");
      bind_as_openmp_does(thread.native_handle(), place);
      thread.detach();
      workers_.store(place);
    }
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ThreadTeam::run_loop(Slot& slot, const Loop& what) {
  Loop loop = what;
  loop.sequence = slot.sequence.load(std::memory_order_relaxed) + 1;
  // Each of these is a release, and behind it the even number: who reads one of them and then the number sees that the
  // loop before is over.
  slot.body.store(loop.body, std::memory_order_release);
  slot.context.store(loop.context, std::memory_order_release);
  slot.first.store(loop.first, std::memory_order_release);
  slot.tasks.store(loop.tasks, std::memory_order_release);
  slot.places.store(loop.places, std::memory_order_release);
  slot.unfinished.store(static_cast<uint32_t>(loop.tasks), std::memory_order_relaxed);
  slot.sequence.store(loop.sequence);
  wake_next(0, loop.places);

  uint32_t done = 0;
  for (int share = 0; share < loop.places; ++share) done += run_tasks(slot, loop, share, 0);
  if (slot.unfinished.fetch_sub(done, std::memory_order_acq_rel) != done) wait_for(slot);
  slot.sequence.store(loop.sequence + 1, std::memory_order_release);
}

void ThreadTeam::wait_for(Slot& slot) {
  if (spin_until([&slot] { return slot.unfinished.load(std::memory_order_acquire) == 0; })) return;
  slot.caller_sleeps.store(true);
  while (const uint32_t unfinished = slot.unfinished.load()) sleep_while(slot.unfinished, unfinished);
  slot.caller_sleeps.store(false, std::memory_order_relaxed);
}

void ThreadTeam::finish(Slot& slot, uint32_t tasks) {
  if (tasks == 0) return;
  // Behind the last task the slot may already hold another loop, whose caller may be woken once too often.
  if (slot.unfinished.fetch_sub(tasks) == tasks && slot.caller_sleeps.load()) wake_one(slot.unfinished);
}

void ThreadTeam::work(int place) {
  std::array<uint64_t, kSlots> seen{};
  for (;;) {
    if (join_any(place, seen)) continue;
    if (!spin_until([&] { return any_open(place, seen); })) sleep(place, seen);
  }
}

bool ThreadTeam::any_open(int place, const std::array<uint64_t, kSlots>& seen) const {
  const int used = used_slots_.load(std::memory_order_relaxed);
  for (int i = 0; i < used; ++i) {
    const Slot* slot = slots_[i].load(std::memory_order_acquire);
    if (slot == nullptr) continue;
    const uint64_t sequence = slot->sequence.load();
    if (sequence % 2 == 1 && sequence != seen[i] && slot->places.load(std::memory_order_relaxed) > place) return true;
  }
  return false;
}

// Works on each open loop that has a place for this worker, once; whether there was any.
bool ThreadTeam::join_any(int place, std::array<uint64_t, kSlots>& seen) {
  bool any = false;
  const int used = used_slots_.load(std::memory_order_acquire);
  for (int i = 0; i < used; ++i) {
    Slot* slot = slots_[i].load(std::memory_order_acquire);
    Loop loop;
    if (slot == nullptr || !open_loop(*slot, loop) || loop.sequence == seen[i] || place >= loop.places) continue;
    seen[i] = loop.sequence;
    any = true;
    wake_next(place, loop.places);
    finish(*slot, run_tasks(*slot, loop, place, place));
    uint32_t taken_over = 0;
    for (int k = 1; k < loop.places; ++k) {
      taken_over += run_tasks(*slot, loop, (place + k) % loop.places, place);
    }
    finish(*slot, taken_over);
  }
  return any;
}

bool ThreadTeam::open_loop(const Slot& slot, Loop& loop) {
  loop.sequence = slot.sequence.load(std::memory_order_acquire);
  if (loop.sequence % 2 == 0) return false;
  loop.body = slot.body.load(std::memory_order_acquire);
  loop.context = slot.context.load(std::memory_order_acquire);
  loop.first = slot.first.load(std::memory_order_acquire);
  loop.tasks = slot.tasks.load(std::memory_order_acquire);
  loop.places = slot.places.load(std::memory_order_acquire);
  return slot.sequence.load(std::memory_order_acquire) == loop.sequence;
}

// The next task of a share, or -1 if none is left.
//
// A worker may come here long after its loop is over, and the slot may hold a later one. It can't take a task then: a
// loop ends when all of its tasks are taken, and a share that later loops used has a greater number.
int64_t ThreadTeam::take_task(Slot& slot, const Loop& loop, int share) {
  std::atomic<uint64_t>& next = slot.shares[share].next;
  const auto end = static_cast<uint64_t>(loop.share_begin(share + 1));
  uint64_t before = next.load(std::memory_order_relaxed);
  for (;;) {
    const uint64_t sequence = before >> kTaskBits;
    if (sequence > loop.sequence) return -1;
    // A share that an earlier loop used is one that no thread has begun in this loop.
    const uint64_t task =
        sequence == loop.sequence ? before & kMostTasks : static_cast<uint64_t>(loop.share_begin(share));
    if (task >= end) return -1;
    const uint64_t after = loop.sequence << kTaskBits | (task + 1);
    if (next.compare_exchange_weak(before, after, std::memory_order_relaxed)) return static_cast<int64_t>(task);
  }
}

uint32_t ThreadTeam::run_tasks(Slot& slot, const Loop& loop, int share, int place) {
  uint32_t done = 0;
  for (int64_t task = take_task(slot, loop, share); task >= 0; task = take_task(slot, loop, share)) {
    loop.body(loop.context, loop.first + task, place);
    ++done;
  }
  return done;
}

// Wakes the two workers behind `place` in a binary tree, so that no thread has to wake all the others. Never more than
// there are processors: the threads that are awake take over the work of those that are not.
void ThreadTeam::wake_next(int place, int places) {
  if (sleeping_.load() == 0) return;
  for (int child = 2 * place + 1; child <= 2 * place + 2 && child < places; ++child) {
    if (awake() >= processors_) return;
    std::atomic<uint32_t>& sleeps = worker_[child].sleeps;
    if (sleeps.load() == 0 || sleeps.exchange(0) == 0) continue;
    sleeping_.fetch_sub(1);
    wake_one(sleeps);
  }
}

void ThreadTeam::sleep(int place, const std::array<uint64_t, kSlots>& seen) {
  std::atomic<uint32_t>& sleeps = worker_[place].sleeps;
  sleeps.store(1);
  sleeping_.fetch_add(1);
  // Who opened a loop before it saw the two lines above is seen here.
  if (any_open(place, seen)) {
    if (sleeps.exchange(0) == 1) sleeping_.fetch_sub(1);
    return;
  }
  while (sleeps.load() == 1) sleep_while(sleeps, 1);
}

template <class Condition>
bool ThreadTeam::spin_until(const Condition& condition) {
  const Clock::time_point begin = Clock::now();
  for (Clock::time_point last = begin;;) {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (condition()) return true;
      pause_briefly();
    }
    const Clock::time_point now = Clock::now();
    if (now - last > kStopped) {
      crowded_until_.store((now + kCrowdedFor).time_since_epoch().count(), std::memory_order_relaxed);
    }
    last = now;
    if (now - begin > patience(now)) return condition();
  }
}

ThreadTeam::Clock::duration ThreadTeam::patience(Clock::time_point now) const {
  const bool crowded = passive_ || awake() > processors_ ||
                       now.time_since_epoch().count() < crowded_until_.load(std::memory_order_relaxed);
  return crowded ? kPatienceInACrowd : kPatience;
}

// Threads that work or spin, if there is one caller.
int ThreadTeam::awake() const { return 1 + workers() - sleeping_.load(std::memory_order_relaxed); }

}  // namespace gpunn::cpu
