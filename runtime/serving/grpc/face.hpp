#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "serving/http/server.hpp"

// gRPC access to the same service: each call becomes a request of the HTTP interface, and its answer becomes the
// call's. gRPC and protobuf are large, so they are in a separate library, which is opened when a service needs it.
namespace gpunn::serving {

struct GrpcOptions {
  std::string address;
  uint16_t port = 8001;  // 0: any that is free
  std::size_t body_bytes = 0;
  std::string certificate, private_key;  // the text of PEM files; both given: TLS
};

class GrpcFace {
 public:
  GrpcFace() = default;
  GrpcFace(const GrpcFace&) = delete;
  GrpcFace& operator=(const GrpcFace&) = delete;
  virtual ~GrpcFace() = default;  // ends all calls at once
  virtual uint16_t port() const = 0;
  // Refuses new calls, and returns once all others are answered. False: `limit` came first.
  virtual bool drain(std::chrono::milliseconds limit) = 0;
};

// The type of the function that the library exports under this name. It returns nullptr if it can't listen there.
using GrpcOpen = GrpcFace*(const GrpcOptions& options, const HttpCallbacks& callbacks);
inline constexpr const char* kGrpcOpen = "gpunn_grpc_open";

// Opens the library beside libgpunn. Throws Error(missing) if it was not built, or if the port is in use.
std::unique_ptr<GrpcFace> open_grpc(const GrpcOptions& options, const HttpCallbacks& callbacks);

}  // namespace gpunn::serving
