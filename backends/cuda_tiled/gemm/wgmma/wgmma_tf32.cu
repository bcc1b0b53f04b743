// TF32 matrix products on Hopper: assigns the operands and decides which must be copied first.
//
// TMA needs lines at multiples of 16 bytes: other operands are copied to the workspace with padded, K-major lines. Only
// one operand can come from registers, so if neither is K-major, the smaller one is transposed there. For
// gemm:wgmma_small every operand that is not K-major is transposed. TMA rounds to nearest, to TF32's ten bits of
// mantissa.
#include <string>
#include <utility>
#include <vector>

#include "gemm/masked.hpp"
#include "gemm/wgmma/operand_copy.hpp"
#include "gemm/wgmma/wgmma_launch.cuh"

namespace gpunn::cuda_tiled {
namespace {

using backends::Matmul;

constexpr WgmmaOperands kBothKMajor{Element::kTf32, Major::kK, Major::kK};
constexpr WgmmaOperands kMnMajorA{Element::kTf32, Major::kMN, Major::kK};  // from registers
constexpr int64_t kAlignedFloats = kTensorMapAlignment / int64_t{sizeof(float)};

struct Operand {
  int64_t outer;  // m or n
  Major major;
  bool copied;
};

struct Tf32Plan {
  Operand a, b;
};

int64_t pitch_of_copy(int64_t k) { return cuda::divide_up(k, kAlignedFloats) * kAlignedFloats; }

uint64_t bytes_of_copy(const Operand& operand, int64_t k) {
  if (!operand.copied) return 0;
  return cuda::workspace_aligned(sizeof(float) * static_cast<uint64_t>(operand.outer) *
                                 static_cast<uint64_t>(pitch_of_copy(k)));
}

Operand operand_of(int64_t outer, int64_t k, bool along_k) {
  return {
      .outer = outer, .major = along_k ? Major::kK : Major::kMN, .copied = (along_k ? k : outer) % kAlignedFloats != 0};
}

Tf32Plan plan_of(WgmmaKernel kernel, const Matmul& shape) {
  Tf32Plan plan{.a = operand_of(shape.m, shape.k, !shape.transpose_a),
                .b = operand_of(shape.n, shape.k, shape.transpose_b)};
  if (kernel == WgmmaKernel::kSmall) {
    for (Operand* operand : {&plan.a, &plan.b}) operand->copied |= operand->major == Major::kMN;
  }
  const auto in_registers = [](const Operand& operand) { return operand.major == Major::kMN && !operand.copied; };
  if (in_registers(plan.a) && in_registers(plan.b)) (shape.m <= shape.n ? plan.a : plan.b).copied = true;
  return plan;
}

// As the kernel finds it.
struct Placed {
  MatrixInMemory matrix;
  Major major;
};

Placed placed(const Operand& operand, int64_t k, const float* data, const float* room) {
  if (operand.copied) {
    return {{.data = room, .inner = k, .outer = operand.outer, .pitch = pitch_of_copy(k)}, Major::kK};
  }
  const bool along_k = operand.major == Major::kK;
  const int64_t line = along_k ? k : operand.outer;
  return {{.data = data, .inner = line, .outer = along_k ? operand.outer : k, .pitch = line}, operand.major};
}

struct PlacedOperands {
  Placed a, b;
};

// Makes the copies, that of a in front of that of b.
PlacedOperands place(const Tf32Plan& plan, int64_t k, const float* a, const float* b, uint8_t* room,
                     cudaStream_t stream) {
  auto* const room_a = reinterpret_cast<float*>(room);
  auto* const room_b = reinterpret_cast<float*>(room + bytes_of_copy(plan.a, k));
  TransposedCopy transposed[2];
  int count = 0;
  const auto copy = [&](const Operand& operand, const float* from, float* to) {
    if (!operand.copied) return;
    if (operand.major == Major::kK)
      copy_pitched(from, operand.outer, k, to, pitch_of_copy(k), stream);
    else
      transposed[count++] = {.from = from, .rows = k, .columns = operand.outer, .to = to, .pitch = pitch_of_copy(k)};
  };
  copy(plan.a, a, room_a);
  copy(plan.b, b, room_b);
  if (count > 0) copy_transposed(transposed[0], transposed[1], stream);
  return {placed(plan.a, k, a, room_a), placed(plan.b, k, b, room_b)};
}

uint64_t workspace_of(const Tf32Plan& plan, int64_t k) { return bytes_of_copy(plan.a, k) + bytes_of_copy(plan.b, k); }

// Consumers of a masked product's tiling, whose y' is y^T.
template <WgmmaKernel kKernel>
inline constexpr int kConsumersOf = kKernel == WgmmaKernel::kSplit ? 2 : 1;

// Columns of y are added up in so many parts: from each tile, of each block that has a part of K.
template <WgmmaKernel kKernel>
int64_t parts_of_columns(const Matmul& shape) {
  using T = SplitTiling<kMnMajorA, kConsumersOf<kKernel>>;
  return cuda::divide_up(shape.m, T::kColumns) * split_parts<T, true, true>(shape.n, shape.m, shape.k);
}

template <WgmmaKernel kKernel>
std::string refuses_masked(const Gemm& problem) {
  if (problem.precision != GPUNN_PRECISION_TF32) return "the precision is not TF32";
  std::string refusal = wgmma_refuses(kKernel, problem);
  if (refusal.empty()) refusal = refusal_of_mask(problem, parts_of_columns<kKernel>(problem.shape));
  if (refusal.empty() && problem.shape.n % kAlignedFloats != 0) refusal = "a row is not a multiple of 4";
  return refusal;
}

// The copy of an operand lies in front of the parts.
template <WgmmaKernel kKernel>
uint64_t masked_workspace(const Gemm& problem) {
  const Matmul& shape = problem.shape;
  return workspace_of(plan_of(kKernel, shape), shape.k) + bytes_of_parts(problem, parts_of_columns<kKernel>(shape));
}

// By kSplit or kSplitLow, of an a where K runs along lines and a b where n does: y^T is computed, with b^T from
// registers.
template <WgmmaKernel kKernel>
void run_masked(const Gemm& problem, cudaStream_t stream, const cuda::OpArgs& args, unsigned* counters) {
  const Matmul& shape = problem.shape;
  const Tf32Plan plan = plan_of(kKernel, shape);
  auto* const room = args.workspace<uint8_t>();
  const PlacedOperands placed = place(plan, shape.k, args.in<float>(0), args.in<float>(1), room, stream);
  const WgmmaOutput out{.y = args.out<float>(0),
                        .rows = static_cast<int>(shape.n),
                        .columns = static_cast<int>(shape.m),
                        .epilogue = {},
                        .mask = {.y = args.in<float>(2),
                                 .parts = reinterpret_cast<float*>(room + workspace_of(plan, shape.k)),
                                 .sums = args.out<float>(1),
                                 .counters = counters}};
  launch_split<kMnMajorA, true, kConsumersOf<kKernel>, true>(placed.b.matrix, placed.a.matrix, out, shape.k, stream);
}

template <WgmmaKernel kKernel>
MaskedVariant masked_variant(const char* name) {
  return {.name = name,
          .refuses = refuses_masked<kKernel>,
          .workspace_bytes = masked_workspace<kKernel>,
          .run = run_masked<kKernel>};
}

}  // namespace

std::vector<MaskedVariant> masked_wgmma_variants() {
  return {masked_variant<WgmmaKernel::kSplit>("gemm:wgmma_split"),
          masked_variant<WgmmaKernel::kSplitLow>("gemm:wgmma_split_low")};
}

bool wgmma_compiled() {
  // An empty kernel has no barriers.
  static const bool compiled = [] {
    cudaFuncAttributes attributes{};
    const bool found =
        cudaFuncGetAttributes(&attributes, wgmma_split<SplitTiling<kBothKMajor, 2>, false>) == cudaSuccess;
    cudaGetLastError();  // must not be told by the next launch
    return found && attributes.sharedSizeBytes > 0;
  }();
  return compiled;
}

uint64_t wgmma_tf32_workspace(WgmmaKernel kernel, const Gemm& problem) {
  return workspace_of(plan_of(kernel, problem.shape), problem.shape.k);
}

void wgmma_tf32(WgmmaKernel kernel, const Gemm& problem, cudaStream_t stream, const cuda::OpArgs& args) {
  const Matmul& shape = problem.shape;
  const auto [a, b] =
      place(plan_of(kernel, shape), shape.k, args.in<float>(0), args.in<float>(1), args.workspace<uint8_t>(), stream);
  WgmmaOutput out{.y = args.out<float>(0),
                  .rows = static_cast<int>(shape.m),
                  .columns = static_cast<int>(shape.n),
                  .epilogue = problem.epilogue(args)};
  if (b.major == Major::kMN) {
    std::swap(out.rows, out.columns);
    launch_wgmma_kernel<kMnMajorA, true>(kernel, b.matrix, a.matrix, out, shape.k, stream);
  } else if (a.major == Major::kMN) {
    launch_wgmma_kernel<kMnMajorA, false>(kernel, a.matrix, b.matrix, out, shape.k, stream);
  } else {
    launch_wgmma_kernel<kBothKMajor, false>(kernel, a.matrix, b.matrix, out, shape.k, stream);
  }
}

}  // namespace gpunn::cuda_tiled
