// A form as browsers send it, with its Content-Type in the first line; the same bytes as an address and as a
// compressed body.
#include <algorithm>

#include "fuzz.hpp"
#include "serving/protocol/compression.hpp"
#include "serving/protocol/multipart.hpp"
#include "serving/protocol/service_error.hpp"
#include "serving/protocol/target.hpp"

namespace {

template <class Action>
void expect_at_most_a_refusal(const Action& action) {
  try {
    action();
  } catch (const gpunn::serving::ServiceError&) {  // with a message, for the client
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  using namespace gpunn::serving;
  const std::string_view text = gpunn::fuzz::text_of(data, bytes);
  expect_at_most_a_refusal([&] {
    const std::size_t line = std::min(text.find('\n'), text.size());
    const std::string boundary = multipart_boundary(text.substr(0, line));
    if (boundary.empty()) return;
    const std::string_view body = text.substr(std::min(line + 1, text.size()));
    for (const FormPart& part : parse_multipart(body, boundary)) {
      if (part.content.data() < body.data() || part.content.data() + part.content.size() > body.data() + body.size()) {
        std::abort();
      }
    }
  });
  expect_at_most_a_refusal([&] { parse_target(text); });
  expect_at_most_a_refusal([&] { coding_of(text); });
  accepted_coding(text);
  constexpr std::size_t kMost = 100'000;
  expect_at_most_a_refusal([&] {
    if (decompress(text, kMost).size() > kMost) std::abort();
  });
  return 0;
}
