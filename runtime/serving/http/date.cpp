#include "serving/http/date.hpp"

#include <array>
#include <cstdio>
#include <ctime>

namespace gpunn::serving {

namespace {

std::tm utc_now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm time{};
  ::gmtime_r(&seconds, &time);
  return time;
}

const char* month_of(const std::tm& time) {
  static constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return kMonths[static_cast<std::size_t>(time.tm_mon)];
}

}  // namespace

std::string http_date() {
  static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  const std::tm time = utc_now();
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays[static_cast<std::size_t>(time.tm_wday)], time.tm_mday, month_of(time), time.tm_year + 1900,
                time.tm_hour, time.tm_min, time.tm_sec);
  return text.data();
}

std::string log_date() {
  const std::tm time = utc_now();
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%02d/%s/%04d:%02d:%02d:%02d +0000", time.tm_mday, month_of(time),
                time.tm_year + 1900, time.tm_hour, time.tm_min, time.tm_sec);
  return text.data();
}

}  // namespace gpunn::serving
