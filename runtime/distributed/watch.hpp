// How a rank learns that another one has ended, hangs or is cut off, whatever it is doing itself.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distributed/rendezvous.hpp"

namespace gpunn::distributed {

// A rank that ended, and its last words.
struct Loss {
  int rank = 0;
  std::string words;
};

// A thread that says every second that this process lives, and hears the same of the others: rank 0 of all, they of
// rank 0, which passes on what it learns.
class Watch {
 public:
  Watch(int own, std::vector<RankInfo> ranks, std::vector<Socket> sockets);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  // The first rank that was lost; empty: none.
  std::optional<Loss> loss() const;
  // The same, after waiting a little for rank 0 to say whose fault it is.
  std::optional<Loss> wait_for_loss(std::chrono::milliseconds patience) const;
  // Called on the watch's thread when a rank is lost, or at once where one is.
  void when_lost(std::function<void()> action);
  // Tells all ranks that this one ends, and why.
  void fail(const std::string& words) noexcept;
  // Tells them that it ends because it is done.
  void leave() noexcept;

 private:
  enum Kind : uint32_t { kBeat = 1, kFailed = 2, kDone = 3 };
  struct Line {
    Socket socket;
    Clock::time_point heard;
    std::vector<std::byte> unread;
    bool open = false;
  };
  void work();
  void hear(std::size_t rank);
  bool take_note(std::size_t rank);
  void send(std::size_t rank, Kind kind, int about, const std::string& words) noexcept;
  void lose(int rank, const std::string& words) noexcept;

  const int own_;
  const std::vector<RankInfo> ranks_;
  std::vector<Line> lines_;
  mutable std::mutex mutex_;  // of what follows
  std::optional<Loss> loss_;
  Clock::time_point lost_at_;
  std::vector<std::function<void()>> actions_;
  std::mutex sending_;
  std::atomic<bool> leaving_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace gpunn::distributed
