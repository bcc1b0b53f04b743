#pragma once

#include <gpunn/export.h>
#include <gpunn/model.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpunn {

// How models are served over HTTP.
struct ServingOptions {
  // What is served, [NAME[:VERSION]=]PATH each: a run folder, a file of a model, or a folder with a version in each of
  // its subfolders 1, 2, ... The name defaults to that of the experiment.
  std::vector<std::string> models = {};
  ModelOptions model = {};  // of each; `max_batch` is the largest batch, `calls` is that of `instances`

  std::string address = "127.0.0.1";       // or a name; "0.0.0.0" and "::": all of the machine's
  uint16_t port = 8000;                    // 0: any that is free
  std::optional<uint16_t> grpc_port = {};  // where gRPC is served, too; 0: any that is free
  int network_threads = 1;
  int instances = 1;                         // batches of a model that may run at the same time
  std::chrono::microseconds batch_delay{0};  // that a request waits for others to fill a batch at most
  std::chrono::milliseconds warm_up{3'000};  // that loading a model may take longer, to have its kernels ready
  std::size_t queue = 4096;                  // requests to a model that may wait; further ones get 503

  std::chrono::milliseconds request_timeout{60'000};   // until its answer; 0: none
  std::chrono::milliseconds idle_timeout{60'000};      // of a connection without a request
  std::chrono::milliseconds transfer_timeout{30'000};  // of a request's bytes, and of an answer's
  std::chrono::milliseconds drain_timeout{30'000};     // of stop()
  std::size_t connections = 1024;
  std::size_t header_bytes = std::size_t{16} << 10;
  std::size_t body_bytes = std::size_t{64} << 20;   // of a request, once decompressed too
  std::size_t memory_bytes = std::size_t{1} << 30;  // of the bodies of all requests
  int64_t image_pixels = int64_t{1} << 26;          // of an image to classify

  std::filesystem::path certificate = {}, private_key = {};  // PEM files; both given: HTTPS
  std::string token = {};                                    // that clients show as "Authorization: Bearer TOKEN"
  std::filesystem::path access_log = {};                     // a line for each answer; "-": the standard error
};

// Serves models by the Open Inference Protocol v2, as Triton does, with a page for browsers at "/" and metrics for
// Prometheus at "/metrics". Its threads serve from the constructor on.
class GPUNN_API Service {
 public:
  // Loads the models, then listens. Throws Error: usage where an option is wrong, missing where a model, the backend or
  // the port can't be had.
  explicit Service(const ServingOptions& options);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service();  // stop()

  uint16_t port() const;
  uint16_t grpc_port() const;               // 0: gRPC is not served
  std::string url() const;                  // "http://127.0.0.1:8000"
  std::vector<std::string> models() const;  // "lenet:1", each that is ready

  // Serves a model of this program, in place of what had the name and version. Throws Error(usage) where the name is
  // none.
  void put(const std::string& name, Model model, int64_t version = 1);

  // Answers all requests that were accepted and refuses new ones, then ends all connections. False: drain_timeout came
  // before the last answer, and the destructor still waits for what runs on the device. May be called again.
  bool stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpunn
