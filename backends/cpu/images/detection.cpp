// Ops of detection. Points, anchors and rows of losses are shared among threads; of suppression the images are.
#include "common/detection.hpp"

#include <gpunn/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "add_op.hpp"
#include "kernels.hpp"
#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

void run_grid_points(const GridPoints& plan, const OpArgs& args) {
  auto* points = args.out<float>(0);
  for (int64_t i = 0; i < plan.rows * plan.columns; ++i) {
    for (int64_t part = 0; part < 3; ++part) points[3 * i + part] = plan.value(i, part);
  }
}

// The box of a row of an output, of zeros where there is none.
void write_box(const float* box, float* to) {
  if (box == nullptr) {
    std::fill_n(to, 4, 0.0F);
  } else {
    std::copy_n(box, 4, to);
  }
}

void run_assign_points(const AssignPoints& plan, const OpArgs& args) {
  const auto *points = args.in<float>(0), *boxes = args.in<float>(1);
  auto* label = args.out<int32_t>(0);
  auto *box = args.out<float>(1), *centerness = args.out<float>(2);
  parallel_ranges(plan.images * plan.points, rows_per_task(16 * (plan.boxes + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* const image = boxes + i / plan.points * plan.boxes * 5;
      const float* const point = points + i % plan.points * 3;
      const int64_t m = plan.box_of(point, image);
      const float* const found = m < 0 ? nullptr : image + m * 5;
      label[i] = m < 0 ? -1 : class_of_box(found);
      write_box(found, box + 4 * i);
      centerness[i] = m < 0 ? 0.0F : static_cast<float>(std::sqrt(AssignPoints::sides(point, found).balance()));
    }
  });
}

void run_assign_anchors(const AssignAnchors& plan, const OpArgs& args) {
  const auto *anchors = args.in<float>(0), *boxes = args.in<float>(1);
  auto* label = args.out<int32_t>(0);
  auto* box = args.out<float>(1);
  auto* taken = args.workspace<int32_t>();
  parallel_ranges(plan.images * plan.boxes, rows_per_task(16 * plan.anchors), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      taken[i] = -1;
      double best = 0;
      for (int64_t a = 0; a < plan.anchors; ++a) {
        const double overlap = overlap_of(Corners::of(anchors + a * 4), Corners::of(boxes + i * 5));
        if (!(overlap > best)) continue;
        best = overlap;
        taken[i] = static_cast<int32_t>(a);
      }
    }
  });
  parallel_ranges(plan.images * plan.anchors, rows_per_task(16 * (plan.boxes + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / plan.anchors, a = i % plan.anchors;
      const float* const image = boxes + n * plan.boxes * 5;
      const int64_t m = plan.box_of(anchors + a * 4, image, taken + n * plan.boxes, a);
      const float* const found = m < 0 ? nullptr : image + m * 5;
      label[i] = m < 0 ? static_cast<int32_t>(m) : class_of_box(found);
      write_box(found, box + 4 * i);
    }
  });
}

float logistic(float x) { return 1.0F / (1.0F + std::exp(-x)); }
// log(1 + exp(x))
float softplus(float x) { return std::max(x, 0.0F) + std::log1p(std::exp(-std::abs(x))); }

// y^gamma. Squares are the usual case.
float power(float y, float gamma) { return gamma == 2.0F ? y * y : std::pow(y, gamma); }

void run_focal(const Focal& plan, const OpArgs& args) {
  const auto* x = args.in<float>(0);
  const auto* label = args.in<int32_t>(1);
  auto* loss = args.out<float>(0);
  const float alpha = plan.attrs.alpha, gamma = plan.attrs.gamma;
  parallel_ranges(plan.rows, rows_per_task(32 * plan.classes), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      double sum = 0;
      for (int64_t c = 0; c < plan.classes && plan.counts(label[row]); ++c) {
        // Of its own class the same with the sign turned: 1 - p is the logistic function of -x.
        const bool own = c == label[row];
        const float z = own ? -x[row * plan.classes + c] : x[row * plan.classes + c];
        sum += (own ? alpha : 1.0F - alpha) * power(logistic(z), gamma) * softplus(z);
      }
      loss[row] = static_cast<float>(sum);
    }
  });
}

void run_focal_backward(const Focal& plan, const OpArgs& args) {
  const auto *dloss = args.in<float>(0), *x = args.in<float>(1);
  const auto* label = args.in<int32_t>(2);
  auto* dx = args.out<float>(0);
  const float alpha = plan.attrs.alpha, gamma = plan.attrs.gamma;
  parallel_ranges(plan.rows, rows_per_task(32 * plan.classes), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = row * plan.classes; i < (row + 1) * plan.classes; ++i) {
        if (!plan.counts(label[row])) {
          dx[i] = 0.0F;
          continue;
        }
        const bool own = i - row * plan.classes == label[row];
        const float z = own ? -x[i] : x[i];
        const float slope = power(logistic(z), gamma) * (gamma * logistic(-z) * softplus(z) + logistic(z));
        dx[i] = dloss[row] * (own ? -alpha : 1.0F - alpha) * slope;
      }
    }
  });
}

void run_giou(const GiouRows& plan, const OpArgs& args) {
  const auto *a = args.in<float>(0), *b = args.in<float>(1);
  auto* loss = args.out<float>(0);
  parallel_ranges(plan.rows, rows_per_task(32), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) loss[i] = static_cast<float>(Giou(a + 4 * i, b + 4 * i).loss());
  });
}

