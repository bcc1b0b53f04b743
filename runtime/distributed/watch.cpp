#include "distributed/watch.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/parse_number.hpp"

namespace gpunn::distributed {

namespace {

constexpr std::chrono::seconds kBeatEvery{1};
constexpr std::chrono::milliseconds kTick{250};
// A process that is stopped, or whose machine is cut off, says nothing; one that computes beats from this thread.
constexpr std::chrono::seconds kSilence{8};
// Ranks wait at a meeting for one whose training thread hangs, while this thread of it beats on. Steps that take longer
// than that, on all ranks, have shown it by then.
constexpr int kStallSeconds = 12;
constexpr int kStallFactor = 4;
// Between steps ranks may differ more: in the time that an evaluation takes them, and by what rank 0 alone writes,
// sends and has the calling program do at an epoch's end.
constexpr int kBetweenSteps = 4;
constexpr int kFirstRankBetweenSteps = 50;
// All of them may wait for their data, say.
constexpr int kAtOneMeeting = 4;
// What the rest of the process is given to end by itself once another rank is lost.
constexpr std::chrono::seconds kGrace{8};
constexpr std::size_t kMostWords = 2000;

struct Note {
  uint32_t kind;
  int32_t about;
  uint32_t length;
};

std::chrono::seconds stall_of_environment() {
  const char* const given = std::getenv("GPUNN_STALL_SECONDS");  // NOLINT(concurrency-mt-unsafe)
  if (given == nullptr) return std::chrono::seconds(kStallSeconds);
  if (const std::optional<int> seconds = parse_number<int>(given); seconds && *seconds > 0) {
    return std::chrono::seconds(*seconds);
  }
  throw Error("GPUNN_STALL_SECONDS is '" + std::string(given) + "'; expected a whole number of seconds",
              ExitCode::usage);
}

}  // namespace

Watch::Watch(int own, std::vector<RankInfo> ranks, std::vector<Socket> sockets)
    : own_(own), ranks_(std::move(ranks)), stall_(stall_of_environment()) {
  for (Socket& socket : sockets) {
    const bool open = static_cast<bool>(socket);
    Line line;
    line.socket = std::move(socket);
    line.heard = Clock::now();
    line.open = open;
    lines_.push_back(std::move(line));
  }
  // Signals are for the threads that were there before.
  sigset_t all, former;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &former);
  thread_ = std::thread([this] { work(); });
  ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

Watch::~Watch() {
  leaving_ = true;
  thread_.join();
}

std::optional<Loss> Watch::loss() const {
  const std::lock_guard lock(mutex_);
  return loss_;
}

std::optional<Loss> Watch::wait_for_loss(std::chrono::milliseconds patience) const {
  const auto deadline = Clock::now() + patience;
  while (true) {
    if (std::optional<Loss> found = loss()) return found;
    if (Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(kTick / 10);
  }
}

void Watch::when_lost(std::function<void()> action) {
  {
    const std::lock_guard lock(mutex_);
    if (!loss_) return actions_.push_back(std::move(action));
  }
  action();
}

void Watch::fail(const std::string& words) noexcept {
  // What this rank learnt of another's end is no news.
  if (loss()) return;
  for (std::size_t r = 0; r < lines_.size(); ++r) send(r, kFailed, own_, words);
}

void Watch::leave() noexcept {
  for (std::size_t r = 0; r < lines_.size(); ++r) send(r, kDone, own_, "");
}

void Watch::send(std::size_t rank, Kind kind, int about, const std::string& words) noexcept {
  const std::lock_guard lock(sending_);
  const Line& line = lines_[rank];
  if (!line.socket) return;
  const std::size_t length = std::min(words.size(), kMostWords);
  std::vector<std::byte> bytes(sizeof(Note) + length);
  const Note note{.kind = kind, .about = about, .length = static_cast<uint32_t>(length)};
  std::memcpy(bytes.data(), &note, sizeof(note));
  std::memcpy(bytes.data() + sizeof(note), words.data(), length);
  line.socket.send_all(bytes, Clock::now() + kTick);
}

void Watch::lose(int rank, const std::string& words) noexcept {
  std::vector<std::function<void()>> actions;
  {
    const std::lock_guard lock(mutex_);
    if (loss_) return;
    loss_ = Loss{rank, words};
    lost_at_ = Clock::now();
    actions.swap(actions_);
  }
  for (const std::function<void()>& action : actions) action();
  if (own_ != 0) return;
  for (std::size_t r = 0; r < lines_.size(); ++r) {
    if (static_cast<int>(r) != rank && lines_[r].open) send(r, kFailed, rank, words);
  }
}

// The next whole note of a line; false: there is none.
bool Watch::take_note(std::size_t rank) {
  Line& line = lines_[rank];
  Note note{};
  if (line.unread.size() < sizeof(note)) return false;
  std::memcpy(&note, line.unread.data(), sizeof(note));
  const std::size_t end = sizeof(note) + std::min<std::size_t>(note.length, kMostWords);
  if (line.unread.size() < end) return false;
  const std::string words(reinterpret_cast<const char*>(line.unread.data()) + sizeof(note), end - sizeof(note));
  line.unread.erase(line.unread.begin(), line.unread.begin() + static_cast<std::ptrdiff_t>(end));
  if (note.kind == kDone) line.open = false;
  if (note.kind == kBeat) {
    char* end_of_meetings = nullptr;
    note_progress(line, {.meetings = std::strtoull(words.c_str(), &end_of_meetings, 10),
                         .signs = std::strtoull(end_of_meetings, nullptr, 10),
                         .stepping = words.find("stepping") != std::string::npos,
                         .prepared = words.find("prepared") != std::string::npos});
  }
  const bool known = note.about >= 0 && note.about < static_cast<int>(ranks_.size());
  if (note.kind == kFailed && known) lose(note.about, words);
  return true;
}

void Watch::hear(std::size_t rank) {
  Line& line = lines_[rank];
  std::byte room[4096];
  const ssize_t got = retried([&] { return ::recv(line.socket.get(), room, sizeof(room), MSG_DONTWAIT); });
  if (got > 0) {
    line.heard = Clock::now();
    line.unread.insert(line.unread.end(), room, room + got);
    while (take_note(rank)) {
    }
  } else if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
    line.open = false;
    lose(static_cast<int>(rank), "it ended without a word: it was killed, or its machine went down");
  }
}

void Watch::note_progress(Line& line, Progress progress) {
  const auto now = Clock::now();
  if (progress != line.progress) {
    if (line.progress.stepping && progress.stepping) line.longest = std::max(line.longest, now - line.moved);
    line.moved = now;
  }
  line.progress = progress;
}

// Rank 0 looks for a rank that others have been waiting for too long, and for ranks that all wait at one meeting: one
// of them hangs inside it.
void Watch::judge() {
  note_progress(lines_[0], progress());
  const auto now = Clock::now();
  uint64_t fewest = lines_[0].progress.meetings, farthest = fewest;
  for (const Line& line : lines_) {
    fewest = std::min(fewest, line.progress.meetings);
    farthest = std::max(farthest, line.progress.meetings);
  }
  Clock::time_point since = now;  // when the first rank came so far
  Clock::duration longest{};
  for (const Line& line : lines_) {
    if (line.progress.meetings == farthest) since = std::min(since, line.moved);
    longest = std::max(longest, line.longest);
  }
  const auto usual = std::max<Clock::duration>(stall_, kStallFactor * longest);
  const auto seconds = [now](Clock::time_point from) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now - from).count()) + " s";
  };
  for (std::size_t r = 0; fewest < farthest && r < lines_.size(); ++r) {
    const Line& line = lines_[r];
    if (line.progress.meetings == farthest || (!line.progress.stepping && !line.progress.prepared)) continue;
    const auto patience = usual * (line.progress.stepping ? 1 : r == 0 ? kFirstRankBetweenSteps : kBetweenSteps);
    if (now - std::max(since, line.moved) < patience) continue;
    return lose(static_cast<int>(r),
                "its training hangs: it lives, and other ranks have been waiting for it for " + seconds(line.moved));
  }
  const auto last = std::ranges::max_element(lines_, {}, &Line::moved);
  if (fewest < farthest || now - last->moved < usual * kAtOneMeeting) return;
  if (!std::ranges::all_of(lines_, [](const Line& line) { return line.progress.stepping; })) return;
  lose(static_cast<int>(last - lines_.begin()), "its training or that of another rank hangs: for " +
                                                    seconds(last->moved) +
                                                    " all have been at one meeting, to which it came last");
}

