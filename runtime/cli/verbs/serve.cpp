#include <gpunn/serving.hpp>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/options/experiment_options.hpp"
#include "cli/signals/stop_signal.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/status_line.hpp"

namespace gpunn::cli {

namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;

struct ServeOptions {
  std::vector<std::string> models, settings;
  std::string backend;
  std::optional<int64_t> device, threads, grpc_port;
  std::vector<std::filesystem::path> plugins;
  std::string address = "127.0.0.1";
  int64_t port = 8000, max_batch = 64, max_delay = 0, queue = 4096, instances = 1, network_threads = 1, warm_up = 3'000;
  int64_t timeout = 60'000, idle_timeout = 60'000, transfer_timeout = 30'000, drain_timeout = 30'000;
  int64_t connections = 1024, body = 64, memory = 1024, pixels = 64;
  std::filesystem::path certificate, key, token_file, access_log;
};

// The token comes from a file or the environment, because every user of the machine can read a command line.
std::string token_of(const ServeOptions& options) {
  std::string token;
  if (!options.token_file.empty()) {
    std::ifstream file(options.token_file);
    if (!file) throw Error(options.token_file.string() + ": the file with the token can't be read", ExitCode::missing);
    std::getline(file, token);
    if (!token.empty() && token.back() == '\r') token.pop_back();
    if (token.empty()) throw Error(options.token_file.string() + ": the first line holds no token", ExitCode::usage);
  } else if (const char* value = std::getenv("GPUNN_SERVE_TOKEN"); value != nullptr) {
    token = value;
  }
  for (const char c : token) {
    if (c <= ' ' || c > '~') throw Error("a token is made of printable characters without spaces", ExitCode::usage);
  }
  return token;
}

ServingOptions serving_options(const ServeOptions& options) {
  using std::chrono::milliseconds;
  ServingOptions serving;
  serving.models = options.models;
  serving.model = {.backend = options.backend,
                   .device = options.device,
                   .threads = options.threads,
                   .max_batch = options.max_batch,
                   .plugins = options.plugins,
                   .overrides = parse_settings(options.settings)};
  serving.address = options.address;
  serving.port = static_cast<uint16_t>(options.port);
  if (options.grpc_port) serving.grpc_port = static_cast<uint16_t>(*options.grpc_port);
  serving.network_threads = static_cast<int>(options.network_threads);
  serving.instances = static_cast<int>(options.instances);
  serving.batch_delay = std::chrono::microseconds(options.max_delay);
  serving.warm_up = milliseconds(options.warm_up);
  serving.queue = static_cast<std::size_t>(options.queue);
  serving.request_timeout = milliseconds(options.timeout);
  serving.idle_timeout = milliseconds(options.idle_timeout);
  serving.transfer_timeout = milliseconds(options.transfer_timeout);
  serving.drain_timeout = milliseconds(options.drain_timeout);
  serving.connections = static_cast<std::size_t>(options.connections);
  serving.body_bytes = static_cast<std::size_t>(options.body * kMegabyte);
  serving.memory_bytes = static_cast<std::size_t>(options.memory * kMegabyte);
  serving.image_pixels = options.pixels * kMegabyte;
  serving.certificate = options.certificate;
  serving.private_key = options.key;
  serving.token = token_of(options);
  serving.access_log = options.access_log;
  return serving;
}

void add_network_options(Verb verb, ServeOptions& options) {
  verb.add_option("--address", options.address, "Address or name to listen at; 0.0.0.0: all of the machine's")
      .capture_default_str()
      .type_name("HOST");
  verb.add_option("--port", options.port, "Port to listen at; 0: any that is free")
      .capture_default_str()
      .range(0, 65535)
      .type_name("N");
  verb.add_option("--grpc-port", options.grpc_port, "Port to serve gRPC at, too; 0: any that is free; default: none")
      .range(0, 65535)
      .type_name("N");
  verb.add_option("--network-threads", options.network_threads, "Threads that read requests and write answers")
      .capture_default_str()
      .range(1, 256)
      .type_name("N");
  verb.add_option("--tls-certificate", options.certificate,
                  "PEM file with the certificate chain: serve HTTPS, and gRPC over TLS")
      .type_name("FILE");
  verb.add_option("--tls-key", options.key, "PEM file with the certificate's private key")
      .needs("--tls-certificate")
      .type_name("FILE");
  verb.add_option("--token-file", options.token_file,
                  "File with the token that clients must send; default: the token in $GPUNN_SERVE_TOKEN, if it is set")
      .type_name("FILE");
  verb.add_option("--access-log", options.access_log, "Access log, with a line for each answer; '-': standard error")
      .type_name("FILE");
}

void add_limits(Verb verb, ServeOptions& options) {
  constexpr int64_t kMostMilliseconds = 86'400'000;
  const auto milliseconds = [&](const char* name, int64_t& value, const char* help) {
    verb.add_option(name, value, help).capture_default_str().range(0, kMostMilliseconds).type_name("MS");
  };
  milliseconds("--timeout", options.timeout, "Milliseconds from a request to its answer; 0: no limit");
  milliseconds("--idle-timeout", options.idle_timeout, "Milliseconds that a connection may be idle");
  milliseconds("--transfer-timeout", options.transfer_timeout,
               "Milliseconds for all bytes of a request to arrive, or of an answer to leave");
  milliseconds("--drain-timeout", options.drain_timeout,
               "Milliseconds to answer accepted requests when the service stops");
  verb.add_option("--max-connections", options.connections, "Connections at the same time")
      .capture_default_str()
      .range(1, 1 << 20)
      .type_name("N");
  verb.add_option("--max-body", options.body, "Megabytes of a request")
      .capture_default_str()
      .range(1, 1 << 20)
      .type_name("MB");
  verb.add_option("--max-memory", options.memory, "Megabytes of all requests that the service holds")
      .capture_default_str()
      .range(1, 1 << 20)
      .type_name("MB");
  verb.add_option("--max-pixels", options.pixels, "Megapixels of an image to classify")
      .capture_default_str()
      .range(1, 256)
      .type_name("MP");
}

ExitCode serve(const ServeOptions& options) {
  StopSignal stop;  // before the threads start, since they must not receive the signal
  Service service(serving_options(options));
  std::string names;
  for (const std::string& model : service.models()) names += (names.empty() ? "" : ", ") + model;
  put("serving {} at {}\n", names, service.url());
  if (service.grpc_port() > 0) put("gRPC at {}:{}\n", options.address, service.grpc_port());
  flush_stdout();
  stop.wait();
  write_to_stderr("stopping: accepted requests are answered first; press again to quit\n");
  if (service.stop()) return ExitCode::done;
  write_to_stderr("gpunn: some requests were not answered within --drain-timeout\n");
  flush_stdout();
  std::_Exit(static_cast<int>(ExitCode::failed));  // the destructors would wait for a device that hangs
}

}  // namespace

