// BF16 matrix products on Hopper for float32 tensors. Both operands are first rounded into the workspace in their
// layout; wgmma accepts bfloat16 with either index contiguous. H200, with the rounding: 1024^3, NN, in 7.2 us
// (gemm:wgmma_small), 0.8 times cuBLAS on bfloat16 tensors; 512^3 in 3.7 us, 0.9 times.
#include "gemm/wgmma/bf16_operand.hpp"
#include "gemm/wgmma/operand_copy.hpp"
#include "gemm/wgmma/wgmma_launch.cuh"

namespace gpunn::cuda_tiled {
namespace {

using backends::Matmul;

template <Major kMajorA, Major kMajorB>
void product(WgmmaKernel kernel, const MatrixInMemory& a, const MatrixInMemory& b, const WgmmaOutput& out, int64_t k,
             cudaStream_t stream) {
  launch_wgmma_kernel<WgmmaOperands{Element::kBf16, kMajorA, kMajorB}, false>(kernel, a, b, out, k, stream);
}

}  // namespace

uint64_t wgmma_bf16_workspace(const Gemm& problem) {
  const Matmul& shape = problem.shape;
  return bf16_operand(shape.m, shape.k, !shape.transpose_a).bytes() +
         bf16_operand(shape.n, shape.k, shape.transpose_b).bytes();
}

void wgmma_bf16_product(WgmmaKernel kernel, const Matmul& shape, const Epilogue& epilogue, const uint16_t* a,
                        int64_t pitch_a, const uint16_t* b, int64_t pitch_b, float* y, cudaStream_t stream) {
  const Bf16Operand of_a = bf16_operand(shape.m, shape.k, !shape.transpose_a);
  const Bf16Operand of_b = bf16_operand(shape.n, shape.k, shape.transpose_b);
  const MatrixInMemory left{.data = a, .inner = of_a.line, .outer = of_a.lines, .pitch = pitch_a};
  const MatrixInMemory right{.data = b, .inner = of_b.line, .outer = of_b.lines, .pitch = pitch_b};
  const WgmmaOutput out{
      .y = y, .rows = static_cast<int>(shape.m), .columns = static_cast<int>(shape.n), .epilogue = epilogue};
  constexpr Major kK = Major::kK, kMN = Major::kMN;
  const auto run = shape.transpose_a ? (shape.transpose_b ? product<kMN, kK> : product<kMN, kMN>)
                                     : (shape.transpose_b ? product<kK, kK> : product<kK, kMN>);
  run(kernel, left, right, out, shape.k, stream);
}

void wgmma_bf16(WgmmaKernel kernel, const Gemm& problem, cudaStream_t stream, const cuda::OpArgs& args) {
  const Matmul& shape = problem.shape;
  const Bf16Operand a = bf16_operand(shape.m, shape.k, !shape.transpose_a);
  const Bf16Operand b = bf16_operand(shape.n, shape.k, shape.transpose_b);
  auto* const room = args.workspace<uint8_t>();
  auto* const room_a = reinterpret_cast<uint16_t*>(room);
  auto* const room_b = reinterpret_cast<uint16_t*>(room + a.bytes());
  copy_bf16({.from = args.in<float>(0), .rows = a.lines, .columns = a.line, .to = room_a, .pitch = a.pitch()},
            {.from = args.in<float>(1), .rows = b.lines, .columns = b.line, .to = room_b, .pitch = b.pitch()}, stream);
  wgmma_bf16_product(kernel, shape, problem.epilogue(args), room_a, a.pitch(), room_b, b.pitch(), args.out<float>(0),
                     stream);
}

}  // namespace gpunn::cuda_tiled
