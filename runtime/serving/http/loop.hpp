#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "serving/http/server.hpp"

#ifdef GPUNN_WITH_TLS
#include <boost/asio/ssl/context.hpp>
#endif

namespace gpunn::serving {

namespace asio = boost::asio;
using Socket = asio::basic_stream_socket<asio::ip::tcp, asio::io_context::executor_type>;

class Connection;

// State that all connections of a server share.
struct ServerState {
  HttpOptions options;
  HttpCallbacks callbacks;
  std::atomic<std::size_t> connections{0};
  std::atomic<std::size_t> body_bytes{0};  // of requests that are received or worked at
  std::atomic<std::size_t> busy{0};        // requests whose headers are there and whose answer is not sent
  std::atomic<Clock::rep> last_request{0};
  std::atomic<bool> draining{false};
#ifdef GPUNN_WITH_TLS
  std::unique_ptr<asio::ssl::context> tls;
#endif
};

// A thread of the network with its connections. Everything of a connection happens on its loop's thread, so nothing of
// it is locked.
class Loop : public std::enable_shared_from_this<Loop> {
 public:
  explicit Loop(ServerState& server);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  void start();
  void stop();  // ends the thread and all connections

  asio::io_context& context() { return context_; }
  ServerState& server() { return server_; }
  Clock::time_point now() const { return now_; }  // of the last sweep, and so up to a tenth of a second old
  const std::string& date() const { return date_; }

  // These are for the loop's own thread.
  void add(Socket socket);
  void remove(const std::shared_ptr<Connection>& connection);
  void close_idle();

 private:
  void sweep();

  ServerState& server_;
  asio::io_context context_{1};
  asio::steady_timer timer_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
  Clock::time_point now_ = Clock::now();
  std::string date_;
  std::thread thread_;
};

}  // namespace gpunn::serving
