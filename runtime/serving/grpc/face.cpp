#include "serving/grpc/face.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <nlohmann/json.hpp>

#include "inference.grpc.pb.h"
#include "serving/grpc/call.hpp"
#include "serving/grpc/messages.hpp"
#include "serving/grpc/wire.hpp"

namespace gpunn::serving {

namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using inference::ModelInferRequest;
using inference::ModelInferResponse;
using inference::ModelStreamInferResponse;

grpc::Status status_of(const Response& response) {
  static const std::map<int, grpc::StatusCode> kCodes = {
      {400, grpc::INVALID_ARGUMENT}, {401, grpc::UNAUTHENTICATED}, {403, grpc::PERMISSION_DENIED},
      {404, grpc::NOT_FOUND},        {405, grpc::UNIMPLEMENTED},   {413, grpc::RESOURCE_EXHAUSTED},
      {499, grpc::CANCELLED},        {501, grpc::UNIMPLEMENTED},   {503, grpc::UNAVAILABLE}};
  if (response.status == 200) return grpc::Status::OK;
  const auto found = kCodes.find(response.status);
  return {found == kCodes.end() ? grpc::INTERNAL : found->second, error_text(response.body)};
}

std::string authorization_of(const CallbackServerContext& context) {
  const auto found = context.client_metadata().find("authorization");
  return found == context.client_metadata().end() ? std::string()
                                                  : std::string(found->second.data(), found->second.size());
}

// Tells a call who its client is: "ipv4:127.0.0.1:40212" is 127.0.0.1.
void introduce(CallExchange& call, const CallbackServerContext& context, const HttpCallbacks& callbacks) {
  call.authorization = authorization_of(context);
  call.sent = callbacks.sent;
  if (!call.sent) return;
  const std::string peer = context.peer();
  const std::size_t first = peer.find(':') + 1, last = peer.rfind(':');
  call.peer = peer.substr(first, last > first ? last - first : std::string::npos);
}

std::size_t header_bytes_of(const Response& response) {
  for (const auto& [name, value] : response.headers) {
    if (name == "Inference-Header-Content-Length") return std::min(std::stoul(value), response.body.size());
  }
  return response.body.size();
}

// The answer of an inference as a message, and the tensors that belong into it.
grpc::Status read_inference(const Response& response, ModelInferResponse& message, std::vector<SharedBytes>& tensors) {
  grpc::Status status = status_of(response);
  if (!status.ok()) return status;
  if (read_infer_answer(response, header_bytes_of(response), message, tensors)) return status;
  return {grpc::INTERNAL, "the answer can't be read"};
}

// The message with its tensors.
grpc::Status read_inference(const Response& response, ModelInferResponse& message) {
  std::vector<SharedBytes> tensors;
  grpc::Status status = read_inference(response, message, tensors);
  for (const SharedBytes& tensor : tensors) message.add_raw_output_contents(tensor.bytes.data(), tensor.bytes.size());
  return status;
}

// Its bytes, without a copy of large tensors.
grpc::Status write_inference(const Response& response, grpc::ByteBuffer& bytes) {
  ModelInferResponse message;
  std::vector<SharedBytes> tensors;
  grpc::Status status = read_inference(response, message, tensors);
  if (!status.ok()) return status;
  std::optional<grpc::ByteBuffer> made = infer_answer_bytes(message, tensors);
  if (!made) return {grpc::RESOURCE_EXHAUSTED, "the answer is larger than a message may be, 2 GiB"};
  bytes.Swap(&*made);
  return status;
}

// The request that a call waits for. gRPC may cancel it from another thread.
class Awaited {
 public:
  void begin_with(const std::shared_ptr<CallExchange>& call, const HttpCallbacks& callbacks) {
    {
      const std::lock_guard lock(mutex_);
      call_ = call;
    }
    begin(call, callbacks);
  }
  void cancel() {
    const std::lock_guard lock(mutex_);
    if (const auto call = call_.lock()) call->cancel();
  }

 private:
  std::mutex mutex_;
  std::weak_ptr<CallExchange> call_;
};

// A call with one answer. gRPC frees it by OnDone.
class UnaryCall final : public ServerUnaryReactor {
 public:
  void OnCancel() override { awaited.cancel(); }
  void OnDone() override { delete this; }

