// RANDOM_SHIFT, RANDOM_AFFINE, RANDOM_ZOOM, RANDOM_COLOR and RANDOM_ERASE, which change each image of x[N,C,H,W] by its
// own random numbers, and MIX_ROWS. The first three also take label maps x[N,H,W].
//
// One thread computes one element of y. It draws the random numbers of its image, which determine the source of the
// element. Writes are coalesced. The reads of RANDOM_SHIFT are coalesced too, apart from starts that are not aligned to
// 32-byte sectors. In a mirrored image a warp reads its addresses backwards, at no extra cost. RANDOM_AFFINE reads four
// neighbours along a slanted line, RANDOM_ZOOM along a row, and the caches merge these reads.
//
// All threads of an image draw the same block of Philox, ten rounds of two wide multiplications each. Those of
// RANDOM_AFFINE also compute the same sine and cosine in f64. The next version would give each image a thread block
// that does this once. That would also remove the four divisions that locate an element.
//
// RANDOM_COLOR needs the mean of an image first: one block computes it and reads the image twice.
//
// common/augmentation.hpp defines the result for each pixel. Shifts and rectangles only use integers and copies, so
// their bits equal those of every other backend.
#include <gpunn/random.h>

#include "block_tree.cuh"
#include "common/augmentation.hpp"
#include "cuda_common/add_op.hpp"
#include "cuda_common/launch.hpp"
#include "kernels.hpp"

