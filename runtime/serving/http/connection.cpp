#include "serving/http/connection.hpp"

#include <array>
#include <charconv>
#include <exception>
#include <utility>
#include <vector>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/status.hpp>
#include <poll.h>
#include <sys/socket.h>

namespace gpunn::serving {

namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr std::size_t kChunk = std::size_t{64} << 10;
constexpr std::chrono::milliseconds kLinger{5'000}, kLingerAtTheEnd{1'000};
constexpr std::chrono::milliseconds kUnwatched{100};  // a request is answered sooner than that, as a rule
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string_view view_of(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::string_view field(const http::request_header<>& header, std::string_view name) {
  const auto found = header.find(boost::beast::string_view(name.data(), name.size()));
  return found == header.end() ? std::string_view{} : view_of(found->value());
}

void append_number(std::string& text, std::size_t number) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  text.append(digits.data(), end);
}

// Bytes that a write may take at once: Asio's own choice is 64 KiB.
std::size_t unless_failed(const error_code& error, std::size_t /*written*/) {
  constexpr std::size_t kMostAtOnce = std::size_t{4} << 20;
  return error ? 0 : kMostAtOnce;
}

}  // namespace

// The headers while the body is still on its way.
class Connection::Head final : public RequestHead {
 public:
  explicit Head(const http::request_header<>& header) : header_(header) {}

  std::string_view method() const override { return view_of(header_.method_string()); }
  std::string_view target() const override { return view_of(header_.target()); }
  std::string_view header(std::string_view name) const override { return field(header_, name); }

 private:
  const http::request_header<>& header_;
};

class Connection::Request final : public Exchange, public std::enable_shared_from_this<Connection::Request> {
 public:
  Request(std::weak_ptr<Loop> loop, std::weak_ptr<Connection> connection, http::request<GrowingBody> message)
      : loop_(std::move(loop)), connection_(std::move(connection)), message_(std::move(message)) {}

  std::string_view method() const override { return view_of(message_.method_string()); }
  std::string_view target() const override { return view_of(message_.target()); }
  std::string_view header(std::string_view name) const override { return field(message_, name); }
  std::string_view body() const override { return message_.body(); }

  void answer(std::function<Response()> make) override {
    if (answered_.exchange(true)) return;
    const std::shared_ptr<Loop> loop = loop_.lock();
    if (loop == nullptr) return;
    asio::dispatch(loop->context(), [self = shared_from_this(), make = std::move(make)] {
      if (const auto connection = self->connection_.lock()) connection->send(*self, make);
    });
  }

  void set_received() { received_ = Clock::now(); }
  void abandon(bool gone) {
    if (gone) gone_ = true;
    abandoned_ = true;
  }

 private:
  std::weak_ptr<Loop> loop_;
  std::weak_ptr<Connection> connection_;
  http::request<GrowingBody> message_;
  std::atomic<bool> answered_{false};
};

Connection::Connection(Loop& loop, Socket socket)
    : loop_(loop),
      server_(loop.server()),
      socket_(std::move(socket)),
      buffer_(server_.options.limits.header_bytes + 2 * kChunk) {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  const auto endpoint = socket_.remote_endpoint(ignored);
  if (!ignored) peer_ = endpoint.address().to_string();
  ++server_.connections;
}

Connection::~Connection() { --server_.connections; }

bool Connection::is_tls() const {
#ifdef GPUNN_WITH_TLS
  return tls_.has_value();
#else
  return false;
#endif
}

template <class Buffers, class Handler>
void Connection::async_read_some(const Buffers& buffers, Handler handler) {
#ifdef GPUNN_WITH_TLS
  if (tls_) return tls_->async_read_some(buffers, std::move(handler));
#endif
  socket_.async_read_some(buffers, std::move(handler));
}

template <class Buffers, class Handler>
void Connection::async_write(const Buffers& buffers, Handler handler) {
#ifdef GPUNN_WITH_TLS
  if (tls_) return asio::async_write(*tls_, buffers, unless_failed, std::move(handler));
#endif
  asio::async_write(socket_, buffers, unless_failed, std::move(handler));
}

void Connection::set(State state, std::chrono::milliseconds limit) {
  state_ = state;
  deadline_ = loop_.now() + limit + kUnwatched;  // now() is up to that old
}

void Connection::start() {
#ifdef GPUNN_WITH_TLS
  if (server_.tls != nullptr) {
    tls_.emplace(socket_, *server_.tls);
    set(State::handshake, server_.options.limits.receive);
    tls_->async_handshake(asio::ssl::stream_base::server, [self = shared_from_this()](const error_code& error) {
      if (self->state_ == State::ended) return;
      if (error) return self->end();
      self->begin_next();
    });
    return;
  }
#endif
  begin_next();
}

