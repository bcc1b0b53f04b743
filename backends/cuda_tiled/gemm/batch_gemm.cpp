// BATCH_MATMUL of a few large matrices: one MATMUL for each, by the kernel that this device chooses for a single one.
// In that kernel several blocks share a long sum if the matrices are small, as Gram matrices are.
#include <gpunn/op_signature.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/matmul.hpp"
#include "device.hpp"
#include "kernels.hpp"
#include "op_arguments.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace plugin;
using backends::BatchMatmul;

// Above it the launches of many products cost more than a GPU that is shared badly.
constexpr int64_t kMostProducts = 16;
// Below it a product is over before the next one is launched.
constexpr int64_t kLeastWork = int64_t{1} << 20;

// Each matrix begins as aligned as the kernels of products want theirs.
bool is_aligned(const gpunn_tensor& all) {
  constexpr int64_t kAlignment = 16;
  return all.dim[1] * all.dim[2] * static_cast<int64_t>(ops::dtype_bytes(all.dtype)) % kAlignment == 0;
}

// The i-th matrix of a tensor of them.
gpunn_tensor matrix_of(const gpunn_tensor& all, int64_t i) {
  gpunn_tensor one = all;
  one.rank = 2;
  for (int d = 0; d < 2; ++d) {
    one.dim[d] = all.dim[d + 1];
    one.stride[d] = all.stride[d + 1];
  }
  if (all.data != nullptr) {
    one.data = static_cast<uint8_t*>(all.data) + i * all.stride[0] * static_cast<int64_t>(ops::dtype_bytes(all.dtype));
  }
  return one;
}

// The op of the first product.
class OneProduct {
 public:
  explicit OneProduct(const OpDesc& all)
      : a_(matrix_of(all.input(0), 0)),
        b_(matrix_of(all.input(1), 0)),
        y_(matrix_of(all.output(0), 0)),
        raw_(all.raw()) {
    raw_.op = GPUNN_OP_MATMUL;
    raw_.inputs = inputs_.data();
    raw_.outputs = outputs_.data();
    raw_.kernel = nullptr;
    raw_.constant_inputs = 0;
  }
  OneProduct(const OneProduct&) = delete;
  OneProduct& operator=(const OneProduct&) = delete;
  OpDesc desc() const { return OpDesc(raw_); }

 private:
  gpunn_tensor a_, b_, y_;
  std::array<const gpunn_tensor*, 2> inputs_ = {&a_, &b_};
  std::array<const gpunn_tensor*, 1> outputs_ = {&y_};
  gpunn_op_desc raw_;
};

Support support(const TiledDevice& device, const OpDesc& desc) {
  const BatchMatmul shape = backends::batch_matmul_of(desc);
  if (shape.batch > kMostProducts || shape.one.m * shape.one.n * shape.one.k < kLeastWork) {
    return Support::no("is for up to 16 products of 2^20 multiplications or more");
  }
  if (!is_aligned(desc.input(0)) || !is_aligned(desc.input(1)) || !is_aligned(desc.output(0))) {
    return Support::no("is for matrices of a multiple of 16 bytes");
  }
  const OneProduct one(desc);
  return device.choose(one.desc()).support;
}

std::unique_ptr<Kernel> create(const TiledDevice& device, const OpDesc& desc) {
  const OneProduct one(desc);
  const Device::Choice choice = device.choose(one.desc());
  if (choice.factory == nullptr) throw backends::Refusal(choice.support.reason);
  return make_kernel(
      [products = desc.output(0).dim[0], workspace_bytes = choice.support.workspace_bytes,
       kernel = std::shared_ptr<Kernel>(choice.factory->create(one.desc()))](Stream& stream, const OpArgs& args) {
        for (int64_t i = 0; i < products; ++i) {
          const gpunn_tensor a = matrix_of(args.input(0), i);
          const gpunn_tensor b = matrix_of(args.input(1), i);
          const gpunn_tensor y = matrix_of(args.output(0), i);
          const OpArguments<2, 1> product({&a, &b}, {&y}, args.workspace<void>(), workspace_bytes);
          kernel->enqueue(stream, product.get());
        }
      });
}

}  // namespace

void add_batch_gemm_kernels(TiledDevice& device) {
  device.add(GPUNN_OP_BATCH_MATMUL, {.query = [&device](const OpDesc& desc) { return support(device, desc); },
                                     .create = [&device](const OpDesc& desc) { return create(device, desc); },
                                     .half = true});
}

}  // namespace gpunn::cuda_tiled
