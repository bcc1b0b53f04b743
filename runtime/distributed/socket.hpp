// TCP connections between ranks.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "common/system_call.hpp"

namespace gpunn::distributed {

using Clock = std::chrono::steady_clock;

struct Address {
  std::string host;
  int port = 0;
  std::string text() const { return host + ":" + std::to_string(port); }
};

// Throws Error(usage) for anything but HOST:PORT. "[::1]:4000" is valid.
Address parse_address(const std::string& text);

// A connection that never blocks: system calls return at once, with EAGAIN if they would have to wait.
class Socket {
 public:
  Socket() = default;
  explicit Socket(FileDescriptor descriptor) : descriptor_(std::move(descriptor)) {}
  int get() const { return descriptor_.get(); }
  explicit operator bool() const { return static_cast<bool>(descriptor_); }
  void close() { descriptor_.close(); }

  // Sends or receives everything before the deadline; else false, with errno (ETIMEDOUT; ECONNRESET also if the other
  // end closed).
  bool send_all(std::span<const std::byte> bytes, Clock::time_point deadline) const;
  bool receive_all(std::span<std::byte> bytes, Clock::time_point deadline) const;

 private:
  FileDescriptor descriptor_;
};

class Listener {
 public:
  // Port 0: any free one. Throws Error, with the remedy, if the port is in use or the host is another machine.
  static Listener open(const Address& address);
  int port() const { return port_; }
  // Empty if no connection came before the deadline.
  std::optional<Socket> accept(Clock::time_point deadline) const;

 private:
  FileDescriptor descriptor_;
  int port_ = 0;
};

// Tries until the deadline, while no process listens there yet. Throws Error if the host is unknown.
std::optional<Socket> connect_to(const Address& address, Clock::time_point deadline);

// The addresses of this end and of the other, as numbers.
std::string peer_host(const Socket& socket);

}  // namespace gpunn::distributed
