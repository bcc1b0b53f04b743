// Sleeping until another thread changes a word. std::atomic::wait calls sched_yield() first, which on a busy machine
// gives another program a whole time slice.
#pragma once

#include <atomic>
#include <cstdint>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpunn::cpu {

// Sleeps if `word` still is `value`, until wake_one(word). May return early: look at the word again.
inline void sleep_while(std::atomic<uint32_t>& word, uint32_t value) {
  static_assert(sizeof(word) == 4 && std::atomic<uint32_t>::is_always_lock_free);
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

inline void wake_one(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace gpunn::cpu