void Connection::end() {
  if (state_ == State::ended) return;
  state_ = State::ended;
  if (request_ != nullptr) request_->abandon(true);
  let_go_of_request();
  error_code ignored;
  socket_.close(ignored);
  loop_.remove(shared_from_this());
}

void Connection::end_if_idle() {
  if (state_ == State::receiving && !header_seen_) {
    return write(error_response(503, "the service is shutting down, and the request has not arrived"));
  }
  if (state_ != State::idle && state_ != State::handshake) return;
  std::byte byte{};
  const bool arrived = buffer_.size() > 0 || ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
  if (!arrived) end();
}

void Connection::let_go_of_request() {
  request_.reset();
  if (std::exchange(counted_, false)) --server_.busy;
  server_.body_bytes -= std::exchange(counted_bytes_, 0);
}

void Connection::begin_next() {
  let_go_of_request();
  response_ = {};
  header_seen_ = probed_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(server_.options.limits.header_bytes));
  parser_->body_limit(server_.options.limits.body_bytes);
  set(State::idle, server_.options.limits.idle);
  if (buffer_.size() > 0) return parse();
  read();
}

void Connection::read() {
  reading_ = true;
  async_read_some(buffer_.prepare(std::min(kChunk, buffer_.max_size() - buffer_.size())),
                  [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                    self->reading_ = false;
                    if (self->state_ != State::ended) self->on_read(error, bytes);
                  });
}

void Connection::on_read(const error_code& error, std::size_t bytes) {
  if (error) return end();  // between two requests that is how a client leaves
  if (state_ == State::lingering) return read();
  if (state_ != State::idle && state_ != State::receiving) return;  // its time is over
  buffer_.commit(bytes);
  parse();
}

void Connection::parse() {
  if (state_ == State::idle) set(State::receiving, server_.options.limits.receive);
  while (buffer_.size() > 0 && !parser_->is_done()) {
    error_code error;
    std::size_t used = 0;
    try {
      used = parser_->put(buffer_.data(), error);
    } catch (const std::bad_alloc&) {
      error = http::error::buffer_overflow;
    }
    buffer_.consume(used);
    if (error == http::error::need_more) break;
    if (error) return refuse_malformed(error);
    if (parser_->is_header_done() && !std::exchange(header_seen_, true) && !on_header()) return;
    account_for_body();
    if (server_.body_bytes > server_.options.limits.memory_bytes) {
      Response refusal = error_response(503, "the requests that the service holds take all the memory it may use");
      refusal.close = true;
      return write(std::move(refusal));
    }
  }
  if (!parser_->is_done()) return read();
  request_ = std::make_shared<Request>(loop_.weak_from_this(), weak_from_this(), parser_->release());
  state_ = State::pending;
  pending_since_ = Clock::now();
  const auto limit = server_.options.limits.answer;
  deadline_ = limit.count() > 0 ? pending_since_ + limit : Clock::time_point::max();
  const std::shared_ptr<Request> request = request_;
  request->set_received();
  try {
    server_.callbacks.handle(request);
  } catch (const std::exception& failure) {
    request->answer([text = std::string(failure.what())] { return error_response(500, text); });
  }
}

void Connection::account_for_body() {
  const std::size_t bytes = parser_->get().body().size();
  server_.body_bytes += bytes - counted_bytes_;
  counted_bytes_ = bytes;
}

bool Connection::on_header() {
  counted_ = true;
  ++server_.busy;
  server_.last_request = Clock::now().time_since_epoch().count();
  keep_alive_ = parser_->keep_alive();
  version_ = parser_->get().version();
  is_head_ = parser_->get().method() == http::verb::head;
  const Head head(parser_->get().base());
  std::optional<Response> refusal = server_.callbacks.admit(head);
  if (refusal) {
    refusal->close = refusal->close || !parser_->is_done();
    http::request<GrowingBody> headers;  // for the access log
    headers.base() = std::move(parser_->get().base());
    request_ = std::make_shared<Request>(loop_.weak_from_this(), weak_from_this(), std::move(headers));
    write(std::move(*refusal));
    return false;
  }
  if (head.header("Expect").empty() || version_ < 11 || parser_->is_done()) return true;
  head_ = kContinue;
  async_write(asio::buffer(head_), [self = shared_from_this()](const error_code& error, std::size_t /*bytes*/) {
    if (self->state_ == State::ended) return;
    if (error) return self->end();
    if (self->state_ == State::receiving) self->parse();
  });
  return false;
}