  Awaited awaited;
};

std::shared_ptr<CallExchange> infer_exchange(const ModelInferRequest& request, const CallbackServerContext& context,
                                             const HttpCallbacks& callbacks, InferBody body,
                                             std::function<void(const Response&)> done) {
  auto call =
      std::make_shared<CallExchange>("POST", model_target(request.model_name(), request.model_version(), "/infer"),
                                     std::move(body.body), std::move(done));
  call->header_bytes = std::to_string(body.header_bytes);
  introduce(*call, context, callbacks);
  return call;
}

// Requests and answers in turn, for as long as the client sends requests.
class InferStream final : public grpc::ServerBidiReactor<ModelInferRequest, ModelStreamInferResponse> {
 public:
  InferStream(CallbackServerContext& context, const HttpCallbacks& callbacks)
      : context_(context), callbacks_(callbacks) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    response_.Clear();
    InferBody body = infer_body(request_);
    if (!body.problem.empty()) {
      response_.set_error_message(body.problem);
      return StartWrite(&response_);
    }
    const auto call = infer_exchange(request_, context_, callbacks_, std::move(body), [this](const Response& response) {
      grpc::Status status = read_inference(response, *response_.mutable_infer_response());
      if (!status.ok()) {
        response_.mutable_infer_response()->set_id(request_.id());
        response_.set_error_message(status.error_message());
      }
      StartWrite(&response_);
    });
    awaited_.begin_with(call, callbacks_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&request_);
  }
  void OnCancel() override { awaited_.cancel(); }
  void OnDone() override { delete this; }

 private:
  CallbackServerContext& context_;
  const HttpCallbacks& callbacks_;
  ModelInferRequest request_;
  ModelStreamInferResponse response_;
  Awaited awaited_;
};

// The bytes of inferences are read and written here, those of other calls by gRPC.
using RawInferenceService =
    inference::GRPCInferenceService::WithRawCallbackMethod_ModelInfer<inference::GRPCInferenceService::CallbackService>;

class InferenceService final : public RawInferenceService {
 public:
  explicit InferenceService(HttpCallbacks callbacks) : callbacks_(std::move(callbacks)) {}

