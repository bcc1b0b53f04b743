#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace gpunn::data {

struct HttpLimits {
  long connect_seconds = 10;
  long slow_bytes_per_second = 1000;  // slower than this
  long slow_seconds = 20;             // for so long: given up
};

struct HttpRequest {
  std::string url;             // http or https
  std::filesystem::path file;  // appended to from the end of what is already there
  uint64_t most_bytes = 0;     // the file never grows beyond this
  HttpLimits limits;
  std::function<void(uint64_t bytes, uint64_t total)> progress;  // of the whole file; total 0: unknown
};

struct HttpResult {
  bool complete = false;
  bool too_large = false;
  long status = 0;    // HTTP's, 0 where there was no answer
  std::string error;  // why not complete
};

// Whether the program was built with libcurl and OpenSSL.
bool http_supported();

// Downloads `url` into `file` and requests only the part that the file lacks; if the server sends everything, the file
// starts again. The received part stays in the file when the connection breaks. Throws Error if the file can't be
// written, and whatever `progress` throws.
HttpResult http_fetch(const HttpRequest& request);

}  // namespace gpunn::data
