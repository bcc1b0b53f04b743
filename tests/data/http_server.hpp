// A small HTTP server on 127.0.0.1, well behaved or not as a test wants it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace test {

struct Served {
  std::string body = {};
  bool ranges = true;                  // false: a Range header is ignored and everything sent
  std::size_t cut_after = 0;           // the connection breaks after so many bytes of each answer; 0: never
  bool stall = false;                  // stops sending where it would cut, and keeps the connection
  std::string redirect = {};           // answer 302 to there
  std::function<void()> halfway = {};  // called when half of an answer is sent
};

class HttpServer {
 public:
  explicit HttpServer(std::map<std::string, Served> files) : files_(std::move(files)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::listen(listener_, 8) != 0 || ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      throw std::runtime_error("no test server");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HttpServer() { stop(); }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // From then on nothing listens at url().
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    if (listener_ >= 0) ::close(listener_);
    listener_ = -1;
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/"; }
  // "/name bytes=10-" for each request, in order.
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  static bool readable(int fd) {
    pollfd wait = {fd, POLLIN, 0};
    return ::poll(&wait, 1, 20) > 0;
  }

  void serve() {
    while (!stopping_) {
      if (!readable(listener_)) continue;
      const int connection = ::accept(listener_, nullptr, nullptr);
      if (connection < 0) continue;
      answer(connection);
      ::close(connection);
    }
  }

  void answer(int connection) {
    std::string request;
    while (request.find("\r\n\r\n") == std::string::npos && !stopping_) {
      if (!readable(connection)) continue;
      char buffer[2048];
      const ssize_t got = ::recv(connection, buffer, sizeof(buffer), 0);
      if (got <= 0) return;
      request.append(buffer, static_cast<std::size_t>(got));
    }
    const std::size_t slash = request.find('/');
    const std::string path = request.substr(slash + 1, request.find(' ', slash) - slash - 1);
    std::string range;
    const std::size_t at = request.find("Range: ");
    if (at != std::string::npos) range = request.substr(at + 7, request.find("\r\n", at) - at - 7);
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(range.empty() ? path : path + " " + range);
    }
    const auto found = files_.find(path);
    if (found == files_.end()) return send(connection, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone");
    const Served& served = found->second;
    if (!served.redirect.empty()) {
      return send(connection, "HTTP/1.1 302 Found\r\nLocation: " + served.redirect + "\r\nContent-Length: 0\r\n\r\n");
    }
    std::size_t first = 0;
    std::string head = "HTTP/1.1 200 OK\r\n";
    if (served.ranges && range.starts_with("bytes=")) {
      first = std::stoul(range.substr(6));
      const std::string size = std::to_string(served.body.size());
      if (first >= served.body.size()) {
        return send(connection, "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */" + size +
                                    "\r\nContent-Length: 0\r\n\r\n");
      }
      head = "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " + std::to_string(first) + "-" +
             std::to_string(served.body.size() - 1) + "/" + size + "\r\n";
    }
    std::string body = served.body.substr(first);
    head += "Content-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n";
    if (served.cut_after > 0) body.resize(std::min(body.size(), served.cut_after));
    if (served.halfway) {
      send(connection, head + body.substr(0, body.size() / 2));
      served.halfway();
      send(connection, body.substr(body.size() / 2));
    } else {
      send(connection, head + body);
    }
    while (served.stall && !stopping_) {
      char byte = 0;
      if (readable(connection) && ::recv(connection, &byte, 1, 0) <= 0) break;
    }
  }

  static void send(int connection, const std::string& text) {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t count = ::send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<std::size_t>(count);
    }
  }

  const std::map<std::string, Served> files_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace test
