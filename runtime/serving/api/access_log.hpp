#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace gpunn::serving {

// A line for each answer, as web servers write them: client, time, request, status, bytes, seconds.
//   127.0.0.1 - - [25/Nov/2026:05:34:44 +0000] "POST /v2/models/lenet/infer HTTP/1.1" 200 187 0.000713
class AccessLog {
 public:
  // "-" is standard error; empty: no log. Throws Error(missing) if the file can't be written.
  explicit AccessLog(const std::filesystem::path& file);
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;
  ~AccessLog();

  bool on() const { return descriptor_ >= 0; }
  void add(std::string_view peer, std::string_view method, std::string_view target, int status, std::size_t bytes,
           std::chrono::nanoseconds took);
  void flush();  // which happens five times a second by itself

 private:
  void write();
  void flush_now_and_then();

  int descriptor_ = -1;
  bool owned_ = false;
  std::mutex mutex_;
  std::string lines_;
  std::condition_variable end_;
  bool ended_ = false;
  std::thread flusher_;
};

}  // namespace gpunn::serving
