#include "execution/ranks/collective.hpp"

#include <gpunn/error.hpp>
#include <gpunn/kernel.hpp>
#include <gpunn/ops.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace gpunn::execution {

namespace {

std::span<std::byte> content_of(const gpunn_tensor& tensor, DType dtype) {
  return {static_cast<std::byte*>(tensor.data),
          static_cast<std::size_t>(plugin::element_count(tensor)) * size_of(dtype)};
}

void copy(const Level& level, gpunn_stream* stream, void* to, const void* from, std::size_t bytes, int32_t direction) {
  plugins::call(
      *level.plugin, [] { return std::string("copy for a collective"); },
      [&](gpunn_error* error) { return level.table().copy(stream, to, from, bytes, direction, error); });
}

void wait(const Level& level, gpunn_stream* stream) {
  plugins::call(
      *level.plugin, [] { return std::string("stream_sync for a collective"); },
      [&](gpunn_error* error) { return level.table().stream_sync(stream, error); });
}

int32_t kind_of(int32_t op) {
  return op == GPUNN_OP_ALL_REDUCE       ? int32_t{GPUNN_ALL_REDUCE}
         : op == GPUNN_OP_REDUCE_SCATTER ? int32_t{GPUNN_REDUCE_SCATTER}
                                         : int32_t{GPUNN_ALL_GATHER};
}

// What the extension counts: what a rank gives of an ALL_GATHER, else what it gets.
gpunn_collective_desc described(const graph::OpSignature& signature, bool deterministic) {
  const TensorType& counted = signature.op == GPUNN_OP_ALL_GATHER ? signature.inputs.at(0) : signature.outputs.at(0);
  return {.struct_size = sizeof(gpunn_collective_desc),
          .kind = kind_of(signature.op),
          .dtype = static_cast<int32_t>(counted.dtype),
          .root = 0,
          .count = static_cast<uint64_t>(counted.elements()),
          .flags = deterministic ? uint32_t{GPUNN_OP_REQUIRE_DETERMINISTIC} : 0U,
          .reserved = 0};
}

}  // namespace

bool is_collective(int32_t op) {
  return op == GPUNN_OP_ALL_REDUCE || op == GPUNN_OP_REDUCE_SCATTER || op == GPUNN_OP_ALL_GATHER;
}

RankCollective::RankCollective(std::shared_ptr<distributed::Team> team, std::shared_ptr<RankCommunicator> communicator,
                               const graph::OpSignature& signature, bool deterministic)
    : team_(std::move(team)),
      op_(signature.op),
      parts_(signature.attrs.as<gpunn_all_reduce_attrs>().parts),
      dtype_(signature.inputs.at(0).dtype),
      desc_(described(signature, deterministic)) {
  const bool part_a_rank = team_ == nullptr || parts_ == team_->world();
  if (op_ == GPUNN_OP_ALL_GATHER && !part_a_rank) {
    throw Error("ALL_GATHER of " + std::to_string(parts_) + " parts on " + std::to_string(team_->world()) +
                " ranks: each rank gives one");
  }
  if (communicator == nullptr || !part_a_rank) return;
  if (const std::optional<uint32_t> served = communicator->serves(desc_)) {
    flags_ = *served;
    communicator_ = std::move(communicator);
  }
}

void RankCollective::run_on_host(std::span<const std::byte> x, std::span<std::byte> y) {
  if (op_ == GPUNN_OP_ALL_REDUCE) return team_->all_reduce_parts(dtype_, x, y, parts_);
  if (op_ == GPUNN_OP_ALL_GATHER) return team_->all_gather(x, y);
  sum_.resize(y.size() * static_cast<std::size_t>(team_->world()));
  team_->all_reduce_parts(dtype_, x, sum_, parts_);
  std::memcpy(y.data(), sum_.data() + y.size() * static_cast<std::size_t>(team_->rank()), y.size());
}

void RankCollective::run(const Level& level, gpunn_stream* stream, const gpunn_op_args& args) {
  if (team_ != nullptr) team_->arrive();
  const std::span<std::byte> x = content_of(*args.inputs[0], dtype_), y = content_of(*args.outputs[0], dtype_);
  if (communicator_ != nullptr) return communicator_->enqueue(stream, desc_, x.data(), y.data());
  if (team_ == nullptr) throw Error("a step that was planned for several ranks can't be run by one");
  if (level.on_host()) return run_on_host(x, y);
  x_.resize(x.size());
  y_.resize(y.size());
  copy(level, stream, x_.data(), x.data(), x.size(), GPUNN_DEVICE_TO_HOST);
  wait(level, stream);
  run_on_host(x_, y_);
  copy(level, stream, y.data(), y_.data(), y.size(), GPUNN_HOST_TO_DEVICE);
  wait(level, stream);
}

}  // namespace gpunn::execution