void Watch::work() {
  Clock::time_point next_beat = Clock::now();
  while (!leaving_) {
    if (own_ == 0) judge();
    if (Clock::now() >= next_beat) {
      const Progress now = progress();
      const std::string words = std::to_string(now.meetings) + " " + std::to_string(now.signs) +
                                (now.stepping ? " stepping" : "") + (now.prepared ? " prepared" : "");
      for (std::size_t r = 0; r < lines_.size(); ++r) {
        if (lines_[r].open) send(r, kBeat, own_, words);
      }
      next_beat = Clock::now() + kBeatEvery;
    }
    std::vector<pollfd> wanted;
    std::vector<std::size_t> who;
    for (std::size_t r = 0; r < lines_.size(); ++r) {
      if (!lines_[r].open) continue;
      wanted.push_back({.fd = lines_[r].socket.get(), .events = POLLIN, .revents = 0});
      who.push_back(r);
    }
    const auto before = Clock::now();
    ::poll(wanted.data(), wanted.size(), static_cast<int>(kTick.count()));
    // This process itself was stopped, or the machine slept: what the others said in that time is still to be read.
    const bool slept = Clock::now() - before > kSilence / 2;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      Line& line = lines_[who[i]];
      if (wanted[i].revents != 0) hear(who[i]);
      if (slept) line.heard = Clock::now();
      if (line.open && Clock::now() - line.heard > kSilence) {
        line.open = false;
        lose(static_cast<int>(who[i]), "nothing was heard of it for " + std::to_string(kSilence.count()) +
                                           " s: it hangs, was stopped, or is cut off the network");
      }
    }
    const std::lock_guard lock(mutex_);
    if (loss_ && Clock::now() - lost_at_ > kGrace) {
      const std::string text = "gpunn: " + rank_text(loss_->rank, ranks_) + " ended: " + loss_->words + "\n" +
                               rank_text(own_, ranks_) + " did not stop by itself, and ends\n";
      write_all(STDERR_FILENO, text);
      ::_exit(static_cast<int>(ExitCode::failed));
    }
  }
}

}  // namespace gpunn::distributed
