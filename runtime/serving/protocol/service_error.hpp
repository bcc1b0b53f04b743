#pragma once

#include <stdexcept>
#include <string>

namespace gpunn::serving {

// A refused request, with the HTTP status that Triton uses: 400 for a wrong request, 404 if the named model or address
// does not exist, 501 for a missing feature, 503 if it can't be served now, 500 otherwise.
class ServiceError final : public std::runtime_error {
 public:
  ServiceError(int status, const std::string& message) : std::runtime_error(message), status_(status) {}
  int status() const noexcept { return status_; }

 private:
  int status_;
};

}  // namespace gpunn::serving
