#include <gpunn/error.hpp>
#include <gpunn/serving.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

#include "common/input_file.hpp"
#include "serving/api/access_log.hpp"
#include "serving/api/api.hpp"
#include "serving/grpc/face.hpp"
#include "serving/http/server.hpp"
#include "serving/models/repository.hpp"
#include "serving/protocol/service_error.hpp"

namespace gpunn {

using serving::RequestHead;

namespace {

constexpr std::chrono::milliseconds kQuiet{500};  // without a new request, before connections are ended

void require_between(const char* option, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  throw Error(std::string("ServingOptions.") + option + ": expected " + std::to_string(least) + " to " +
                  std::to_string(most) + ", found " + std::to_string(value),
              ExitCode::usage);
}

const ServingOptions& checked(const ServingOptions& options) {
  constexpr int64_t kMost = int64_t{1} << 40;
  require_between("network_threads", options.network_threads, 1, 256);
  require_between("instances", options.instances, 1, 1024);
  require_between("batch_delay", options.batch_delay.count(), 0, 60'000'000);
  require_between("warm_up", options.warm_up.count(), 0, 86'400'000);
  require_between("queue", static_cast<int64_t>(options.queue), 1, 1 << 24);
  require_between("connections", static_cast<int64_t>(options.connections), 1, 1 << 20);
  require_between("header_bytes", static_cast<int64_t>(options.header_bytes), 256, 1 << 24);
  require_between("body_bytes", static_cast<int64_t>(options.body_bytes), 1, kMost);
  require_between("memory_bytes", static_cast<int64_t>(options.memory_bytes), 1, kMost);
  require_between("image_pixels", options.image_pixels, 1, int64_t{1} << 28);
  return options;
}

serving::HttpOptions http_options(const ServingOptions& options) {
  serving::HttpOptions http;
  http.address = options.address;
  http.port = options.port;
  http.threads = options.network_threads;
  http.limits = {.connections = options.connections,
                 .header_bytes = options.header_bytes,
                 .body_bytes = options.body_bytes,
                 .memory_bytes = options.memory_bytes,
                 .idle = options.idle_timeout,
                 .receive = options.transfer_timeout,
                 .send = options.transfer_timeout,
                 .answer = options.request_timeout};
  http.certificate = options.certificate;
  http.private_key = options.private_key;
  return http;
}

serving::GrpcOptions grpc_options(const ServingOptions& options) {
  serving::GrpcOptions grpc;
  grpc.address = options.address;
  grpc.port = *options.grpc_port;
  grpc.body_bytes = options.body_bytes;
  if (!options.certificate.empty()) {
    grpc.certificate = read_text(options.certificate);
    grpc.private_key = read_text(options.private_key);
  }
  return grpc;
}

}  // namespace

class Service::Impl {
 public:
  explicit Impl(const ServingOptions& options)
      : options_(checked(options)),
        log_(options.access_log),
        repository_(options.model, {.delay = options.batch_delay,
                                    .queue = options.queue,
                                    .instances = options.instances,
                                    .warm_up = options.warm_up}) {
    for (const std::string& text : options.models) {
      for (const serving::ModelSource& source : serving::model_sources(text)) repository_.add(source);
    }
    load_all();
    api_.emplace(repository_, options_);
    server_.emplace(http_options(options_), callbacks());
    port_ = server_->port();
    if (options_.grpc_port) {
      grpc_ = serving::open_grpc(grpc_options(options_), callbacks());
      grpc_port_ = grpc_->port();
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  // In this order: the pool brings work to the models, and they answer over the network.
  ~Impl() {
    stop();
    api_->stop();
    repository_.stop();
    grpc_.reset();
  }

  const ServingOptions& options() const { return options_; }
  serving::ModelRepository& repository() { return repository_; }
  uint16_t port() const { return port_; }
  uint16_t grpc_port() const { return grpc_port_; }

  bool stop() {
    const std::lock_guard lock(stopping_);
    if (!server_) return drained_;
    const serving::Clock::time_point end = serving::Clock::now() + options_.drain_timeout;
    const auto left = [&] {
      const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - serving::Clock::now());
      return std::max(rest, std::chrono::milliseconds(0));
    };
    api_->begin_draining();
    drained_ = server_->drain(kQuiet, left());
    server_.reset();
    if (grpc_ != nullptr) drained_ = grpc_->drain(left()) && drained_;
    log_.flush();
    return drained_;
  }

 private:
  void load_all() {
    for (const std::string& name : repository_.names()) {
      try {
        repository_.load(name);
      } catch (const serving::ServiceError& error) {
        throw Error(error.what(), ExitCode::missing);
      }
    }
  }

  serving::HttpCallbacks callbacks() {
    serving::HttpCallbacks callbacks;
    callbacks.admit = [this](const RequestHead& head) { return api_->admit(head); };
    callbacks.handle = [this](const serving::ExchangePtr& exchange) { api_->handle(exchange); };
    if (log_.on()) {
      callbacks.sent = [this](const RequestHead& head, std::string_view peer, int status, std::size_t bytes,
                              std::chrono::nanoseconds took) {
        log_.add(peer, head.method(), head.target(), status, bytes, took);
      };
    }
    return callbacks;
  }

  ServingOptions options_;
  serving::AccessLog log_;
  serving::ModelRepository repository_;
  std::optional<serving::Api> api_;
  std::optional<serving::HttpServer> server_;
  std::unique_ptr<serving::GrpcFace> grpc_;
  uint16_t port_ = 0, grpc_port_ = 0;
  std::mutex stopping_;
  bool drained_ = true;
};

Service::Service(const ServingOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Service::~Service() = default;

uint16_t Service::port() const { return impl_->port(); }
uint16_t Service::grpc_port() const { return impl_->grpc_port(); }

std::string Service::url() const {
  const ServingOptions& options = impl_->options();
  return (options.certificate.empty() ? "http://" : "https://") + serving::host_of(options.address) + ":" +
         std::to_string(port());
}

std::vector<std::string> Service::models() const {
  std::vector<std::string> names;
  for (const serving::ServedModelPtr& model : impl_->repository().all())
    names.push_back(model->name + ":" + model->version);
  return names;
}

void Service::put(const std::string& name, Model model, int64_t version) {
  impl_->repository().put(name, version, std::move(model));
}

bool Service::stop() { return impl_->stop(); }

}  // namespace gpunn
