// The body of an inference request: JSON, and tensors behind it. The first two bytes say how long the JSON is.
#include "fuzz.hpp"
#include "serving/protocol/infer_request.hpp"
#include "serving/protocol/service_error.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  using namespace gpunn;
  using namespace gpunn::serving;
  if (bytes < 2) return 0;
  const std::size_t length = data[0] + std::size_t{256} * data[1];
  const std::string_view body = fuzz::text_of(data + 2, bytes - 2);
  for (const std::optional<std::size_t> header : {std::optional<std::size_t>(), std::optional<std::size_t>(length)}) {
    try {
      const InferRequest request = parse_infer_request(body, header);
      for (const InferInput& input : request.inputs) {
        for (const DType type : {DType::f32, DType::u8, DType::i64, DType::bf16}) {
          std::string converted;
          try {
            const std::string_view values = packed_values(input, type, converted);
            int64_t count = 1;
            for (const int64_t size : input.shape) count *= size;
            if (values.size() != static_cast<std::size_t>(count) * size_of(type)) std::abort();
          } catch (const ServiceError&) {  // with a message, for the client
          }
          if (converted.size() > 8 * bytes) std::abort();
        }
      }
    } catch (const ServiceError&) {
    }
  }
  return 0;
}
