#include "serving/grpc/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/slice.h>

namespace gpunn::serving {

namespace {

constexpr std::size_t kMostCopied = 4096;  // less than what a slice of its own costs

// Protobuf's variable-length integer.
void append_varint(std::string& bytes, uint64_t value) {
  constexpr uint64_t kMore = 0x80;
  for (; value >= kMore; value >>= 7U) bytes += static_cast<char>(value | kMore);
  bytes += static_cast<char>(value);
}

grpc::Slice slice_of(const SharedBytes& tensor) {
  auto owner = std::make_unique<std::shared_ptr<const void>>(tensor.memory);
  const auto release = [](void* memory) { delete static_cast<std::shared_ptr<const void>*>(memory); };
  // gRPC reads it alone.
  return {const_cast<char*>(tensor.bytes.data()), tensor.bytes.size(), release, owner.release()};
}

}  // namespace

std::optional<grpc::ByteBuffer> infer_answer_bytes(const ::inference::ModelInferResponse& message,
                                                   const std::vector<SharedBytes>& tensors) {
  using google::protobuf::internal::WireFormatLite;
  constexpr uint32_t kTag = WireFormatLite::MakeTag(::inference::ModelInferResponse::kRawOutputContentsFieldNumber,
                                                    WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  std::vector<grpc::Slice> slices;
  std::string copied = message.SerializeAsString();
  std::size_t bytes = copied.size();
  for (const SharedBytes& tensor : tensors) {
    const std::size_t before = copied.size();
    append_varint(copied, kTag);
    append_varint(copied, tensor.bytes.size());
    bytes += copied.size() - before + tensor.bytes.size();
    if (tensor.bytes.size() <= kMostCopied || tensor.memory == nullptr) {
      copied += tensor.bytes;
      continue;
    }
    slices.emplace_back(std::exchange(copied, {}));
    slices.push_back(slice_of(tensor));
  }
  if (bytes > std::numeric_limits<int32_t>::max()) return std::nullopt;
  if (!copied.empty()) slices.emplace_back(copied);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace gpunn::serving
