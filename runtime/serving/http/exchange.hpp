#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpunn::serving {

using Clock = std::chrono::steady_clock;

// Bytes, and what keeps them alive.
struct SharedBytes {
  std::shared_ptr<const void> memory;
  std::string_view bytes;
};

// The response to a client. The server adds Content-Length, Connection and Date.
struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  std::vector<SharedBytes> rest = {};  // of the body, behind `body`: large tensors, which are not copied
  std::size_t body_bytes() const {
    return std::accumulate(rest.begin(), rest.end(), body.size(),
                           [](std::size_t sum, const SharedBytes& part) { return sum + part.bytes.size(); });
  }
  bool close = false;  // the connection ends with this answer
};

// The first lines of a request.
class RequestHead {
 public:
  RequestHead() = default;
  RequestHead(const RequestHead&) = delete;
  RequestHead& operator=(const RequestHead&) = delete;
  virtual ~RequestHead() = default;

  virtual std::string_view method() const = 0;
  virtual std::string_view target() const = 0;                       // as sent: "/v2/models?x=y"
  virtual std::string_view header(std::string_view name) const = 0;  // empty: not sent
};

// A request that was received whole, and the place for its answer. Threads may share it.
class Exchange : public RequestHead {
 public:
  virtual std::string_view body() const = 0;

  // Sends what `make` returns, which runs on a thread of the network. The first of all calls counts. Does nothing once
  // the client is gone. An exception of `make` becomes a 500.
  virtual void answer(std::function<Response()> make) = 0;

  Clock::time_point received() const { return received_; }
  // The client closed its connection, or got its answer: a result would go nowhere.
  bool abandoned() const { return abandoned_.load(std::memory_order_relaxed); }
  // The client closed its connection before the answer.
  bool gone() const { return gone_.load(std::memory_order_relaxed); }

 protected:
  Clock::time_point received_ = Clock::now();
  std::atomic<bool> abandoned_{false}, gone_{false};
};

using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace gpunn::serving
