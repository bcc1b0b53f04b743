#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "serving/http/exchange.hpp"
#include "serving/http/server.hpp"

namespace gpunn::serving {

// A call of gRPC as a request of the HTTP face.
class CallExchange final : public Exchange {
 public:
  CallExchange(std::string method, std::string target, std::string body, std::function<void(const Response&)> done)
      : method_(std::move(method)), target_(std::move(target)), body_(std::move(body)), done_(std::move(done)) {}

  std::string_view method() const override { return method_; }
  std::string_view target() const override { return target_; }
  std::string_view header(std::string_view name) const override {
    if (name == "Authorization") return authorization;
    if (name == "Inference-Header-Content-Length") return header_bytes;
    return {};
  }
  std::string_view body() const override { return body_; }

  void answer(std::function<Response()> make) override {
    if (answered_.exchange(true)) return;
    Response response;
    try {
      response = make();
    } catch (const std::exception& failure) {
      response.status = 500;
      response.body = failure.what();
    }
    abandoned_ = true;
    if (sent) sent(*this, peer, response.status, response.body_bytes(), Clock::now() - received_);
    std::exchange(done_, nullptr)(response);
  }
  void cancel() { gone_ = abandoned_ = true; }

  std::string authorization, header_bytes, peer;
  Sent sent;

 private:
  std::string method_, target_, body_;
  std::function<void(const Response&)> done_;
  std::atomic<bool> answered_{false};
};

// Has the HTTP face answer it.
inline void begin(const std::shared_ptr<CallExchange>& call, const HttpCallbacks& callbacks) {
  if (std::optional<Response> refusal = callbacks.admit(*call)) {
    call->answer([&] { return std::move(*refusal); });
  } else {
    callbacks.handle(call);
  }
}

}  // namespace gpunn::serving
