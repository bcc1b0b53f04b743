// RANDOM_SHIFT, RANDOM_AFFINE, RANDOM_ZOOM, RANDOM_COLOR and RANDOM_ERASE change images x[N,C,H,W] by their own random
// numbers; a task is some images. The first three do the same with label maps x[N,H,W]. And MIX_ROWS.
#include "common/augmentation.hpp"

#include <gpunn/kernel.hpp>
#include <gpunn/random.h>

#include <algorithm>
#include <cmath>

#include "add_op.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

// Calls body(image, words that it draws).
template <class Plan, class Body>
void for_images(const Plan& plan, int64_t counter, const Body& body) {
  const ImageBatch& batch = plan.batch;
  parallel_ranges(batch.images, rows_per_task(batch.image()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      body(i, gpunn_philox(plan.seed, plan.stream, block_of_image(batch, counter, i)));
    }
  });
}

// y[w] = x[w' + by], border where that is outside.
template <class T>
void shift_row(const T* x, int64_t size, int64_t by, bool flipped, T border, T* y) {
  // Where w' + by is inside; w' = size - 1 - w goes the other way.
  const int64_t direction = flipped ? -by : by;
  const int64_t begin = std::clamp<int64_t>(-direction, 0, size);
  const int64_t end = std::clamp<int64_t>(size - direction, 0, size);
  std::fill(y, y + begin, border);
  if (flipped) {
    for (int64_t w = begin; w < end; ++w) y[w] = x[size - 1 - w + by];
  } else {
    for (int64_t w = begin; w < end; ++w) y[w] = x[w + by];
  }
  std::fill(y + end, y + size, border);
}

template <class T>
void run_shift(const Shift& plan, const OpArgs& args) {
  const auto *x = args.in<T>(0), *border = args.in<T>(2);
  auto* y = args.out<T>(0);
  const ImageBatch& batch = plan.batch;
  for_images(plan, *args.in<int64_t>(1), [&](int64_t i, const gpunn_random_words& words) {
    const Shifted by = shifted_by(plan, words);
    for (int64_t c = 0; c < batch.channels; ++c) {
      const int64_t plane = i * batch.image() + c * batch.plane();
      for (int64_t h = 0; h < batch.rows; ++h) {
        T* row = y + plane + h * batch.columns;
        const int64_t from = h + by.rows;
        if (from < 0 || from >= batch.rows) {
          std::fill(row, row + batch.columns, border[c]);
        } else {
          shift_row(x + plane + from * batch.columns, batch.columns, by.columns, by.flipped, border[c], row);
        }
      }
    }
  });
}

// y[h,w] = x at place(h, w), for the planes of image i. `border` is null if no place is outside.
template <class T, class PlaceOf>
void sample_image(const ImageBatch& batch, int64_t i, const T* x, const T* border, T* y, const PlaceOf& place) {
  for (int64_t c = 0; c < batch.channels; ++c) {
    const int64_t plane = i * batch.image() + c * batch.plane();
    const T outside = border != nullptr ? border[c] : T{};
    for (int64_t h = 0; h < batch.rows; ++h) {
      T* row = y + plane + h * batch.columns;
      for (int64_t w = 0; w < batch.columns; ++w) row[w] = sample(batch, x + plane, place(h, w), outside);
    }
  }
}

template <class T>
void run_affine(const Affine& plan, const OpArgs& args) {
  for_images(plan, *args.in<int64_t>(1), [&](int64_t i, const gpunn_random_words& words) {
    const double angle = turned_by(plan, words);
    const WayBack back = way_back(plan, words, std::cos(angle), std::sin(angle));
    sample_image(plan.batch, i, args.in<T>(0), args.in<T>(2), args.out<T>(0),
                 [&](int64_t h, int64_t w) { return affine_place(plan.batch, back, h, w); });
  });
}

