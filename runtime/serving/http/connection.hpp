#pragma once

#include <memory>
#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/parser.hpp>

#include "serving/http/growing_body.hpp"
#include "serving/http/loop.hpp"

#ifdef GPUNN_WITH_TLS
#include <boost/asio/ssl/stream.hpp>
#endif

namespace gpunn::serving {

// A client. It sends one request after the other; while one is worked at, the next waits in the socket.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Loop& loop, Socket socket);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  void start();
  void end();          // at once
  void end_if_idle();  // where no request has arrived; one whose headers are not whole is refused
  void sweep(Clock::time_point now);
  // The answer of the request that is worked at; of an earlier one it is ignored.
  void send(const Exchange& exchange, const std::function<Response()>& make);

 private:
  class Head;
  class Request;
  enum class State { handshake, idle, receiving, pending, sending, lingering, ended };

  void read();
  void on_read(const boost::system::error_code& error, std::size_t bytes);
  void parse();
  bool on_header();  // false: something else goes on first
  void refuse_malformed(const boost::system::error_code& error);
  void account_for_body();
  void write(Response response);
  void on_written(const boost::system::error_code& error);
  void linger();
  void watch_client();
  void set(State state, std::chrono::milliseconds limit);
  void begin_next();
  void let_go_of_request();  // it counts no more
  bool is_tls() const;

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler handler);
  template <class Buffers, class Handler>
  void async_write(const Buffers& buffers, Handler handler);

  Loop& loop_;  // which outlives its connections
  ServerState& server_;
  Socket socket_;
#ifdef GPUNN_WITH_TLS
  std::optional<asio::ssl::stream<Socket&>> tls_;
#endif
  std::string peer_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<GrowingBody>> parser_;
  std::shared_ptr<Request> request_;
  State state_ = State::idle;
  Clock::time_point deadline_, pending_since_;
  std::size_t counted_bytes_ = 0;  // of the body, in ServerState::body_bytes
  bool counted_ = false;           // in ServerState::busy
  bool reading_ = false, header_seen_ = false, keep_alive_ = true, probed_ = false, is_head_ = false;
  unsigned version_ = 11;
  std::string head_;
  Response response_;
};

}  // namespace gpunn::serving