void run_giou_backward(const GiouRows& plan, const OpArgs& args) {
  const auto *dloss = args.in<float>(0), *a = args.in<float>(1), *b = args.in<float>(2);
  auto* da = args.out<float>(0);
  parallel_ranges(plan.rows, rows_per_task(64), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Giou pair(a + 4 * i, b + 4 * i);
      for (int corner = 0; corner < 4; ++corner) {
        da[4 * i + corner] = static_cast<float>(static_cast<double>(dloss[i]) * pair.gradient(corner));
      }
    }
  });
}

// The workspace has the numbers of the elements of each row.
TopMask top_mask_with_numbers(const OpDesc& desc) {
  TopMask plan = top_mask_of(desc);
  if (plan.size > INT32_MAX) throw Refusal("more than 2^31 elements in a row");
  plan.workspace_bytes = static_cast<uint64_t>(plan.rows * plan.size) * sizeof(int32_t);
  return plan;
}

void run_top_mask(const TopMask& plan, const OpArgs& args) {
  const auto *values = args.in<float>(0), *counts = args.in<float>(1);
  auto* mask = args.out<float>(0);
  auto* numbers = args.workspace<int32_t>();
  parallel_for(plan.rows, [&](int64_t n) {
    const float* const x = values + n * plan.size;
    float* const y = mask + n * plan.size;
    int32_t* const order = numbers + n * plan.size;
    int64_t count = 0;
    for (int64_t i = 0; i < plan.size; ++i) {
      if (!std::isnan(x[i])) order[count++] = static_cast<int32_t>(i);
    }
    const int64_t wanted = TopMask::wanted(counts[n], count);
    std::nth_element(order, order + wanted, order + count,
                     [&](int32_t a, int32_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); });
    std::fill_n(y, plan.size, 0.0F);
    for (int64_t k = 0; k < wanted; ++k) y[order[k]] = 1.0F;
  });
}

// --- NON_MAXIMUM_SUPPRESSION ---

struct CpuSuppression : Suppression {};

// The workspace has the numbers of the candidates of each image.
CpuSuppression plan_suppression(const OpDesc& desc) {
  CpuSuppression plan{suppression_of(desc)};
  plan.workspace_bytes = static_cast<uint64_t>(plan.images * plan.candidates()) * sizeof(int32_t);
  if (plan.candidates() > INT32_MAX) throw Refusal("more than 2^31 boxes and classes in an image");
  return plan;
}

// One image. Candidates are sorted in parts: most often the best few are all that is looked at.
void suppress(const Suppression& plan, const float* boxes, const float* scores, int32_t* order, float* y) {
  int64_t count = 0;
  for (int64_t i = 0; i < plan.candidates(); ++i) {
    if (scores[i] > plan.attrs.least_score) order[count++] = static_cast<int32_t>(i);
  }
  const auto better = [&](int32_t a, int32_t b) { return scores[a] > scores[b] || (scores[a] == scores[b] && a < b); };
  constexpr int64_t kPart = 1024;
  int64_t kept = 0, sorted = 0;
  for (int64_t k = 0; k < count && kept < plan.attrs.most; ++k) {
    if (k == sorted) {
      sorted = std::min(count, std::max<int64_t>(2 * sorted, kPart));
      std::partial_sort(order + k, order + sorted, order + count, better);
    }
    const int64_t box = order[k] / plan.classes;
    const auto category = static_cast<float>(order[k] % plan.classes);
    const Corners own = Corners::of(boxes + box * 4);
    bool again = false;
    for (int64_t j = 0; j < kept && !again; ++j) {
      const float* const other = y + j * Suppression::kColumns;
      again = (plan.attrs.by_class == 0 || other[5] == category) &&
              overlap_of(Corners::of(other), own) > static_cast<double>(plan.attrs.overlap);
    }
    if (again) continue;
    float* const to = y + kept++ * Suppression::kColumns;
    std::copy_n(boxes + box * 4, 4, to);
    to[4] = scores[order[k]];
    to[5] = category;
  }
  for (; kept < plan.attrs.most; ++kept) {
    float* const to = y + kept * Suppression::kColumns;
    std::fill_n(to, 5, 0.0F);
    to[5] = -1.0F;
  }
}

void run_suppression(const CpuSuppression& plan, const OpArgs& args) {
  const auto *boxes = args.in<float>(0), *scores = args.in<float>(1);
  auto* y = args.out<float>(0);
  auto* order = args.workspace<int32_t>();
  parallel_for(plan.images, [&](int64_t n) {
    suppress(plan, boxes + n * plan.boxes * 4, scores + n * plan.candidates(), order + n * plan.candidates(),
             y + n * plan.attrs.most * Suppression::kColumns);
  });
}

}  // namespace

void add_detection_kernels(plugin::Device& device) {
  add_op(device, GPUNN_OP_GRID_POINTS, grid_points_of, run_grid_points);
  add_op(device, GPUNN_OP_ASSIGN_POINTS, assign_points_of, run_assign_points);
  add_op(device, GPUNN_OP_ASSIGN_ANCHORS, assign_anchors_of, run_assign_anchors);
  add_op(device, GPUNN_OP_FOCAL_LOSS, focal_of, run_focal);
  add_op(device, GPUNN_OP_FOCAL_LOSS_BACKWARD, focal_backward_of, run_focal_backward);
  add_op(device, GPUNN_OP_GIOU_LOSS, giou_of, run_giou);
  add_op(device, GPUNN_OP_GIOU_LOSS_BACKWARD, giou_of, run_giou_backward);
  add_op(device, GPUNN_OP_TOP_MASK, top_mask_with_numbers, run_top_mask);
  add_op(device, GPUNN_OP_NON_MAXIMUM_SUPPRESSION, plan_suppression, run_suppression);
}

}  // namespace gpunn::cpu
