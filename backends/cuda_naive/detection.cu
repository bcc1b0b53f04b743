// Ops of object detection. One thread computes one point, one anchor, or one row of a loss. In addition, ASSIGN_ANCHORS
// uses one thread block a box, TOP_MASK one block a row, and NON_MAXIMUM_SUPPRESSION one block an image.
//
// Boxes are computed in f64, as common/detection.hpp defines: the few operations of a point cost less than reading its
// numbers.
//
// Suppression is the plain loop. It finds the best remaining box, keeps it, removes the boxes that overlap it, and
// repeats this `most` times. In each round the threads of a block stride through all boxes and classes of an image. In
// the same pass they check whether the box kept last removes their own. So the time is `most` times that of reading the
// scores. The next version would sort the few relevant scores once and compare all pairs of them at once, one bit a
// pair.
#include "block_tree.cuh"
#include "common/detection.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

__global__ void grid_points(float* points, GridPoints plan) {
  const int64_t i = thread_index();
  if (i < plan.rows * plan.columns * 3) points[i] = plan.value(i / 3, i % 3);
}

__device__ void write_box(const float* box, float* to) {
  for (int i = 0; i < 4; ++i) to[i] = box == nullptr ? 0.0F : box[i];
}

__global__ void assign_points(const float* points, const float* boxes, int32_t* label, float* box, float* centerness,
                              AssignPoints plan) {
  const int64_t i = thread_index();
  if (i >= plan.images * plan.points) return;
  const float* image = boxes + i / plan.points * plan.boxes * 5;
  const float* point = points + i % plan.points * 3;
  const int64_t m = plan.box_of(point, image);
  const float* found = m < 0 ? nullptr : image + m * 5;
  label[i] = m < 0 ? -1 : class_of_box(found);
  write_box(found, box + 4 * i);
  centerness[i] = m < 0 ? 0.0F : static_cast<float>(sqrt(AssignPoints::sides(point, found).balance()));
}

// A value and where it is, of which the smallest place counts among equal values. -1: nowhere.
struct Best {
  double value;
  int64_t at;
};

__device__ Best better(Best a, Best b) {
  if (a.at < 0) return b;
  if (b.at < 0) return a;
  return a.value > b.value || (a.value == b.value && a.at < b.at) ? a : b;
}

__global__ void take_anchors(const float* anchors, const float* boxes, int32_t* taken, AssignAnchors plan) {
  for (int64_t i = blockIdx.x; i < plan.images * plan.boxes; i += gridDim.x) {
    Best best{0.0, -1};
    for (int64_t a = threadIdx.x; a < plan.anchors; a += blockDim.x) {
      const double overlap = overlap_of(Corners::of(anchors + a * 4), Corners::of(boxes + i * 5));
      if (overlap > best.value) best = {overlap, a};
    }
    best = block_tree(best, better);
    if (threadIdx.x == 0) taken[i] = static_cast<int32_t>(best.at);
  }
}

__global__ void assign_anchors(const float* anchors, const float* boxes, const int32_t* taken, int32_t* label,
                               float* box, AssignAnchors plan) {
  const int64_t i = thread_index();
  if (i >= plan.images * plan.anchors) return;
  const int64_t n = i / plan.anchors, a = i % plan.anchors;
  const float* image = boxes + n * plan.boxes * 5;
  const int64_t m = plan.box_of(anchors + a * 4, image, taken + n * plan.boxes, a);
  const float* found = m < 0 ? nullptr : image + m * 5;
  label[i] = m < 0 ? static_cast<int32_t>(m) : class_of_box(found);
  write_box(found, box + 4 * i);
}

__device__ float logistic(float x) { return 1.0F / (1.0F + expf(-x)); }
__device__ float softplus(float x) { return fmaxf(x, 0.0F) + log1pf(expf(-fabsf(x))); }
__device__ float focal_power(float y, float gamma) { return gamma == 2.0F ? y * y : powf(y, gamma); }

__global__ void focal_loss(const float* x, const int32_t* label, float* loss, Focal plan) {
  const int64_t row = thread_index();
  if (row >= plan.rows) return;
  const int32_t own = label[row];
  double sum = 0.0;
  for (int64_t c = 0; c < plan.classes && plan.counts(own); ++c) {
    const float z = c == own ? -x[row * plan.classes + c] : x[row * plan.classes + c];
    // fmaxf would lose a NaN.
    const float term = (c == own ? plan.attrs.alpha : 1.0F - plan.attrs.alpha) *
                       focal_power(logistic(z), plan.attrs.gamma) * softplus(z);
    sum += static_cast<double>(isnan(z) ? z : term);
  }
  loss[row] = static_cast<float>(sum);
}

