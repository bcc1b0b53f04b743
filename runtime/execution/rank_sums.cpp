#include "execution/rank_sums.hpp"

#include <gpunn/kernel.hpp>

#include <span>
#include <string>
#include <utility>

namespace gpunn::execution {

namespace {

std::span<std::byte> content_of(const gpunn_tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data),
          static_cast<std::size_t>(plugin::element_count(tensor)) * sizeof(float)};
}

void copy(const Level& level, gpunn_stream* stream, void* to, const void* from, std::size_t bytes, int32_t direction) {
  plugins::call(
      *level.plugin, [] { return std::string("copy for ALL_REDUCE"); },
      [&](gpunn_error* error) { return level.table().copy(stream, to, from, bytes, direction, error); });
}

void wait(const Level& level, gpunn_stream* stream) {
  plugins::call(
      *level.plugin, [] { return std::string("stream_sync for ALL_REDUCE"); },
      [&](gpunn_error* error) { return level.table().stream_sync(stream, error); });
}

}  // namespace

RankSums::RankSums(std::shared_ptr<distributed::Team> team, std::shared_ptr<RankCommunicator> communicator,
                   const graph::OpSignature& signature, bool deterministic)
    : team_(std::move(team)), parts_(signature.attrs.as<gpunn_all_reduce_attrs>().parts) {
  if (communicator == nullptr || parts_ != team_->world()) return;
  const auto count = static_cast<uint64_t>(signature.outputs.at(0).elements());
  if (const std::optional<uint32_t> served = communicator->serves(count, deterministic)) {
    flags_ = *served;
    communicator_ = std::move(communicator);
  }
}

void RankSums::run(const Level& level, gpunn_stream* stream, const gpunn_op_args& args) {
  const std::span<std::byte> x = content_of(*args.inputs[0]), y = content_of(*args.outputs[0]);
  if (communicator_ != nullptr) {
    return communicator_->all_reduce(stream, x.data(), y.data(), y.size() / sizeof(float));
  }
  if (level.on_host()) return team_->all_reduce_parts(DType::f32, x, y, parts_);
  x_.resize(x.size());
  y_.resize(y.size());
  copy(level, stream, x_.data(), x.data(), x.size(), GPUNN_DEVICE_TO_HOST);
  wait(level, stream);
  team_->all_reduce_parts(DType::f32, x_, y_, parts_);
  copy(level, stream, y.data(), y_.data(), y.size(), GPUNN_HOST_TO_DEVICE);
  wait(level, stream);
}

}  // namespace gpunn::execution
