#include "serving/http/loop.hpp"

#include <array>
#include <cstdio>
#include <ctime>
#include <exception>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "serving/http/connection.hpp"

namespace gpunn::serving {

namespace {

constexpr std::chrono::milliseconds kSweep{100};

// As RFC 9110 wants it: "Sun, 06 Nov 1994 08:49:37 GMT". The names do not depend on the locale.
std::string http_date() {
  static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = std::time(nullptr);
  std::tm time{};
  ::gmtime_r(&seconds, &time);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays[static_cast<std::size_t>(time.tm_wday)], time.tm_mday,
                kMonths[static_cast<std::size_t>(time.tm_mon)], time.tm_year + 1900, time.tm_hour, time.tm_min,
                time.tm_sec);
  return text.data();
}

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
