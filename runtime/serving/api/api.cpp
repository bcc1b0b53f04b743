#include "serving/api/api.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/parse_number.hpp"
#include "serving/http/server.hpp"
#include "serving/protocol/header_text.hpp"
#include "serving/protocol/service_error.hpp"

namespace gpunn::serving {

namespace {

int pool_threads() { return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 2U, 8U)); }

Response json_response(std::string body) {
  Response response;
  response.body = std::move(body);
  return response;
}

// Takes as long for a wrong token as for the right one, whatever it begins with.
bool is_same_secret(std::string_view given, std::string_view expected) {
  unsigned differences = given.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const char c = i < given.size() ? given[i] : '\0';
    differences |= static_cast<unsigned>(static_cast<unsigned char>(c ^ expected[i]));
  }
  return differences == 0;
}

// A page of another site may make a browser send requests here; it says so in Origin.
bool is_from_another_site(const RequestHead& head) {
  std::string_view origin = head.header("Origin");
  if (origin.empty()) return false;
  const std::size_t scheme = origin.find("://");
  if (scheme != std::string_view::npos) origin.remove_prefix(scheme + 3);
  return origin != head.header("Host");
}

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

void require_method(const Exchange& exchange, std::string_view method) {
  if (exchange.method() == method || (method == "GET" && exchange.method() == "HEAD")) return;
  throw ServiceError(405, "expected " + std::string(method) + ", found " + std::string(exchange.method()));
}

}  // namespace

Api::Api(ModelRepository& repository, const ServingOptions& options)
    : repository_(repository),
      options_(options),
      token_(options.token),
      pool_(pool_threads(), options.queue),
      explainers_(1, options.queue) {}

std::optional<Response> Api::admit(const RequestHead& head) const {
  const std::string_view path = path_of(head.target());
  const bool is_open = path.starts_with("/v2/health/");
  if (!token_.empty() && !is_open && path != "/") {
    constexpr std::string_view kScheme = "Bearer ";
    const std::string_view given = head.header("Authorization");
    if (!is_same_word(given.substr(0, kScheme.size()), kScheme) ||
        !is_same_secret(given.substr(kScheme.size()), token_)) {
      Response refusal = error_response(401, "the service needs its token: 'Authorization: Bearer TOKEN'");
      refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
      return refusal;
    }
  }
  if (is_from_another_site(head)) {
    return error_response(403, "the request comes from a page of another site, which the service does not answer");
  }
  if (draining_ && !is_open && path != "/metrics") {
    Response refusal = error_response(503, "the service is shutting down and takes no more requests");
    refusal.close = true;
    return refusal;
  }
  return std::nullopt;
}

Response response_of(const std::exception& failure) {
  if (const auto* error = dynamic_cast<const ServiceError*>(&failure)) {
    return error_response(error->status(), error->what());
  }
  if (const auto* error = dynamic_cast<const Error*>(&failure)) {
    return error_response(error->code() == ExitCode::usage ? 400 : 500, error->what());
  }
  return error_response(500, failure.what());
}

void answer_now(const ExchangePtr& exchange, Response response) {
  exchange->answer([response = std::move(response)]() mutable { return std::move(response); });
}

std::function<void()> answer_task(const ExchangePtr& exchange, std::function<Response()> make) {
  return [exchange, make = std::move(make)] {
    try {
      answer_now(exchange, make());
    } catch (const std::exception& failure) {
      answer_now(exchange, response_of(failure));
    }
  };
}

void Api::handle(const ExchangePtr& exchange) {
  try {
    route(exchange, parse_target(exchange->target()));
  } catch (const std::exception& failure) {
    answer_now(exchange, response_of(failure));
  }
}

void Api::route(const ExchangePtr& exchange, const Target& target) {
  const std::vector<std::string>& path = target.path;
  const auto is = [&](std::initializer_list<std::string_view> parts) { return std::ranges::equal(path, parts); };
  if (path.empty()) {
    require_method(*exchange, "GET");
    Response page;
    page.content_type = "text/html; charset=utf-8";
    page.headers = {{"Content-Security-Policy",
                     "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src blob: data:; "
                     "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"},
                    {"X-Content-Type-Options", "nosniff"}};
    page.body = browser_page();
    return answer_now(exchange, std::move(page));
  }
  if (is({"metrics"})) {
    require_method(*exchange, "GET");
    Response metrics;
    metrics.content_type = "text/plain; version=0.0.4; charset=utf-8";
    metrics.body = prometheus_metrics(repository_.all());
    return answer_now(exchange, std::move(metrics));
  }
  if (is({"v1", "classify"})) {
    require_method(*exchange, "POST");
    const std::string top = target.value("top");
    const std::optional<int64_t> count = top.empty() ? 5 : parse_number<int64_t>(top);
    if (!count || *count < 1) throw ServiceError(400, "top is '" + top + "'; expected a whole number from 1");
    return classify(exchange, model_of(target), *count, options_, pool_);
  }
  if (is({"v1", "detect"})) {
    require_method(*exchange, "POST");
    constexpr int64_t kAll = 100;
    const std::string least = target.value("least_score");
    const std::optional<int64_t> percent = least.empty() ? 0 : parse_number<int64_t>(least);
    if (!percent || *percent < 0 || *percent > kAll) {
      throw ServiceError(400, "least_score is '" + least + "'; expected a whole number of percent from 0 to 100");
    }
    return detect(exchange, model_of(target), static_cast<double>(*percent) / kAll, options_, pool_);
  }
  if (is({"v1", "segment"})) {
    require_method(*exchange, "POST");
    return segment(exchange, model_of(target), options_, pool_);
  }
  if (is({"v1", "explain"})) {
    require_method(*exchange, "POST");
    std::string method = target.value("method");
    std::ranges::replace(method, ' ', '+');  // gradcam++ as a user writes it, whose pluses are spaces in an address
    const ExplainQuery query{target.value("class"), target.value("layer"), std::move(method)};
    return explain_image(exchange, model_of(target), query, options_, explainers_);
  }
  if (!path.empty() && path.front() == "v2") {
    if (path.size() == 1) {
      require_method(*exchange, "GET");
      return answer_now(exchange, json_response(server_metadata()));
    }
    if (route_health(exchange, target) || route_model(exchange, target) || route_repository(exchange, target)) return;
    for (const char* feature : {"systemsharedmemory", "cudasharedmemory", "trace", "logging"}) {
      if (path[1] == feature) throw ServiceError(501, "the service does not offer '" + path[1] + "'");
    }
  }
  throw ServiceError(404, "there is nothing at " + std::string(path_of(exchange->target())));
}

