#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "serving/api/api.hpp"
#include "serving/http/server.hpp"

namespace gpunn::serving {

// A request on its way to a model and back. It owns the data that its job points to.
struct Pending {
  ExchangePtr exchange;
  ServedModelPtr model;
  std::string inflated;  // the body, where it was compressed
  JobResult result;
};

// The body without its Content-Encoding. Throws ServiceError if it is damaged or has more than `most` bytes.
std::string_view plain_body(Pending& pending, std::size_t most);

// Answers with the error, and counts it.
void fail(const Pending& pending, const std::exception& failure);

// The job of a request; the caller fills in rows, input and outputs. `answer` makes the response from a result, on a
// network thread, or on `pool` if that takes long; without a result, the client gets the reason.
template <class Work>
Job job_of(const std::shared_ptr<Work>& work, Response (*answer)(const Work&), WorkerPool* pool = nullptr) {
  Job job;
  job.keep = work;
  job.received = work->exchange->received();
  job.abandoned = [exchange = work->exchange.get()] { return exchange->abandoned(); };
  job.done = [weak = std::weak_ptr<Work>(work), answer, pool](JobResult result) {
    const std::shared_ptr<Work> held = weak.lock();
    if (held == nullptr) return;
    static_cast<Pending&>(*held).result = std::move(result);
    const auto make = [held, answer] {
      return held->result.status == 200 ? answer(*held) : error_response(held->result.status, held->result.message);
    };
    if (pool == nullptr || !pool->takes(answer_task(held->exchange, make))) held->exchange->answer(make);
  };
  return job;
}

}  // namespace gpunn::serving
