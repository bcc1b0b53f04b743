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

// How far the thread that trains has come: a number that rises at the same places of the program on every rank.
struct Progress {
  uint64_t meetings = 0;
  uint64_t signs = 0;     // of life elsewhere, where ranks need not do the same
  bool stepping = false;  // it takes steps, and is not where one rank may take longer than the others
  bool prepared = false;  // its first epoch, which may prepare kernels for minutes, is done
  bool operator==(const Progress&) const = default;
};

// A thread that sends a sign of life and its progress every second. Rank 0 receives those of all ranks and passes on
// what it learns; the others receive rank 0's.
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
  // Called on the watch's thread when a rank is lost, or at once if one is lost already.
  void when_lost(std::function<void()> action);
  // The training thread is at a point where it meets the other ranks.
  void arrive() noexcept { ++meetings_; }
  // It goes on at another place.
  void show_life() noexcept { ++signs_; }
  void set_stepping(bool stepping) noexcept { stepping_ = stepping; }
  // Whatever is prepared at its first use is: the rank is judged between steps too.
  void set_prepared() noexcept { prepared_ = true; }
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
    Progress progress;                       // of the rank; on rank 0, which judges by it
    Clock::time_point moved = Clock::now();  // when it last changed
    Clock::duration longest{};               // that it stayed as it was, while stepping
  };
  void work();
  void hear(std::size_t rank);
  bool take_note(std::size_t rank);
  Progress progress() const { return {meetings_, signs_, stepping_, prepared_}; }
  static void note_progress(Line& line, Progress progress);
  void judge();
  void send(std::size_t rank, Kind kind, int about, const std::string& words) noexcept;
  void lose(int rank, const std::string& words) noexcept;

  const int own_;
  const std::vector<RankInfo> ranks_;
  const std::chrono::seconds stall_;
  std::vector<Line> lines_;
  mutable std::mutex mutex_;  // of what follows
  std::optional<Loss> loss_;
  Clock::time_point lost_at_;
  std::vector<std::function<void()>> actions_;
  std::mutex sending_;
  std::atomic<bool> leaving_{false};
  std::atomic<uint64_t> meetings_{0};
  std::atomic<uint64_t> signs_{0};
  std::atomic<bool> stepping_{false};
  std::atomic<bool> prepared_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace gpunn::distributed