ServedModelPtr Api::model_of(const Target& target) const {
  std::string name = target.value("model");
  if (name.empty()) {
    const std::vector<ServedModelPtr> models = repository_.all();
    if (models.empty()) throw ServiceError(503, "no model is loaded");
    if (std::ranges::any_of(models, [&](const auto& model) { return model->name != models.front()->name; })) {
      throw ServiceError(400, "the service has several models; say which, as in /v1/" + target.path.back() +
                                  "?model=" + models.front()->name);
    }
    name = models.front()->name;
  }
  return repository_.find(name, target.value("version"));
}

bool Api::route_health(const ExchangePtr& exchange, const Target& target) {
  if (target.path.size() != 3 || target.path[1] != "health") return false;
  require_method(*exchange, "GET");
  // A lost device can't be used again in this process: only a new one helps, so this one is not alive.
  const bool lost = repository_.lost();
  if (target.path[2] == "live") {
    answer_now(exchange, lost ? error_response(400, "a model's device is lost; restart the service") : Response{});
    return true;
  }
  if (target.path[2] != "ready") return false;
  if (lost || draining_) {
    answer_now(exchange, error_response(400, lost ? "a model's device is lost" : "the service is shutting down"));
  } else {
    answer_now(exchange, Response{});
  }
  return true;
}

bool Api::route_model(const ExchangePtr& exchange, const Target& target) {
  const std::vector<std::string>& path = target.path;
  if (path[1] != "models" || path.size() < 3) return false;
  if (path.size() == 3 && path[2] == "stats") {
    require_method(*exchange, "GET");
    answer_now(exchange, json_response(model_statistics(repository_.all())));
    return true;
  }
  std::size_t at = 3;
  std::string version;
  if (path.size() >= 5 && path[3] == "versions") {
    version = path[4];
    at = 5;
  }
  if (path.size() > at + 1) return false;
  const std::string action = path.size() == at ? "" : path[at];
  const bool known =
      action.empty() || action == "ready" || action == "config" || action == "stats" || action == "infer";
  if (!known) return false;
  require_method(*exchange, action == "infer" ? "POST" : "GET");
  const ServedModelPtr model = repository_.find(path[2], version);
  if (action == "infer") {
    infer(exchange, model, options_, pool_);
  } else if (action == "ready") {
    const bool ready = !model->batcher.lost() && !draining_;
    answer_now(exchange, ready ? Response{} : error_response(400, "the model is not ready"));
  } else if (action == "config") {
    answer_now(exchange, json_response(model_config(*model)));
  } else if (action == "stats") {
    std::vector<ServedModelPtr> models = {model};
    if (version.empty()) {
      models = repository_.all();
      std::erase_if(models, [&](const ServedModelPtr& one) { return one->name != model->name; });
    }
    answer_now(exchange, json_response(model_statistics(models)));
  } else {
    answer_now(exchange, json_response(model_metadata(repository_, *model)));
  }
  return true;
}

bool Api::route_repository(const ExchangePtr& exchange, const Target& target) {
  const std::vector<std::string>& path = target.path;
  if (path[1] != "repository") return false;
  const nlohmann::json body = [&] {
    if (exchange->body().empty()) return nlohmann::json::object();
    nlohmann::json parsed = nlohmann::json::parse(exchange->body(), nullptr, false);
    if (!parsed.is_object()) throw ServiceError(400, "failed to parse the request JSON: expected an object");
    return parsed;
  }();
  if (path.size() == 3 && path[2] == "index") {
    require_method(*exchange, "POST");
    const auto ready = body.find("ready");
    answer_now(exchange, json_response(repository_index(
                             repository_, ready != body.end() && ready->is_boolean() && ready->get<bool>())));
    return true;
  }
  const bool is_model = path.size() == 5 && path[2] == "models" && (path[4] == "load" || path[4] == "unload");
  if (!is_model) return false;
  require_method(*exchange, "POST");
  const auto parameters = body.find("parameters");
  if (path[4] == "load" && parameters != body.end() && parameters->is_object()) {
    for (const auto& [name, value] : parameters->items()) {
      if (name == "config" || name.starts_with("file:")) {
        throw ServiceError(501, "a model is loaded as it lies on the server's disk; '" + name + "' can't be sent");
      }
    }
  }
  pool_.run(answer_task(exchange, [this, name = path[3], load = path[4] == "load"] {
    if (load) {
      repository_.load(name);
    } else {
      repository_.unload(name);
    }
    return Response{};
  }));
  return true;
}

}  // namespace gpunn::serving
