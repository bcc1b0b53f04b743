#pragma once

#include <stdexcept>
#include <string>

namespace gpunn::serving {

// A request that is refused, with the HTTP status that Triton gives such: 400 where the request is wrong, 404 where
// what it names is not there, 501 where the service has no such feature, 503 where it can't be served now, 500 else.
class ServiceError final : public std::runtime_error {
 public:
  ServiceError(int status, const std::string& message) : std::runtime_error(message), status_(status) {}
  int status() const noexcept { return status_; }

 private:
  int status_;
};

}  // namespace gpunn::serving
