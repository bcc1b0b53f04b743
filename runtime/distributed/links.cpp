#include "distributed/links.hpp"

#include <gpunn/ranks.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace gpunn::distributed {

namespace {

constexpr int kTickMilliseconds = 100;  // how often the watch is asked while nothing comes
constexpr std::chrono::milliseconds kWhoseFault{2500};
// Ranks that take short steps meet every millisecond. To wake a thread takes longer than the message does.
constexpr std::chrono::microseconds kAwake{200};

// In front of each message: messages of ranks that are out of step are told apart from garbage.
struct Header {
  uint64_t transfer;
  uint64_t bytes;
};

// A message on its way: header and content as one sequence of bytes.
struct Flow {
  int rank = 0;
  Header header{};
  std::byte* content = nullptr;
  std::size_t size = 0;
  std::size_t done = 0;  // of both
  bool finished() const { return done == sizeof(Header) + size; }

  // What is left of it.
  std::array<iovec, 2> rest() {
    auto* const head = reinterpret_cast<std::byte*>(&header);
    const std::size_t of_header = std::min(done, sizeof(Header));
    const std::size_t of_content = done - of_header;
    return {iovec{head + of_header, sizeof(Header) - of_header}, iovec{content + of_content, size - of_content}};
  }
};

}  // namespace

Links::Links(int own, std::vector<RankInfo> ranks, std::vector<Socket> sockets, Watch& watch)
    : own_(own), ranks_(std::move(ranks)), sockets_(std::move(sockets)), watch_(watch) {}

// A connection also ends where the other rank stopped because of a third: rank 0 tells which.
void Links::lost(int rank) const {
  throw_loss(watch_.wait_for_loss(kWhoseFault).value_or(Loss{rank, "its connection ended"}));
}

void Links::throw_if_lost() const {
  if (const std::optional<Loss> loss = watch_.wait_for_loss(kWhoseFault)) throw_loss(*loss);
}

void Links::throw_loss(const Loss& loss) const {
  const std::string text = rank_text(loss.rank, ranks_) + " ended: " + loss.words;
  if (loss.rank == 0) throw Error(text);  // which can't tell it
  throw SharedError(text);
}

void Links::transfer(std::span<const Outgoing> out, std::span<const Incoming> in) {
  watch_.arrive();
  ++transfers_;
  std::vector<Flow> sent, got;
  sent.reserve(out.size());
  got.reserve(in.size());
  for (const Outgoing& one : out) {
    Flow& flow = sent.emplace_back();
    flow.rank = one.to;
    flow.header = {.transfer = transfers_, .bytes = one.bytes.size()};
    flow.content = const_cast<std::byte*>(one.bytes.data());  // NOLINT: sendmsg only reads it
    flow.size = one.bytes.size();
    bytes_sent_ += one.bytes.size();
  }
  for (const Incoming& one : in) {
    Flow& flow = got.emplace_back();
    flow.rank = one.from;
    flow.content = one.bytes.data();
    flow.size = one.bytes.size();
  }

  const auto step = [&](Flow& flow, bool sends) {
    while (!flow.finished()) {
      // The content's size is known from the header only.
      std::array<iovec, 2> rest = flow.rest();
      const bool in_header = flow.done < sizeof(Header);
      msghdr message{};
      message.msg_iov = in_header ? rest.data() : rest.data() + 1;
      message.msg_iovlen = in_header && sends ? 2 : 1;
      const int socket = sockets_[static_cast<std::size_t>(flow.rank)].get();
      const ssize_t moved = retried([&] {
        return sends ? ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT)
                     : ::recvmsg(socket, &message, MSG_DONTWAIT);
      });
      if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (moved <= 0) lost(flow.rank);
      flow.done += static_cast<std::size_t>(moved);
      if (!sends && in_header && flow.done == sizeof(Header) &&
          (flow.header.transfer != transfers_ || flow.header.bytes != flow.size)) {
        throw Error(rank_text(flow.rank, ranks_) + " is elsewhere in its program: it sends " +
                    std::to_string(flow.header.bytes) + " bytes as its message " +
                    std::to_string(flow.header.transfer) + ", and rank " + std::to_string(own_) + " expects " +
                    std::to_string(flow.size) + " as message " + std::to_string(transfers_));
      }
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  while (true) {
    for (Flow& flow : sent) step(flow, true);
    for (Flow& flow : got) step(flow, false);
    std::vector<pollfd> wanted;
    for (const Flow& flow : sent) {
      if (flow.finished()) continue;
      wanted.push_back({.fd = sockets_[static_cast<std::size_t>(flow.rank)].get(), .events = POLLOUT, .revents = 0});
    }
    for (const Flow& flow : got) {
      if (flow.finished()) continue;
      wanted.push_back({.fd = sockets_[static_cast<std::size_t>(flow.rank)].get(), .events = POLLIN, .revents = 0});
    }
    if (wanted.empty()) return;
    if (std::chrono::steady_clock::now() - begin < kAwake) {
      std::this_thread::yield();
      continue;
    }
    // What a rank sent before its end still counts: all ranks may have found the same mistake by it.
    if (::poll(wanted.data(), wanted.size(), kTickMilliseconds) > 0) continue;
    if (const std::optional<Loss> loss = watch_.loss()) lost(loss->rank);
  }
}

}  // namespace gpunn::distributed
