#pragma once

#include <gpunn/serving.hpp>

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "serving/api/access_log.hpp"
#include "serving/api/worker_pool.hpp"
#include "serving/http/exchange.hpp"
#include "serving/models/repository.hpp"
#include "serving/protocol/target.hpp"

namespace gpunn::serving {

// Answers each request. Threads may share it.
class Api {
 public:
  Api(ModelRepository& repository, const ServingOptions& options);

  // Refuses what needs no body to be refused: without the token, from another site's page, while the service drains.
  std::optional<Response> admit(const RequestHead& head) const;
  void handle(const ExchangePtr& exchange);
  void begin_draining() { draining_ = true; }
  void stop() {
    pool_.stop();
    explainers_.stop();
  }

 private:
  void route(const ExchangePtr& exchange, const Target& target);
  // The model that the target names; optional if there is only one.
  ServedModelPtr model_of(const Target& target) const;
  bool route_health(const ExchangePtr& exchange, const Target& target);
  bool route_model(const ExchangePtr& exchange, const Target& target);
  bool route_repository(const ExchangePtr& exchange, const Target& target);

  ModelRepository& repository_;
  ServingOptions options_;
  std::string token_;
  std::atomic<bool> draining_{false};
  WorkerPool pool_;
  WorkerPool explainers_;  // apart, since a model explains one image at a time
};

// Sends the answer, or the error for what making it throws.
void answer_now(const ExchangePtr& exchange, Response response);
// A task that makes a response and sends it; an exception becomes the answer.
std::function<void()> answer_task(const ExchangePtr& exchange, std::function<Response()> make);
// {"error": ...} with the status of a ServiceError, 400 for a gpunn::Error of the user's making, 500 else.
Response response_of(const std::exception& failure);

// The parts of the API, a file each. They throw ServiceError.
void infer(const ExchangePtr& exchange, const ServedModelPtr& model, const ServingOptions& options, WorkerPool& pool);
void classify(const ExchangePtr& exchange, const ServedModelPtr& model, int64_t top, const ServingOptions& options,
              WorkerPool& pool);
// `least_score`: boxes of a lower score are left out.
void detect(const ExchangePtr& exchange, const ServedModelPtr& model, double least_score, const ServingOptions& options,
            WorkerPool& pool);
void segment(const ExchangePtr& exchange, const ServedModelPtr& model, const ServingOptions& options, WorkerPool& pool);
// The parameters of a request to explain; empty: the default.
struct ExplainQuery {
  std::string class_text, layer, method;
};
void explain_image(const ExchangePtr& exchange, const ServedModelPtr& model, const ExplainQuery& query,
                   const ServingOptions& options, WorkerPool& pool);
std::string server_metadata();
std::string model_metadata(const ModelRepository& repository, const ServedModel& model);
std::string model_config(const ServedModel& model);
std::string model_statistics(const std::vector<ServedModelPtr>& models);
std::string repository_index(const ModelRepository& repository, bool ready_alone);
std::string prometheus_metrics(const std::vector<ServedModelPtr>& models);
std::string_view browser_page();

}  // namespace gpunn::serving