void Connection::refuse_malformed(const error_code& error) {
  int status = 400;
  std::string message = "the request is not HTTP/1.1: " + error.message();
  const HttpLimits& limits = server_.options.limits;
  if (error == http::error::header_limit) {
    status = 431;
    message = "the headers are longer than " + std::to_string(limits.header_bytes) + " bytes";
  } else if (error == http::error::body_limit || error == http::error::buffer_overflow) {
    status = 413;
    message = "the body is longer than " + std::to_string(limits.body_bytes) + " bytes";
  }
  Response refusal = error_response(status, message);
  refusal.close = true;
  write(std::move(refusal));
}

void Connection::send(const Exchange& exchange, const std::function<Response()>& make) {
  if (state_ != State::pending || request_.get() != &exchange) return;
  Response response;
  try {
    response = make();
  } catch (const std::exception& failure) {
    response = error_response(500, failure.what());
  }
  write(std::move(response));
}

void Connection::write(Response response) {
  if (request_ != nullptr) request_->abandon(false);
  response_ = std::move(response);
  if (server_.draining) response_.close = true;
  if (!keep_alive_) response_.close = true;
  const auto reason = http::obsolete_reason(static_cast<http::status>(response_.status));
  head_.clear();
  head_.append("HTTP/1.1 ");
  append_number(head_, static_cast<std::size_t>(response_.status));
  head_.append(" ").append(reason.data(), reason.size()).append("\r\nDate: ").append(loop_.date());
  if (!response_.content_type.empty() && response_.body_bytes() > 0) {
    head_.append("\r\nContent-Type: ").append(response_.content_type);
  }
  head_.append("\r\nContent-Length: ");
  append_number(head_, response_.body_bytes());
  for (const auto& [name, value] : response_.headers) {
    head_.append("\r\n").append(name).append(": ").append(value);
  }
  head_.append(response_.close ? "\r\nConnection: close\r\n\r\n" : "\r\nConnection: keep-alive\r\n\r\n");
  set(State::sending, server_.options.limits.send);
  std::vector<asio::const_buffer> buffers = {asio::buffer(head_)};
  if (!is_head_) {
    buffers.emplace_back(asio::buffer(response_.body));
    for (const SharedBytes& part : response_.rest) buffers.emplace_back(part.bytes.data(), part.bytes.size());
  }
  async_write(buffers, [self = shared_from_this()](const error_code& error, std::size_t /*bytes*/) {
    if (self->state_ == State::sending) self->on_written(error);
  });
}

void Connection::on_written(const error_code& error) {
  if (request_ != nullptr && server_.callbacks.sent) {
    server_.callbacks.sent(*request_, peer_, error ? 499 : response_.status, response_.body_bytes(),
                           Clock::now() - request_->received());
  }
  if (error) return end();
  if (response_.close) return linger();
  begin_next();
}

// What the client still sends is read, or its system would drop the answer with the connection.
void Connection::linger() {
  let_go_of_request();
  set(State::lingering, server_.draining ? kLingerAtTheEnd : kLinger);
  buffer_.consume(buffer_.size());
  error_code error;
#ifdef GPUNN_WITH_TLS
  if (tls_) {
    if (reading_) return end();  // a shutdown reads, too
    tls_->async_shutdown([self = shared_from_this()](const error_code& /*error*/) { self->end(); });
    return;
  }
#endif
  socket_.shutdown(Socket::shutdown_send, error);
  if (error) return end();
  if (!reading_) read();
}

void Connection::sweep(Clock::time_point now) {
  if (state_ == State::pending && now - pending_since_ > kUnwatched) watch_client();
  if (state_ == State::ended || now < deadline_) return;
  switch (state_) {
    case State::receiving: {
      Response refusal = error_response(408, "the request did not arrive in time");
      refusal.close = true;
      return write(std::move(refusal));
    }
    case State::pending:
      return write(
          error_response(503, "the request was not answered in time: the model is overloaded, or its device hangs"));
    default:
      return end();
  }
}

// A client that has closed its side may still wait for the answer, or be gone. An interim answer tells: the system of a
// client that is gone answers it with a reset.
void Connection::watch_client() {
  pollfd watched{socket_.native_handle(), POLLRDHUP, 0};
  if (::poll(&watched, 1, 0) <= 0) return;
  const bool reset = (watched.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
  if (reset || is_tls()) {
    if (server_.callbacks.sent) server_.callbacks.sent(*request_, peer_, 499, 0, Clock::now() - request_->received());
    return end();
  }
  keep_alive_ = false;
  if (std::exchange(probed_, true)) return;
  if (version_ < 11) return;
  [[maybe_unused]] const auto sent =
      ::send(socket_.native_handle(), kContinue.data(), kContinue.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace gpunn::serving
