#include "data/download/http.hpp"

#include <gpunn/error.hpp>

#include "common/system_call.hpp"

#ifdef GPUNN_WITH_DOWNLOAD

#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>

#include <curl/curl.h>
#include <unistd.h>

namespace gpunn::data {

namespace {

struct CurlCloser {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// What the callbacks share with http_fetch. Nothing may be thrown through libcurl's C frames, so they note it here.
struct Transfer {
  const HttpRequest* request = nullptr;
  CURL* curl = nullptr;
  std::FILE* file = nullptr;
  uint64_t resumed_at = 0;
  uint64_t written = 0;
  bool begun = false;
  bool too_large = false;
  int write_error = 0;
  std::exception_ptr thrown;
};

std::size_t on_data(char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::size_t bytes = size * count;
  if (!transfer.begun) {
    transfer.begun = true;
    long status = 0;
    curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &status);
    if (transfer.resumed_at > 0 && status != 206) {  // the server sends the file from its beginning
      if (::ftruncate(::fileno(transfer.file), 0) != 0) {
        transfer.write_error = errno;
        return 0;
      }
      transfer.resumed_at = 0;
    }
  }
  if (transfer.resumed_at + transfer.written + bytes > transfer.request->most_bytes) {
    transfer.too_large = true;
    return 0;
  }
  const std::size_t written = std::fwrite(data, 1, bytes, transfer.file);
  if (written < bytes) transfer.write_error = errno;
  transfer.written += written;
  return written;
}

int on_progress(void* user, curl_off_t total, curl_off_t, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (!transfer.request->progress) return 0;
  try {
    transfer.request->progress(transfer.resumed_at + transfer.written,
                               total > 0 ? transfer.resumed_at + static_cast<uint64_t>(total) : 0);
  } catch (...) {
    transfer.thrown = std::current_exception();
    return 1;
  }
  return 0;
}

void start_curl_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw Error("libcurl can't start");
  });
}

void set_options(CURL* curl, Transfer& transfer, char* error_text, const std::string& range) {
  const HttpRequest& request = *transfer.request;
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "gpunn");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, request.limits.connect_seconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, request.limits.slow_bytes_per_second);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, request.limits.slow_seconds);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error_text);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  if (!range.empty()) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
}

}  // namespace

bool http_supported() { return true; }

HttpResult http_fetch(const HttpRequest& request) {
  start_curl_once();
  const std::unique_ptr<CURL, CurlCloser> curl(curl_easy_init());
  if (!curl) throw Error("libcurl can't start: out of memory");
  std::unique_ptr<std::FILE, FileCloser> file(std::fopen(request.file.c_str(), "ab"));
  const auto cant_write = [&request](int code) {
    return Error("can't write " + request.file.string() + ": " + reason_of(code));
  };
  if (!file) throw cant_write(errno);

  Transfer transfer;
  transfer.request = &request;
  transfer.curl = curl.get();
  transfer.file = file.get();
  std::error_code ignored;
  transfer.resumed_at = std::filesystem::file_size(request.file, ignored);
  const std::string range = transfer.resumed_at > 0 ? std::to_string(transfer.resumed_at) + "-" : "";
  std::array<char, CURL_ERROR_SIZE> error_text = {};
  set_options(curl.get(), transfer, error_text.data(), range);

  const CURLcode code = curl_easy_perform(curl.get());
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (transfer.write_error != 0) throw cant_write(transfer.write_error);
  if (std::fclose(file.release()) != 0) throw cant_write(errno);

  HttpResult result;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &result.status);
  result.complete = code == CURLE_OK;
  result.too_large = transfer.too_large;
  if (result.too_large) {
    result.error =
        "the server sends more than the " + std::to_string(request.most_bytes) + " bytes that the file can have";
  } else if (!result.complete) {
    result.error = error_text[0] != '\0' ? error_text.data() : curl_easy_strerror(code);
  }
  return result;
}

}  // namespace gpunn::data

#else

namespace gpunn::data {

bool http_supported() { return false; }

HttpResult http_fetch(const HttpRequest& request) {
  throw Error("can't fetch " + request.url + ": this program was built without libcurl or OpenSSL", ExitCode::missing);
}

}  // namespace gpunn::data

#endif
