#include "serving/http/loop.hpp"

#include <exception>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "serving/http/connection.hpp"
#include "serving/http/date.hpp"

namespace gpunn::serving {

namespace {

constexpr std::chrono::milliseconds kSweep{100};

}  // namespace

Loop::Loop(ServerState& server) : server_(server), timer_(context_), date_(http_date()) {}
Loop::~Loop() = default;

void Loop::start() {
  sweep();
  thread_ = std::thread([this] {
    const auto work = asio::make_work_guard(context_);
    for (;;) {
      try {
        context_.run();
        return;
      } catch (const std::exception&) {  // memory ran out: the connection at hand stays as it is until its time is over
      }
    }
  });
}

void Loop::stop() {
  if (!thread_.joinable()) return;
  asio::post(context_, [this] {
    timer_.cancel();
    const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
    for (const auto& connection : all) connection->end();
    context_.stop();
  });
  thread_.join();
  // What was cancelled lets go of its connection.
  context_.restart();
  context_.poll();
}

void Loop::add(Socket socket) {
  const auto connection = std::make_shared<Connection>(*this, std::move(socket));
  connections_.insert(connection);
  connection->start();
}

void Loop::remove(const std::shared_ptr<Connection>& connection) { connections_.erase(connection); }

void Loop::close_idle() {
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->end_if_idle();
}

void Loop::sweep() {
  now_ = Clock::now();
  date_ = http_date();
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(), connections_.end());
  for (const auto& connection : all) connection->sweep(now_);
  timer_.expires_after(kSweep);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) sweep();
  });
}

}  // namespace gpunn::serving