template <class T>
void run_zoom(const Zoom& plan, const OpArgs& args) {
  for_images(plan, *args.in<int64_t>(1), [&](int64_t i, const gpunn_random_words& words) {
    const Window window = window_of(plan, words);
    sample_image<T>(plan.batch, i, args.in<T>(0), nullptr, args.out<T>(0),
                    [&](int64_t h, int64_t w) { return zoomed_place(plan.batch, window, h, w); });
  });
}

void run_color(const Color& plan, const OpArgs& args) {
  const auto *x = args.in<float>(0), *scale = args.in<float>(2), *shift = args.in<float>(3);
  auto* y = args.out<float>(0);
  const int64_t plane = plan.batch.plane();
  for_images(plan, *args.in<int64_t>(1), [&](int64_t i, const gpunn_random_words& words) {
    const float* image = x + i * plan.batch.image();
    float* result = y + i * plan.batch.image();
    Tones tones = tones_of(plan, words);
    if (plan.contrast > 0.0) {
      double sum = 0.0;
      for (int64_t p = 0; p < plane; ++p) sum += lit_grey(plan, tones, image + p, scale, shift);
      tones.mean = sum / static_cast<double>(plane);
    }
    for (int64_t c = 0; c < plan.batch.channels; ++c) {
      for (int64_t p = 0; p < plane; ++p) {
        result[c * plane + p] = color_pixel(plan, tones, image + p, c, scale, shift);
      }
    }
  });
}

// y may be x: then what stays is there already.
void run_erase(const Erase& plan, const OpArgs& args) {
  const auto *x = args.in<float>(0), *border = args.in<float>(2);
  auto* y = args.out<float>(0);
  const ImageBatch& batch = plan.batch;
  for_images(plan, *args.in<int64_t>(1), [&](int64_t i, const gpunn_random_words& words) {
    const int64_t first = i * batch.image();
    if (x != y) std::copy(x + first, x + first + batch.image(), y + first);
    const Rectangle erased = erased_from(plan, words);
    const int64_t top = std::max<int64_t>(0, erased.top), bottom = std::min(batch.rows, erased.bottom);
    const int64_t left = std::max<int64_t>(0, erased.left), right = std::min(batch.columns, erased.right);
    for (int64_t c = 0; c < batch.channels; ++c) {
      for (int64_t h = top; h < bottom; ++h) {
        float* row = y + first + c * batch.plane() + h * batch.columns;
        for (int64_t w = left; w < right; ++w) row[w] = border[c];
      }
    }
  });
}

void run_mix(const MixRows& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  const float share = *args.in<float>(1), rest = 1.0F - share;
  const int32_t count = *args.in<int32_t>(2);
  auto* y = args.out<float>(0);
  parallel_ranges(plan.rows, rows_per_task(plan.row_size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t partner = partner_of(plan, i, count);
      const float* own = x + i * plan.row_size;
      float* row = y + i * plan.row_size;
      if (partner < 0) {
        std::copy(own, own + plan.row_size, row);
      } else {
        const float* other = x + partner * plan.row_size;
        for (int64_t j = 0; j < plan.row_size; ++j) row[j] = share * own[j] + rest * other[j];
      }
    }
  });
}

}  // namespace

void add_augmentation_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_RANDOM_SHIFT, shift_of, run_shift<float>);
  add_op(device, GPUNN_OP_RANDOM_SHIFT_LABELS, shift_of, run_shift<int32_t>);
  add_op(device, GPUNN_OP_RANDOM_AFFINE, affine_of, run_affine<float>);
  add_op(device, GPUNN_OP_RANDOM_AFFINE_LABELS, affine_of, run_affine<int32_t>);
  add_op(device, GPUNN_OP_RANDOM_ZOOM, zoom_of, run_zoom<float>);
  add_op(device, GPUNN_OP_RANDOM_ZOOM_LABELS, zoom_of, run_zoom<int32_t>);
  add_op(device, GPUNN_OP_RANDOM_COLOR, color_of, run_color);
  add_op(device, GPUNN_OP_RANDOM_ERASE, erase_of, run_erase);
  add_op(device, GPUNN_OP_MIX_ROWS, mix_rows_of, run_mix);
}

}  // namespace gpunn::cpu
