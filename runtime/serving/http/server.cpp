#include "serving/http/server.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>

#include "serving/http/connection.hpp"
#include "serving/http/loop.hpp"

namespace gpunn::serving {

using boost::system::error_code;
using Tcp = asio::ip::tcp;

namespace {

constexpr std::chrono::milliseconds kAcceptAgain{100};
constexpr std::chrono::milliseconds kLook{10};

void require_tls_files(const HttpOptions& options) {
  if (options.certificate.empty() == options.private_key.empty()) return;
  throw Error("TLS needs a certificate and its private key; one of the two is missing", ExitCode::usage);
}

#ifdef GPUNN_WITH_TLS
std::unique_ptr<asio::ssl::context> tls_context(const HttpOptions& options) {
  require_tls_files(options);
  if (options.certificate.empty()) return nullptr;
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                       asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
  error_code error;
  context->use_certificate_chain_file(options.certificate.string(), error);
  if (error) {
    throw Error(options.certificate.string() + ": no certificate in PEM that can be read: " + error.message(),
                ExitCode::usage);
  }
  context->use_private_key_file(options.private_key.string(), asio::ssl::context::pem, error);
  if (error) {
    throw Error(options.private_key.string() + ": no private key in PEM that fits the certificate: " + error.message(),
                ExitCode::usage);
  }
  return context;
}
#endif

}  // namespace

Response error_response(int status, std::string_view message) {
  Response response;
  response.status = status;
  response.body =
      nlohmann::json{{"error", std::string(message)}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return response;
}

class HttpServer::Impl {
 public:
  Impl(const HttpOptions& options, HttpCallbacks callbacks) {
    state_.options = options;
    state_.callbacks = std::move(callbacks);
#ifdef GPUNN_WITH_TLS
    state_.tls = tls_context(options);
#else
    require_tls_files(options);
    if (!options.certificate.empty()) {
      throw Error(
          "this gpunn was built without OpenSSL, so it serves no TLS; install Debian's libssl-dev and build again",
          ExitCode::missing);
    }
#endif
    for (int i = 0; i < std::max(options.threads, 1); ++i) loops_.push_back(std::make_shared<Loop>(state_));
    acceptor_.emplace(loops_.front()->context());
    again_.emplace(loops_.front()->context());
    listen();
    accept();
    for (const auto& loop : loops_) loop->start();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    on(*loops_.front(), [this] { stop_listening(); });
    for (const auto& loop : loops_) loop->stop();
    again_.reset();
    acceptor_.reset();
  }

  uint16_t port() const { return port_; }
  std::size_t connections() const { return state_.connections; }

  bool drain(std::chrono::milliseconds quiet, std::chrono::milliseconds limit) {
    const Clock::time_point begin = Clock::now(), end = begin + limit;
    state_.draining = true;
    const auto is_quiet = [&] {
      const Clock::time_point last{Clock::duration(state_.last_request.load())};
      return state_.busy == 0 && Clock::now() - std::max(begin, last) >= quiet;
    };
    while (!is_quiet() && Clock::now() < end) std::this_thread::sleep_for(kLook);
    on(*loops_.front(), [this] {
      if (!closed_) accept_waiting();
      stop_listening();
    });
    for (;;) {
      for (const auto& loop : loops_) on(*loop, [&loop] { loop->close_idle(); });
      if (state_.connections == 0 || Clock::now() >= end) break;
      std::this_thread::sleep_for(kLook);
    }
    return state_.busy == 0;
  }

 private:
  template <class Action>
  static void on(Loop& loop, Action action) {
    std::promise<void> done;
    asio::post(loop.context(), [&] {
      action();
      done.set_value();
    });
    done.get_future().wait();
  }

  void stop_listening() {
    closed_ = true;
    error_code ignored;
    again_->cancel();
    acceptor_->close(ignored);
  }

  void listen() {
    const HttpOptions& options = state_.options;
    Tcp::resolver resolver(loops_.front()->context());
    error_code error;
    const auto found = resolver.resolve(options.address, std::to_string(options.port), Tcp::resolver::passive, error);
    if (error || found.empty()) {
      throw Error("there is no address " + options.address + " to listen at: " + error.message(), ExitCode::usage);
    }
    const Tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_->open(endpoint.protocol(), error);
    if (!error) acceptor_->set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor_->bind(endpoint, error);
    if (!error) acceptor_->listen(static_cast<int>(std::min<std::size_t>(options.limits.connections, 4096)), error);
    if (error) {
      throw Error("can't listen at " + options.address + " port " + std::to_string(options.port) + ": " +
                      error.message() + "; choose another with --port, or 0 for any that is free",
                  ExitCode::missing);
    }
    port_ = acceptor_->local_endpoint().port();
  }

  void accept() {
    const std::shared_ptr<Loop> loop = loops_[next_++ % loops_.size()];
    acceptor_->async_accept(loop->context(), [this, loop](const error_code& error, Socket socket) {
      if (error == asio::error::operation_aborted || closed_) return;
      if (error) {  // no descriptors left, as a rule
        again_->expires_after(kAcceptAgain);
        again_->async_wait([this](const error_code& stopped) {
          if (!stopped && !closed_) accept();
        });
        return;
      }
      take(loop, std::move(socket));
      accept();
    });
  }

  // Those that the system has accepted already.
  void accept_waiting() {
    error_code error;
    acceptor_->cancel(error);
    acceptor_->non_blocking(true, error);
    while (!error) {
      const std::shared_ptr<Loop> loop = loops_[next_++ % loops_.size()];
      Socket socket(loop->context());
      acceptor_->accept(socket, error);
      if (!error) take(loop, std::move(socket));
    }
  }

  void take(const std::shared_ptr<Loop>& loop, Socket socket) {
    if (state_.connections >= state_.options.limits.connections) {
      static constexpr std::string_view kFull =
          "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 59\r\n"
          "Connection: close\r\n\r\n{\"error\":\"the service has as many connections as it takes\"}";
      error_code ignored;
      socket.non_blocking(true, ignored);
      socket.write_some(asio::buffer(kFull), ignored);
      return;
    }
    asio::post(loop->context(),
               [loop, held = std::make_shared<Socket>(std::move(socket))] { loop->add(std::move(*held)); });
  }

  ServerState state_;
  std::vector<std::shared_ptr<Loop>> loops_;
  std::optional<asio::basic_socket_acceptor<Tcp, asio::io_context::executor_type>> acceptor_;
  std::optional<asio::steady_timer> again_;
  std::size_t next_ = 0;
  uint16_t port_ = 0;
  bool closed_ = false;  // of the first loop's thread
};

HttpServer::HttpServer(const HttpOptions& options, HttpCallbacks callbacks)
    : impl_(std::make_unique<Impl>(options, std::move(callbacks))) {}
HttpServer::~HttpServer() = default;

uint16_t HttpServer::port() const { return impl_->port(); }
std::size_t HttpServer::connections() const { return impl_->connections(); }
bool HttpServer::drain(std::chrono::milliseconds quiet, std::chrono::milliseconds limit) {
  return impl_->drain(quiet, limit);
}

}  // namespace gpunn::serving