  ServerUnaryReactor* ServerLive(CallbackServerContext* context, const inference::ServerLiveRequest* /*request*/,
                                 inference::ServerLiveResponse* response) override {
    return is_well(*context, "/v2/health/live", [response](bool well) { response->set_live(well); });
  }
  ServerUnaryReactor* ServerReady(CallbackServerContext* context, const inference::ServerReadyRequest* /*request*/,
                                  inference::ServerReadyResponse* response) override {
    return is_well(*context, "/v2/health/ready", [response](bool well) { response->set_ready(well); });
  }
  ServerUnaryReactor* ModelReady(CallbackServerContext* context, const inference::ModelReadyRequest* request,
                                 inference::ModelReadyResponse* response) override {
    return is_well(*context, model_target(request->name(), request->version(), "/ready"),
                   [response](bool well) { response->set_ready(well); });
  }
  ServerUnaryReactor* ServerMetadata(CallbackServerContext* context,
                                     const inference::ServerMetadataRequest* /*request*/,
                                     inference::ServerMetadataResponse* response) override {
    return ask(*context, "GET", "/v2", {}, *response);
  }
  ServerUnaryReactor* ModelMetadata(CallbackServerContext* context, const inference::ModelMetadataRequest* request,
                                    inference::ModelMetadataResponse* response) override {
    return ask(*context, "GET", model_target(request->name(), request->version(), ""), {}, *response);
  }
  ServerUnaryReactor* ModelConfig(CallbackServerContext* context, const inference::ModelConfigRequest* request,
                                  inference::ModelConfigResponse* response) override {
    return ask(*context, "GET", model_target(request->name(), request->version(), "/config"), {},
               *response->mutable_config());
  }
  ServerUnaryReactor* ModelStatistics(CallbackServerContext* context, const inference::ModelStatisticsRequest* request,
                                      inference::ModelStatisticsResponse* response) override {
    const std::string target =
        request->name().empty() ? "/v2/models/stats" : model_target(request->name(), request->version(), "/stats");
    return ask(*context, "GET", target, {}, *response);
  }
  ServerUnaryReactor* RepositoryIndex(CallbackServerContext* context, const inference::RepositoryIndexRequest* request,
                                      inference::RepositoryIndexResponse* response) override {
    return call(*context, "POST", "/v2/repository/index", request->ready() ? R"({"ready":true})" : "{}",
                [response](const Response& answer) {
                  grpc::Status status = status_of(answer);
                  if (status.ok()) read_json("{\"models\":" + answer.body + "}", *response);
                  return status;
                });
  }
  ServerUnaryReactor* RepositoryModelLoad(CallbackServerContext* context,
                                          const inference::RepositoryModelLoadRequest* request,
                                          inference::RepositoryModelLoadResponse* /*response*/) override {
    return change(*context, *request, "/load");
  }
  ServerUnaryReactor* RepositoryModelUnload(CallbackServerContext* context,
                                            const inference::RepositoryModelUnloadRequest* request,
                                            inference::RepositoryModelUnloadResponse* /*response*/) override {
    return change(*context, *request, "/unload");
  }
  ServerUnaryReactor* ModelInfer(CallbackServerContext* context, const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override {
    auto* const reactor = new UnaryCall;
    ModelInferRequest message;
    grpc::ByteBuffer bytes(*request);
    if (!grpc::SerializationTraits<ModelInferRequest>::Deserialize(&bytes, &message).ok()) {
      reactor->Finish({grpc::INVALID_ARGUMENT, "expected a ModelInferRequest, found other bytes"});
      return reactor;
    }
    InferBody body = infer_body(message);
    if (!body.problem.empty()) {
      reactor->Finish({grpc::INVALID_ARGUMENT, body.problem});
      return reactor;
    }
    reactor->awaited.begin_with(infer_exchange(message, *context, callbacks_, std::move(body),
                                               [reactor, response](const Response& answer) {
                                                 reactor->Finish(write_inference(answer, *response));
                                               }),
                                callbacks_);
    return reactor;
  }
  grpc::ServerBidiReactor<ModelInferRequest, ModelStreamInferResponse>* ModelStreamInfer(
      CallbackServerContext* context) override {
    return new InferStream(*context, callbacks_);
  }

 private:
  ServerUnaryReactor* call(const CallbackServerContext& context, const char* method, const std::string& target,
                           std::string body, std::function<grpc::Status(const Response&)> read) {
    auto* const reactor = new UnaryCall;
    auto exchange = std::make_shared<CallExchange>(
        method, target, std::move(body),
        [reactor, read = std::move(read)](const Response& response) { reactor->Finish(read(response)); });
    introduce(*exchange, context, callbacks_);
    reactor->awaited.begin_with(exchange, callbacks_);
    return reactor;
  }
  // The JSON of the HTTP face has the names of the message's fields.
  ServerUnaryReactor* ask(const CallbackServerContext& context, const char* method, const std::string& target,
                          std::string body, google::protobuf::Message& message) {
    return call(context, method, target, std::move(body), [&message](const Response& response) {
      grpc::Status status = status_of(response);
      if (status.ok() && !read_json(response.body, message)) {
        return grpc::Status(grpc::INTERNAL, "the answer can't be read");
      }
      return status;
    });
  }
  ServerUnaryReactor* is_well(const CallbackServerContext& context, const std::string& target,
                              std::function<void(bool)> set) {
    return call(context, "GET", target, {}, [set = std::move(set)](const Response& response) {
      if (response.status == 401) return status_of(response);
      set(response.status == 200);
      return grpc::Status::OK;
    });
  }
  template <class Request>
  ServerUnaryReactor* change(const CallbackServerContext& context, const Request& request, const char* action) {
    nlohmann::json body = {{"parameters", nlohmann::json::object()}};
    for (const auto& [name, value] : request.parameters()) body["parameters"][name] = true;
    std::string target = model_target(request.model_name(), "", action);
    target.replace(0, std::string("/v2").size(), "/v2/repository");
    return call(context, "POST", target, body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                status_of);
  }

  HttpCallbacks callbacks_;
};

class GrpcServer final : public GrpcFace {
 public:
  GrpcServer(const GrpcOptions& options, const HttpCallbacks& callbacks) : service_(callbacks) {
    std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
    if (!options.certificate.empty()) {
      grpc::SslServerCredentialsOptions tls;
      tls.pem_key_cert_pairs.push_back({options.private_key, options.certificate});
      credentials = grpc::SslServerCredentials(tls);
    }
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // or two services would share a port
    builder.AddListeningPort(host_of(options.address) + ":" + std::to_string(options.port), credentials, &port_);
    constexpr std::size_t kAround = 65536;  // names, shapes and parameters
    builder.SetMaxReceiveMessageSize(
        static_cast<int>(std::min<std::size_t>(options.body_bytes + kAround, std::numeric_limits<int>::max())));
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~GrpcServer() override {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  bool is_listening() const { return server_ != nullptr && port_ > 0; }
  uint16_t port() const override { return static_cast<uint16_t>(port_); }
  bool drain(std::chrono::milliseconds limit) override {
    const auto end = std::chrono::system_clock::now() + limit;
    server_->Shutdown(end);
    return std::chrono::system_clock::now() < end;
  }

 private:
  InferenceService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) GrpcFace* gpunn_grpc_open(const GrpcOptions& options,
                                                                            const HttpCallbacks& callbacks) {
  auto face = std::make_unique<GrpcServer>(options, callbacks);
  return face->is_listening() ? face.release() : nullptr;
}

}  // namespace gpunn::serving