__global__ void focal_loss_backward(const float* dloss, const float* x, const int32_t* label, float* dx, Focal plan) {
  const int64_t i = thread_index();
  if (i >= plan.rows * plan.classes) return;
  const int64_t row = i / plan.classes;
  if (!plan.counts(label[row])) {
    dx[i] = 0.0F;
    return;
  }
  const bool own = i % plan.classes == label[row];
  const float z = own ? -x[i] : x[i];
  const float q = logistic(z);
  const float slope = focal_power(q, plan.attrs.gamma) * (plan.attrs.gamma * logistic(-z) * softplus(z) + q);
  dx[i] = dloss[row] * (own ? -plan.attrs.alpha : 1.0F - plan.attrs.alpha) * (isnan(z) ? z : slope);
}

__global__ void giou_loss(const float* a, const float* b, float* loss, GiouRows plan) {
  const int64_t i = thread_index();
  if (i < plan.rows) loss[i] = static_cast<float>(Giou(a + 4 * i, b + 4 * i).loss());
}

__global__ void giou_loss_backward(const float* dloss, const float* a, const float* b, float* da, GiouRows plan) {
  const int64_t i = thread_index();
  if (i >= plan.rows) return;
  const Giou pair(a + 4 * i, b + 4 * i);
  for (int corner = 0; corner < 4; ++corner) {
    da[4 * i + corner] = static_cast<float>(static_cast<double>(dloss[i]) * pair.gradient(corner));
  }
}

