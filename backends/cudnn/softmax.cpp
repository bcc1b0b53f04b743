// SOFTMAX and its gradient through cuDNN. The base serves LOG_SOFTMAX although cuDNN has it: a plugin that serves a
// part of a composite displaces the base's kernel for the whole composite, and SOFTMAX_CROSS_ENTROPY, which cuDNN
// lacks, is one kernel in the base.
#include "common/softmax.hpp"

#include <gpunn/kernel.hpp>

#include <limits>
#include <memory>
#include <utility>

#include "cuda_common/add_op.hpp"
#include "cudnn_check.hpp"
#include "device.hpp"
#include "kernels.hpp"

namespace gpunn::cudnn {
namespace {

using namespace backends;

// x[rows, columns] as cuDNN's images of one pixel and as many channels as there are columns.
class RowsDescriptor {
 public:
  explicit RowsDescriptor(const SoftmaxRows& shape) {
    check(cudnnCreateTensorDescriptor(&descriptor_), "describing a tensor");
    const cudnnStatus_t code =
        cudnnSetTensor4dDescriptor(descriptor_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, static_cast<int>(shape.rows),
                                   static_cast<int>(shape.columns), 1, 1);
    if (code == CUDNN_STATUS_SUCCESS) return;
    cudnnDestroyTensorDescriptor(descriptor_);
    throw_cudnn(code, "describing a tensor");
  }
  ~RowsDescriptor() { cudnnDestroyTensorDescriptor(descriptor_); }
  RowsDescriptor(const RowsDescriptor&) = delete;
  RowsDescriptor& operator=(const RowsDescriptor&) = delete;

  cudnnTensorDescriptor_t get() const { return descriptor_; }

 private:
  cudnnTensorDescriptor_t descriptor_ = nullptr;
};

SoftmaxRows served(const SoftmaxRows& shape) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  require(shape.rows > 0, "cuDNN has no empty tensors");
  require(shape.rows <= kMost && shape.columns <= kMost / shape.rows, "the tensor is beyond cuDNN's 2^31 - 1 elements");
  return shape;
}

SoftmaxRows forward_rows(const OpDesc& desc) { return served(softmax_of(desc)); }
SoftmaxRows backward_rows(const OpDesc& desc) { return served(softmax_backward_of(desc)); }

void run_forward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm, cudnnTensorDescriptor_t rows,
                 const OpArgs& args) {
  check(cudnnSoftmaxForward(handle, algorithm, CUDNN_SOFTMAX_MODE_INSTANCE, &kOne, rows, args.in<float>(0), &kZero,
                            rows, args.out<float>(0)),
        "cudnnSoftmaxForward");
}

// dy, y -> dx
void run_backward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm, cudnnTensorDescriptor_t rows,
                  const OpArgs& args) {
  check(cudnnSoftmaxBackward(handle, algorithm, CUDNN_SOFTMAX_MODE_INSTANCE, &kOne, rows, args.in<float>(1), rows,
                             args.in<float>(0), &kZero, rows, args.out<float>(0)),
        "cudnnSoftmaxBackward");
}

using Run = void (*)(cudnnHandle_t, cudnnSoftmaxAlgorithm_t, cudnnTensorDescriptor_t, const OpArgs&);

void add(CudnnDevice& device, int32_t op, const char* name, SoftmaxRows (*rows_of)(const OpDesc&),
         cudnnSoftmaxAlgorithm_t algorithm, Run run) {
  plugin::KernelFactory factory;
  factory.query = [rows_of](const OpDesc& desc) {
    rows_of(desc);
    return plugin::Support::yes();
  };
  factory.create = [&device, rows_of, algorithm, run, name](const OpDesc& desc) {
    auto rows = std::make_unique<RowsDescriptor>(rows_of(desc));
    return plugin::make_kernel([handle = device.cudnn_handle(), rows = std::move(rows), algorithm, run, name](
                                   plugin::Stream& stream, const OpArgs& args) {
      const cuda::ProfilerRange range(name);
      check(cudnnSetStream(handle, cuda::native(stream)), "giving cuDNN the stream");
      run(handle, algorithm, rows->get(), args);
    });
  };
  device.add(op, std::move(factory));
}

}  // namespace

void add_softmax_kernels(CudnnDevice& device) {
  add(device, GPUNN_OP_SOFTMAX, "softmax", forward_rows, CUDNN_SOFTMAX_ACCURATE, run_forward);
  add(device, GPUNN_OP_SOFTMAX_BACKWARD, "softmax_backward", backward_rows, CUDNN_SOFTMAX_ACCURATE, run_backward);
}

}  // namespace gpunn::cudnn
