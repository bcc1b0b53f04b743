#include "serving/api/pending.hpp"

#include "serving/protocol/compression.hpp"

namespace gpunn::serving {

std::string_view plain_body(Pending& pending, std::size_t most) {
  const std::string_view body = pending.exchange->body();
  if (coding_of(pending.exchange->header("Content-Encoding")) == Coding::identity) return body;
  pending.inflated = decompress(body, most);
  return pending.inflated;
}

void fail(const Pending& pending, const std::exception& failure) {
  pending.model->statistics.add_failure(Failure::other, Clock::now() - pending.exchange->received());
  answer_now(pending.exchange, response_of(failure));
}

}  // namespace gpunn::serving