// A number that grows with x: that of -0 is 0's, and a NaN's is below all others.
__device__ uint32_t ordered(float x) {
  if (isnan(x)) return 0;
  const uint32_t bits = __float_as_uint(x + 0.0F);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

// A row a block, without sorting: bit after bit, the largest number that so many elements reach. Of those equal to it
// the first ones are wanted; up to which place is found in the same way.
__global__ void top_mask(const float* values, const float* counts, float* mask, TopMask plan) {
  const int64_t n = blockIdx.x;
  const float* x = values + n * plan.size;
  const auto count = [&](const auto& holds) {
    int64_t mine = 0;
    for (int64_t i = threadIdx.x; i < plan.size; i += blockDim.x) mine += holds(ordered(x[i]), i) ? 1 : 0;
    return block_sum(mine);
  };
  const int64_t numbers = count([](uint32_t key, int64_t) { return key > 0; });
  const int64_t wanted = TopMask::wanted(counts[n], numbers);
  uint32_t least = 0;
  for (uint32_t bit = 0x80000000U; bit != 0; bit >>= 1) {
    const uint32_t tried = least | bit;
    if (count([tried](uint32_t key, int64_t) { return key >= tried; }) >= wanted) least = tried;
  }
  const int64_t equal = wanted - count([least](uint32_t key, int64_t) { return key > least; });
  // Fewer than `equal` of the equal elements lie before `end`; one more where `end` is passed by one.
  int64_t end = 0;
  for (int64_t step = int64_t{1} << 31; step != 0; step >>= 1) {
    const int64_t tried = end + step;
    if (count([least, tried](uint32_t key, int64_t i) { return key == least && i < tried; }) < equal) end = tried;
  }
  float* y = mask + n * plan.size;
  for (int64_t i = threadIdx.x; i < plan.size; i += blockDim.x) {
    const uint32_t key = ordered(x[i]);
    y[i] = wanted > 0 && (key > least || (key == least && i <= end && equal > 0)) ? 1.0F : 0.0F;
  }
}

// `gone` has a byte for each box and class of each image: 1 where it is kept or struck out.
__global__ void suppress(const float* boxes, const float* scores, uint8_t* gone, float* y, Suppression plan) {
  const int64_t n = blockIdx.x, candidates = plan.candidates();
  const float* box = boxes + n * plan.boxes * 4;
  const float* score = scores + n * candidates;
  uint8_t* struck = gone + n * candidates;
  float* out = y + n * plan.attrs.most * Suppression::kColumns;
  int64_t last = -1;
  for (int32_t k = 0; k < plan.attrs.most; ++k, out += Suppression::kColumns) {
    Best best{0.0, -1};
    for (int64_t i = threadIdx.x; i < candidates; i += blockDim.x) {
      if (k == 0) struck[i] = score[i] > plan.attrs.least_score ? 0 : 1;
      if (struck[i] != 0) continue;
      const bool same = last >= 0 && (plan.attrs.by_class == 0 || i % plan.classes == last % plan.classes);
      if (same && (i == last ||
                   overlap_of(Corners::of(box + last / plan.classes * 4), Corners::of(box + i / plan.classes * 4)) >
                       static_cast<double>(plan.attrs.overlap))) {
        struck[i] = 1;
        continue;
      }
      best = better(best, {static_cast<double>(score[i]), i});
    }
    best = block_tree(best, better);
    last = best.at;
    if (threadIdx.x < Suppression::kColumns) {
      const auto column = static_cast<int64_t>(threadIdx.x);
      float value = column == 5 ? -1.0F : 0.0F;
      if (last >= 0) {
        value = column < 4    ? box[last / plan.classes * 4 + column]
                : column == 4 ? score[last]
                              : static_cast<float>(last % plan.classes);
      }
      out[column] = value;
    }
    if (last < 0) {  // nor is there one in the rounds to come
      for (int64_t i = threadIdx.x; i < (plan.attrs.most - k - 1) * Suppression::kColumns; i += blockDim.x) {
        out[Suppression::kColumns + i] = i % Suppression::kColumns == 5 ? -1.0F : 0.0F;
      }
      return;
    }
  }
}

void run_grid_points(const GridPoints& plan, cudaStream_t stream, const OpArgs& args) {
  launch(grid_points, thread_each(plan.rows * plan.columns * 3), stream, args.out<float>(0), plan);
}

void run_assign_points(const AssignPoints& plan, cudaStream_t stream, const OpArgs& args) {
  launch(assign_points, thread_each(plan.images * plan.points), stream, args.in<float>(0), args.in<float>(1),
         args.out<int32_t>(0), args.out<float>(1), args.out<float>(2), plan);
}

void run_assign_anchors(const AssignAnchors& plan, cudaStream_t stream, const OpArgs& args) {
  auto* taken = args.workspace<int32_t>();
  launch(take_anchors, tree_each(plan.images * plan.boxes, plan.anchors), stream, args.in<float>(0), args.in<float>(1),
         taken, plan);
  launch(assign_anchors, thread_each(plan.images * plan.anchors), stream, args.in<float>(0), args.in<float>(1), taken,
         args.out<int32_t>(0), args.out<float>(1), plan);
}

void run_focal(const Focal& plan, cudaStream_t stream, const OpArgs& args) {
  launch(focal_loss, thread_each(plan.rows), stream, args.in<float>(0), args.in<int32_t>(1), args.out<float>(0), plan);
}

void run_focal_backward(const Focal& plan, cudaStream_t stream, const OpArgs& args) {
  launch(focal_loss_backward, thread_each(plan.rows * plan.classes), stream, args.in<float>(0), args.in<float>(1),
         args.in<int32_t>(2), args.out<float>(0), plan);
}

void run_giou(const GiouRows& plan, cudaStream_t stream, const OpArgs& args) {
  launch(giou_loss, thread_each(plan.rows), stream, args.in<float>(0), args.in<float>(1), args.out<float>(0), plan);
}

void run_giou_backward(const GiouRows& plan, cudaStream_t stream, const OpArgs& args) {
  launch(giou_loss_backward, thread_each(plan.rows), stream, args.in<float>(0), args.in<float>(1), args.in<float>(2),
         args.out<float>(0), plan);
}

void run_top_mask(const TopMask& plan, cudaStream_t stream, const OpArgs& args) {
  launch(top_mask, block_each(plan.rows, kMostTreeThreads), stream, args.in<float>(0), args.in<float>(1),
         args.out<float>(0), plan);
}

Suppression suppression_with_marks(const OpDesc& desc) {
  Suppression plan = suppression_of(desc);
  plan.workspace_bytes = static_cast<uint64_t>(plan.images * plan.candidates());
  return plan;
}

void run_suppression(const Suppression& plan, cudaStream_t stream, const OpArgs& args) {
  launch(suppress, block_each(plan.images, kMostTreeThreads), stream, args.in<float>(0), args.in<float>(1),
         args.workspace<uint8_t>(), args.out<float>(0), plan);
}

}  // namespace

void add_detection_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_GRID_POINTS, "grid_points", grid_points_of, run_grid_points);
  add_op(device, GPUNN_OP_ASSIGN_POINTS, "assign_points", assign_points_of, run_assign_points);
  add_op(device, GPUNN_OP_ASSIGN_ANCHORS, "assign_anchors", assign_anchors_of, run_assign_anchors);
  add_op(device, GPUNN_OP_FOCAL_LOSS, "focal_loss", focal_of, run_focal);
  add_op(device, GPUNN_OP_FOCAL_LOSS_BACKWARD, "focal_loss_backward", focal_backward_of, run_focal_backward);
  add_op(device, GPUNN_OP_GIOU_LOSS, "giou_loss", giou_of, run_giou);
  add_op(device, GPUNN_OP_GIOU_LOSS_BACKWARD, "giou_loss_backward", giou_of, run_giou_backward);
  add_op(device, GPUNN_OP_TOP_MASK, "top_mask", top_mask_of, run_top_mask);
  add_op(device, GPUNN_OP_NON_MAXIMUM_SUPPRESSION, "non_maximum_suppression", suppression_with_marks, run_suppression);
}

}  // namespace gpunn::cuda_naive