void add_serve(CommandLine& line) {
  auto options = std::make_shared<ServeOptions>();
  Verb verb = line.program.add_verb(
      "serve", "Serve trained models over HTTP, by the protocol of Triton",
      {"gpunn serve runs/lenet_mnist/2025-01-02T03-04-05Z",
       "gpunn serve digits=runs/lenet_mnist/2025-01-02T03-04-05Z photos:2=photos.h5 --port 9000",
       "gpunn serve digits=runs/lenet_mnist/2025-01-02T03-04-05Z --max-batch 128 --max-delay 500 --access-log -"});
  verb.add_option(
          "models", options->models,
          "Run folders, checkpoint files, or folders of versions 1, 2, ...; named by NAME=PATH or NAME:VERSION=PATH")
      .required()
      .type_name("MODEL");
  add_backend_option(verb, options->backend);
  verb.add_option("--device", options->device, "Device of the backend, counted from 0; default: the experiment's")
      .type_name("N");
  verb.add_option("--threads", options->threads, "Host threads of the backend for a batch; 0: its choice")
      .type_name("N");
  add_plugin_option(verb, options->plugins);
  add_model_settings(verb, options->settings);
  verb.add_option("--max-batch", options->max_batch, "Rows of the largest batch")
      .capture_default_str()
      .range(1, 1 << 16)
      .type_name("N");
  verb.add_option("--max-delay", options->max_delay, "Microseconds that a request waits for others to fill its batch")
      .capture_default_str()
      .range(0, 60'000'000)
      .type_name("US");
  verb.add_option("--max-queue", options->queue, "Requests to a model that may wait; further ones are refused (503)")
      .capture_default_str()
      .range(1, 1 << 24)
      .type_name("N");
  verb.add_option("--instances", options->instances, "Batches of a model that run at the same time, at most")
      .capture_default_str()
      .range(1, 64)
      .type_name("N");
  verb.add_option("--warm-up", options->warm_up,
                  "Milliseconds of additional time to load a model, to prepare the kernels of its batches")
      .capture_default_str()
      .range(0, 86'400'000)
      .type_name("MS");
  add_network_options(verb, *options);
  add_limits(verb, *options);
  verb.callback([&line, options] {
    line.quiet = true;
    line.action = [options] { return serve(*options); };
  });
}

}  // namespace gpunn::cli
