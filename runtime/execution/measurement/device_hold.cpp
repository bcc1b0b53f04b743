#include "execution/measurement/device_hold.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cmath>

#include "execution/streams/event.hpp"

namespace gpunn::execution {

namespace {

constexpr int64_t kSide = 1024;
constexpr uint64_t kCopied = uint64_t{32} << 20;
constexpr int kMeasured = 5;
constexpr double kMost = 1000;  // holds at a time

}  // namespace

DeviceHold::DeviceHold(Backend& backend) : backend_(backend) {
  const TensorType type{DType::f32, {kSide, kSide}};
  const graph::OpSignature signature{
      GPUNN_OP_MATMUL, graph::Attributes::of(gpunn_matmul_attrs{}), {type, type}, {type}};
  if (const Placement placement = backend.place(signature); placement.level >= 0) {
    kernel_ = backend.create(signature, placement);
    for (int i = 0; i < 3; ++i) {
      buffers_.push_back(backend.allocate(type.bytes()));
      backend.fill(buffers_.back().data(), 0, type.bytes());
      tensors_.push_back(abi_tensor(type, buffers_.back().data()));
    }
    buffers_.push_back(backend.allocate(placement.workspace_bytes));
  } else {
    for (int i = 0; i < 2; ++i) buffers_.push_back(backend.allocate(kCopied));
  }
  enqueue_one();
  Event start = backend.make_event(), stop = backend.make_event();
  start.record();
  for (int i = 0; i < kMeasured; ++i) enqueue_one();
  stop.record();
  stop.synchronize();
  seconds_ = stop.milliseconds_since(start) * 1e-3 / kMeasured;
}

void DeviceHold::enqueue_one() {
  if (kernel_) {
    kernel_.enqueue(std::span(tensors_).first(2), std::span(tensors_).last(1), buffers_.back().data(), "MATMUL");
  } else {
    backend_.copy(buffers_[0].data(), buffers_[1].data(), kCopied);
  }
}

void DeviceHold::enqueue(double seconds) {
  const double wanted = std::max(seconds, 200e-6);
  const double count = seconds_ > 0 ? std::clamp(std::ceil(wanted / seconds_), 1.0, kMost) : 1.0;
  for (int i = 0; i < static_cast<int>(count); ++i) enqueue_one();
}

}  // namespace gpunn::execution
