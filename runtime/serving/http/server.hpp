#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serving/http/exchange.hpp"

namespace gpunn::serving {

// The bounds within which clients are served.
struct HttpLimits {
  std::size_t connections = 1024;
  std::size_t header_bytes = std::size_t{16} << 10;
  std::size_t body_bytes = std::size_t{64} << 20;   // of one request
  std::size_t memory_bytes = std::size_t{1} << 30;  // of the bodies of all requests
  std::chrono::milliseconds idle{60'000};           // between two requests of a connection
  std::chrono::milliseconds receive{30'000};        // from the first byte of a request to its last
  std::chrono::milliseconds send{30'000};           // of an answer
  std::chrono::milliseconds answer{60'000};         // from the last byte of a request to its answer; 0: no bound
};

// An address or name in the form of a URL.
inline std::string host_of(const std::string& address) {
  const bool is_v6 = address.find(':') != std::string::npos;
  return is_v6 ? "[" + address + "]" : address;
}

struct HttpOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 8000;  // 0: any that is free
  int threads = 1;
  HttpLimits limits = {};
  std::filesystem::path certificate = {}, private_key = {};  // PEM; both given: TLS
};

// The decision about a request once its headers have arrived, before its body is received.
using Admission = std::function<std::optional<Response>(const RequestHead&)>;
using Handler = std::function<void(const ExchangePtr&)>;
// An answer that was sent, for the access log: the request, its client, the status, the bytes of the answer's body, and
// the time since the request was received.
using Sent = std::function<void(const RequestHead&, std::string_view peer, int status, std::size_t bytes,
                                std::chrono::nanoseconds took)>;

struct HttpCallbacks {
  Admission admit;
  Handler handle;  // on a thread of the network: what takes long goes elsewhere
  Sent sent = {};
};

// An HTTP/1.1 server: keep-alive, pipelining, TLS. Its threads run from the constructor on.
class HttpServer {
 public:
  // Throws Error: usage if the address or the certificate is wrong, missing if the port is in use.
  HttpServer(const HttpOptions& options, HttpCallbacks callbacks);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();  // ends all connections at once

  uint16_t port() const;
  std::size_t connections() const;

  // From here on each answer ends its connection. Returns when all requests are answered and no client has sent one for
  // `quiet`, or after `limit`; then nothing listens. False: the limit came first.
  bool drain(std::chrono::milliseconds quiet, std::chrono::milliseconds limit);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// An answer with {"error": message}, as Triton has it.
Response error_response(int status, std::string_view message);

}  // namespace gpunn::serving
