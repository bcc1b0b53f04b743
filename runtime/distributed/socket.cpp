#include "distributed/socket.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "common/parse_number.hpp"

namespace gpunn::distributed {

namespace {

constexpr std::chrono::milliseconds kTryAgain{50};
constexpr int kWaiting = 128;

using Found = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Found find(const Address& address, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (failure != 0) {
    throw Error("the rendezvous " + address.text() + " can't be found: " + ::gai_strerror(failure), ExitCode::usage);
  }
  return {found, &::freeaddrinfo};
}

int milliseconds_to(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000));
}

// False at the deadline.
bool wait_for(int descriptor, short events, Clock::time_point deadline) {
  pollfd wanted{.fd = descriptor, .events = events, .revents = 0};
  const int ready = retried([&] { return ::poll(&wanted, 1, milliseconds_to(deadline)); });
  if (ready == 0) errno = ETIMEDOUT;
  return ready > 0;
}

void send_at_once(int descriptor) {
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Whether the system has connected a socket to itself, as it may where no process listens at a port of its own choice.
bool is_own(int descriptor) {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof(here), there_size = sizeof(there);
  return ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&here), &here_size) == 0 &&
         ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&there), &there_size) == 0 && here_size == there_size &&
         std::memcmp(&here, &there, here_size) == 0;
}

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

Address parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Address address;
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    address.port = parse_number<int>(std::string_view(text).substr(colon + 1)).value_or(-1);
  }
  if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  if (address.host.empty() || address.port < 0 || address.port > 65535) {
    throw Error("'" + text + "' is no rendezvous; expected HOST:PORT, as node01:29400", ExitCode::usage);
  }
  return address;
}

bool Socket::send_all(std::span<const std::byte> bytes, Clock::time_point deadline) const {
  while (!bytes.empty()) {
    const ssize_t sent = retried([&] { return ::send(get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); });
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (!would_wait() || !wait_for(get(), POLLOUT, deadline)) {
      return false;
    }
  }
  return true;
}

bool Socket::receive_all(std::span<std::byte> bytes, Clock::time_point deadline) const {
  while (!bytes.empty()) {
    const ssize_t got = retried([&] { return ::recv(get(), bytes.data(), bytes.size(), 0); });
    if (got == 0) errno = ECONNRESET;
    if (got == 0) return false;
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (!would_wait() || !wait_for(get(), POLLIN, deadline)) {
      return false;
    }
  }
  return true;
}

Listener Listener::open(const Address& address) {
  const Found found = find(address, AI_PASSIVE);
  int failure = 0;
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Listener listener;
    listener.descriptor_ = FileDescriptor(::socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(listener.descriptor_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (::bind(listener.descriptor_.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        ::listen(listener.descriptor_.get(), kWaiting) == 0) {
      sockaddr_storage name{};
      socklen_t size = sizeof(name);
      ::getsockname(listener.descriptor_.get(), reinterpret_cast<sockaddr*>(&name), &size);
      listener.port_ = ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                                        : reinterpret_cast<sockaddr_in&>(name).sin_port);
      return listener;
    }
    failure = errno;
  }
  const std::string where = "rank 0 can't listen at " + address.text() + ": ";
  if (failure == EADDRINUSE) {
    throw Error(where +
                    "the port is in use, perhaps by a rank of a run before. Give all ranks another port with "
                    "--rendezvous HOST:PORT, or end what uses it",
                ExitCode::usage);
  }
  if (failure == EADDRNOTAVAIL) {
    throw Error(where + "the address is another machine's; --rendezvous names the machine of rank 0", ExitCode::usage);
  }
  throw Error(where + reason_of(failure), ExitCode::usage);
}

std::optional<Socket> Listener::accept(Clock::time_point deadline) const {
  while (true) {
    FileDescriptor got(
        retried([&] { return ::accept4(descriptor_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC); }));
    if (got) {
      send_at_once(got.get());
      return Socket(std::move(got));
    }
    if (!would_wait() && errno != ECONNABORTED) throw Error("rank 0 can't be reached: " + reason_of(errno));
    if (!wait_for(descriptor_.get(), POLLIN, deadline)) return std::nullopt;
  }
}

std::optional<Socket> connect_to(const Address& address, Clock::time_point deadline) {
  const Found found = find(address, 0);
  do {
    for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
      FileDescriptor made(::socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (!made) continue;
      int failure = ::connect(made.get(), one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
      if (failure == EINPROGRESS && wait_for(made.get(), POLLOUT, std::min(deadline, Clock::now() + 20 * kTryAgain))) {
        socklen_t size = sizeof(failure);
        ::getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
      }
      if (failure != 0 || is_own(made.get())) continue;
      send_at_once(made.get());
      return Socket(std::move(made));
    }
    std::this_thread::sleep_for(kTryAgain);
  } while (Clock::now() < deadline);
  return std::nullopt;
}

std::string peer_host(const Socket& socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof(name);
  char host[NI_MAXHOST] = "";
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0) return "";
  ::getnameinfo(reinterpret_cast<sockaddr*>(&name), size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return host;
}

}  // namespace gpunn::distributed