namespace gpunn::cuda_naive {
namespace {

using namespace cuda;

// Where element i of a batch is.
struct AugmentedPixel {
  int64_t image, channel, row, column;
};

__device__ AugmentedPixel pixel_of(const ImageBatch& batch, int64_t i) {
  return {i / batch.image(), i / batch.plane() % batch.channels, i / batch.columns % batch.rows, i % batch.columns};
}

template <class Plan>
__device__ gpunn_random_words draw(const Plan& plan, int64_t counter, int64_t image) {
  return gpunn_philox(plan.seed, plan.stream, block_of_image(plan.batch, counter, image));
}

template <class T>
__global__ void shift_images(Shift plan, const T* x, const int64_t* counter, const T* border, T* y) {
  const ImageBatch& batch = plan.batch;
  const int64_t i = thread_index();
  if (i >= batch.elements()) return;
  const AugmentedPixel at = pixel_of(batch, i);
  const Shifted by = shifted_by(plan, draw(plan, *counter, at.image));
  const int64_t row = at.row + by.rows;
  const int64_t column = (by.flipped ? batch.columns - 1 - at.column : at.column) + by.columns;
  const bool inside = row >= 0 && row < batch.rows && column >= 0 && column < batch.columns;
  y[i] = inside ? x[at.image * batch.image() + at.channel * batch.plane() + row * batch.columns + column]
                : border[at.channel];
}

template <class T>
__global__ void affine_images(Affine plan, const T* x, const int64_t* counter, const T* border, T* y) {
  const ImageBatch& batch = plan.batch;
  const int64_t i = thread_index();
  if (i >= batch.elements()) return;
  const AugmentedPixel at = pixel_of(batch, i);
  const gpunn_random_words words = draw(plan, *counter, at.image);
  const double angle = turned_by(plan, words);
  const WayBack back = way_back(plan, words, cos(angle), sin(angle));
  y[i] = sample(batch, x + (i - i % batch.plane()), affine_place(batch, back, at.row, at.column), border[at.channel]);
}

template <class T>
__global__ void zoom_images(Zoom plan, const T* x, const int64_t* counter, T* y) {
  const ImageBatch& batch = plan.batch;
  const int64_t i = thread_index();
  if (i >= batch.elements()) return;
  const AugmentedPixel at = pixel_of(batch, i);
  const Window window = window_of(plan, draw(plan, *counter, at.image));
  y[i] = sample(batch, x + (i - i % batch.plane()), zoomed_place(batch, window, at.row, at.column), T{});
}

__global__ void color_images(Color plan, const float* x, const int64_t* counter, const float* scale, const float* shift,
                             float* y) {
  const int64_t plane = plan.batch.plane();
  for (int64_t image = blockIdx.x; image < plan.batch.images; image += gridDim.x) {
    const float* from = x + image * plan.batch.image();
    float* to = y + image * plan.batch.image();
    Tones tones = tones_of(plan, draw(plan, *counter, image));
    if (plan.contrast > 0.0) {  // for all threads alike
      double sum = 0.0;
      for (int64_t p = threadIdx.x; p < plane; p += blockDim.x) sum += lit_grey(plan, tones, from + p, scale, shift);
      tones.mean = block_sum(sum) / static_cast<double>(plane);
    }
    for (int64_t i = threadIdx.x; i < plan.batch.image(); i += blockDim.x) {
      to[i] = color_pixel(plan, tones, from + i % plane, i / plane, scale, shift);
    }
  }
}

// y may be x: each thread reads and writes its own element alone.
__global__ void erase_images(Erase plan, const float* x, const int64_t* counter, const float* border, float* y) {
  const int64_t i = thread_index();
  if (i >= plan.batch.elements()) return;
  const AugmentedPixel at = pixel_of(plan.batch, i);
  const Rectangle erased = erased_from(plan, draw(plan, *counter, at.image));
  y[i] = erased.holds(at.row, at.column) ? border[at.channel] : x[i];
}

__global__ void mix_rows(MixRows plan, const float* x, const float* share, const int32_t* count, float* y) {
  const int64_t i = thread_index();
  if (i >= plan.rows * plan.row_size) return;
  const int64_t partner = partner_of(plan, i / plan.row_size, *count);
  y[i] = partner < 0 ? x[i] : *share * x[i] + (1.0F - *share) * x[partner * plan.row_size + i % plan.row_size];
}

template <class T>
void run_shift(const Shift& plan, cudaStream_t stream, const OpArgs& args) {
  launch(shift_images<T>, thread_each(plan.batch.elements()), stream, plan, args.in<T>(0), args.in<int64_t>(1),
         args.in<T>(2), args.out<T>(0));
}

template <class T>
void run_affine(const Affine& plan, cudaStream_t stream, const OpArgs& args) {
  launch(affine_images<T>, thread_each(plan.batch.elements()), stream, plan, args.in<T>(0), args.in<int64_t>(1),
         args.in<T>(2), args.out<T>(0));
}

template <class T>
void run_zoom(const Zoom& plan, cudaStream_t stream, const OpArgs& args) {
  launch(zoom_images<T>, thread_each(plan.batch.elements()), stream, plan, args.in<T>(0), args.in<int64_t>(1),
         args.out<T>(0));
}

void run_color(const Color& plan, cudaStream_t stream, const OpArgs& args) {
  if (plan.batch.elements() == 0) return;
  launch(color_images, tree_each(plan.batch.images, plan.batch.plane()), stream, plan, args.in<float>(0),
         args.in<int64_t>(1), args.in<float>(2), args.in<float>(3), args.out<float>(0));
}

void run_erase(const Erase& plan, cudaStream_t stream, const OpArgs& args) {
  launch(erase_images, thread_each(plan.batch.elements()), stream, plan, args.in<float>(0), args.in<int64_t>(1),
         args.in<float>(2), args.out<float>(0));
}

void run_mix(const MixRows& plan, cudaStream_t stream, const OpArgs& args) {
  launch(mix_rows, thread_each(plan.rows * plan.row_size), stream, plan, args.in<float>(0), args.in<float>(1),
         args.in<int32_t>(2), args.out<float>(0));
}

}  // namespace

void add_augmentation_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_RANDOM_SHIFT, "random_shift", shift_of, run_shift<float>);
  add_op(device, GPUNN_OP_RANDOM_SHIFT_LABELS, "random_shift_labels", shift_of, run_shift<int32_t>);
  add_op(device, GPUNN_OP_RANDOM_AFFINE, "random_affine", affine_of, run_affine<float>);
  add_op(device, GPUNN_OP_RANDOM_AFFINE_LABELS, "random_affine_labels", affine_of, run_affine<int32_t>);
  add_op(device, GPUNN_OP_RANDOM_ZOOM, "random_zoom", zoom_of, run_zoom<float>);
  add_op(device, GPUNN_OP_RANDOM_ZOOM_LABELS, "random_zoom_labels", zoom_of, run_zoom<int32_t>);
  add_op(device, GPUNN_OP_RANDOM_COLOR, "random_color", color_of, run_color);
  add_op(device, GPUNN_OP_RANDOM_ERASE, "random_erase", erase_of, run_erase);
  add_op(device, GPUNN_OP_MIX_ROWS, "mix_rows", mix_rows_of, run_mix);
}

}  // namespace gpunn::cuda_naive
