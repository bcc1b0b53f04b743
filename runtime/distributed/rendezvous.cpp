#include "distributed/rendezvous.hpp"

#include <gpunn/error.hpp>
#include <gpunn/version.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include <unistd.h>

namespace gpunn::distributed {

namespace {

// What a stranger at the port is given to say who it is.
constexpr std::chrono::seconds kIntroduction{2};
constexpr std::size_t kMostRefusal = 4096;

enum Role : uint32_t { kData = 0, kWatch = 1 };

template <std::size_t size>
void put(char (&to)[size], const std::string& text) {
  const std::size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

template <std::size_t size>
std::string text_of(const char (&from)[size]) {
  return {from, ::strnlen(from, size)};
}

// What crosses the wire: all machines of a training have the same byte order.
constexpr char kMagic[8] = {'g', 'p', 'u', 'n', 'n', 'r', 'k', '1'};

struct Hello {
  char magic[8];
  char version[32];
  uint32_t role, rank, world, port, process, reserved;
  char job[128];
  char machine[64];
};

struct Verdict {
  char magic[8];
  uint32_t accepted, length;  // of what follows: an Entry a rank, or why it was refused
};

struct Entry {
  char host[64];  // as rank 0 sees it
  char machine[64];
  uint32_t port, process;
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> room_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

std::string machine_name() {
  char name[64] = "";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1" || host.starts_with("::ffff:127.");
}

// Where to listen for calls to this host: on this machine alone, or at all of its addresses.
std::string listening_host(const std::string& host) {
  if (is_loopback(host)) return host;
  return host.find(':') == std::string::npos ? "0.0.0.0" : "::";
}

Hello hello_of(const RankPlace& place, Role role, int port) {
  Hello hello{};
  std::memcpy(hello.magic, kMagic, sizeof(kMagic));
  put(hello.version, version());
  hello.role = role;
  hello.rank = static_cast<uint32_t>(place.rank);
  hello.world = static_cast<uint32_t>(place.world);
  hello.port = static_cast<uint32_t>(port);
  hello.process = static_cast<uint32_t>(::getpid());
  put(hello.job, place.job);
  put(hello.machine, machine_name());
  return hello;
}

std::string seconds_text(std::chrono::seconds time) { return std::to_string(time.count()) + " s"; }

void refuse(const Socket& socket, const std::string& why) {
  Verdict verdict{};
  std::memcpy(verdict.magic, kMagic, sizeof(kMagic));
  verdict.length = static_cast<uint32_t>(std::min(why.size(), kMostRefusal));
  const auto soon = Clock::now() + kIntroduction;
  if (socket.send_all(bytes_of(verdict), soon)) {
    socket.send_all(std::as_bytes(std::span(why.data(), verdict.length)), soon);
  }
}

// Why this one can't take part; empty: it can.
std::string objection(const Hello& hello, const RankPlace& place) {
  const std::string who = "rank " + std::to_string(hello.rank) + " (" + text_of(hello.machine) + ", process " +
                          std::to_string(hello.process) + ")";
  if (text_of(hello.version) != version()) {
    return who + " runs gpunn " + text_of(hello.version) + ", and rank 0 gpunn " + version() +
           ": install the same on all machines";
  }
  if (static_cast<int>(hello.world) != place.world) {
    return who + " belongs to " + std::to_string(hello.world) + " ranks, and rank 0 to " + std::to_string(place.world) +
           ": perhaps it is left from another run; end it";
  }
  if (text_of(hello.job) != place.job.substr(0, sizeof(hello.job) - 1)) {
    return who + " was started with another run ('" + text_of(hello.job) + "', here '" + place.job + "'): end it";
  }
  if (hello.rank == 0 || static_cast<int>(hello.rank) >= place.world) {
    return who + ": there is a rank 0 already, at the rendezvous";
  }
  return "";
}

Meeting meet_as_first(const RankPlace& place, Clock::time_point deadline, std::chrono::seconds patience) {
  const Address address = parse_address(place.rendezvous);
  const Listener listener = Listener::open({listening_host(address.host), address.port});
  const auto world = static_cast<std::size_t>(place.world);
  Meeting meeting{
      .ranks = std::vector<RankInfo>(world), .data = std::vector<Socket>(world), .watches = std::vector<Socket>(world)};
  std::vector<Entry> entries(world);
  meeting.ranks[0] = {machine_name(), static_cast<int>(::getpid())};
  put(entries[0].machine, meeting.ranks[0].machine);
  entries[0].process = static_cast<uint32_t>(::getpid());

  for (std::size_t missing = 2 * (world - 1); missing > 0;) {
    std::optional<Socket> caller = listener.accept(deadline);
    if (!caller) {
      std::string absent;
      for (std::size_t r = 1; r < world; ++r) {
        if (!meeting.data[r] || !meeting.watches[r]) absent += (absent.empty() ? "" : ", ") + std::to_string(r);
      }
      throw Error("of " + std::to_string(world) + " ranks, these have not come to " + place.rendezvous + " in " +
                  seconds_text(patience) + ": " + absent + ". Is each started, and can it reach this machine?");
    }
    Hello hello{};
    if (!caller->receive_all(room_of(hello), std::min(deadline, Clock::now() + kIntroduction)) ||
        std::memcmp(hello.magic, kMagic, sizeof(kMagic)) != 0) {
      continue;  // a stranger
    }
    std::string why = objection(hello, place);
    const std::size_t rank = hello.rank;
    std::vector<Socket>& place_of = hello.role == kData ? meeting.data : meeting.watches;
    if (why.empty() && place_of[rank]) {
      why = "two processes say that they are rank " + std::to_string(rank) + ": " + std::to_string(hello.process) +
            " on " + text_of(hello.machine) + " and " + std::to_string(meeting.ranks[rank].process) + " on " +
            meeting.ranks[rank].machine + "; give each another number";
    }
    if (!why.empty()) {
      refuse(*caller, why);
      continue;
    }
    if (hello.role == kData) {
      meeting.ranks[rank] = {text_of(hello.machine), static_cast<int>(hello.process)};
      put(entries[rank].host, peer_host(*caller));
      put(entries[rank].machine, text_of(hello.machine));
      entries[rank].port = hello.port;
      entries[rank].process = hello.process;
    }
    place_of[rank] = std::move(*caller);
    --missing;
  }
  Verdict verdict{};
  std::memcpy(verdict.magic, kMagic, sizeof(kMagic));
  verdict.accepted = 1;
  verdict.length = static_cast<uint32_t>(entries.size() * sizeof(Entry));
  for (std::size_t r = 1; r < world; ++r) {
    if (!meeting.data[r].send_all(bytes_of(verdict), deadline) ||
        !meeting.data[r].send_all(std::as_bytes(std::span(entries)), deadline)) {
      throw Error(rank_text(static_cast<int>(r), meeting.ranks) + " left before the training began");
    }
  }
  return meeting;
}

std::vector<Entry> hear_verdict(const Socket& first, const RankPlace& place, Clock::time_point deadline) {
  Verdict verdict{};
  const auto lost = [&] {
    return Error("rank 0 at " + place.rendezvous + " gave no answer to rank " + std::to_string(place.rank) + ": " +
                 reason_of(errno) + ". Did all ranks start?");
  };
  if (!first.receive_all(room_of(verdict), deadline)) throw lost();
  if (std::memcmp(verdict.magic, kMagic, sizeof(kMagic)) != 0) {
    throw Error(place.rendezvous + " is not a rank 0 of gpunn; give --rendezvous another port", ExitCode::usage);
  }
  if (verdict.accepted == 0) {
    std::string why(std::min<std::size_t>(verdict.length, kMostRefusal), '\0');
    if (!first.receive_all(std::as_writable_bytes(std::span(why)), deadline)) throw lost();
    throw Error("rank 0 refuses: " + why, ExitCode::usage);
  }
  std::vector<Entry> entries(static_cast<std::size_t>(place.world));
  if (verdict.length != entries.size() * sizeof(Entry)) throw lost();
  if (!first.receive_all(std::as_writable_bytes(std::span(entries)), deadline)) throw lost();
  return entries;
}

// Connects, and only then says hello() to it.
Socket call(const Address& address, const std::function<Hello()>& hello, Clock::time_point deadline,
            const RankPlace& place, std::chrono::seconds patience) {
  std::optional<Socket> socket = connect_to(address, deadline);
  if (!socket || !socket->send_all(bytes_of(hello()), deadline)) {
    throw Error("rank " + std::to_string(place.rank) + " can't reach " + address.text() + " in " +
                seconds_text(patience) + ". Is the rank there started, and may this machine connect to it?");
  }
  return std::move(*socket);
}

Meeting meet_as_other(const RankPlace& place, Clock::time_point deadline, std::chrono::seconds patience) {
  const Address address = parse_address(place.rendezvous);
  const auto world = static_cast<std::size_t>(place.world), own = static_cast<std::size_t>(place.rank);
  Meeting meeting{.ranks = {}, .data = std::vector<Socket>(world), .watches = std::vector<Socket>(world)};
  // The system chooses the port of the second listener: only when rank 0 has its own, so that it is never that one.
  std::optional<Listener> listener;
  const auto hello_with_port = [&] {
    listener = Listener::open({listening_host(address.host), 0});
    return hello_of(place, kData, listener->port());
  };
  meeting.data[0] = call(address, hello_with_port, deadline, place, patience);
  meeting.watches[0] = call(
      address, [&] { return hello_of(place, kWatch, 0); }, deadline, place, patience);
  const std::vector<Entry> entries = hear_verdict(meeting.data[0], place, deadline);
  for (const Entry& entry : entries) {
    meeting.ranks.push_back({text_of(entry.machine), static_cast<int>(entry.process)});
  }
  // A rank calls those before it, and is called by those behind it.
  const std::string host_of_first = peer_host(meeting.data[0]);
  for (std::size_t r = 1; r < own; ++r) {
    const std::string host = text_of(entries[r].host);
    const Address there{is_loopback(host) ? host_of_first : host, static_cast<int>(entries[r].port)};
    meeting.data[r] = call(
        there, [&] { return hello_of(place, kData, 0); }, deadline, place, patience);
  }
  for (std::size_t missing = world - own - 1; missing > 0;) {
    std::optional<Socket> caller = listener->accept(deadline);
    if (!caller) throw Error("a rank behind rank " + std::to_string(own) + " has not come; see its own message");
    Hello hello{};
    const bool ours = caller->receive_all(room_of(hello), std::min(deadline, Clock::now() + kIntroduction)) &&
                      std::memcmp(hello.magic, kMagic, sizeof(kMagic)) == 0 && objection(hello, place).empty();
    if (!ours || hello.rank <= own || meeting.data[hello.rank]) continue;
    meeting.data[hello.rank] = std::move(*caller);
    --missing;
  }
  return meeting;
}

}  // namespace

std::string rank_text(int rank, const std::vector<RankInfo>& ranks) {
  const RankInfo& info = ranks.at(static_cast<std::size_t>(rank));
  return "rank " + std::to_string(rank) + " of " + std::to_string(ranks.size()) + " (" + info.machine + ", process " +
         std::to_string(info.process) + ")";
}

Meeting meet(const RankPlace& place, std::chrono::seconds patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  return place.rank == 0 ? meet_as_first(place, deadline, patience) : meet_as_other(place, deadline, patience);
}

}  // namespace gpunn::distributed
