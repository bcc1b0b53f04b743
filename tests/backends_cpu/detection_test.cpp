// Ops of detection: their bits do not depend on the number of threads.
#include "kernels.hpp"
#include "run_op.hpp"

using namespace cpu_test;

namespace {

const Runner& detection_runner() {
  static const Runner made(gpunn::cpu::add_detection_kernels);
  return made;
}

// Boxes whose left and top are below their right and bottom.
Tensor<float> boxes_of(Random& random, const Shape& shape) {
  Tensor<float> boxes = random.tensor(shape);
  const int64_t numbers = shape.back();
  for (int64_t i = 0; i < boxes.size(); i += numbers) {
    for (int64_t k = 0; k < 2; ++k) {
      boxes[i + k] = 40 + 30 * boxes[i + k];
      boxes[i + 2 + k] = boxes[i + k] + 25 + 20 * boxes[i + 2 + k];
    }
    if (numbers == 5) boxes[i + 4] = static_cast<float>(i % 3);
  }
  return boxes;
}

}  // namespace

TEST_CASE("suppression, assignment and losses are the same bits on any number of threads") {
  Random random(5);
  const Tensor<float> boxes = boxes_of(random, {3, 500, 4}), wanted = boxes_of(random, {3, 20, 5});
  const Tensor<float> scores = random.tensor({3, 500, 4});
  Tensor<float> found({3, 30, 6});
  const gpunn_suppression_attrs suppression{sizeof(suppression), 0.5F, 0.1F, 30, 1};
  on_each_machine(found, [&] {
    detection_runner().run(GPUNN_OP_NON_MAXIMUM_SUPPRESSION, &suppression, {boxes, scores}, {found});
    CHECK(found[4] >= found[10]);
  });
  Tensor<float> mask({3, 2000});
  const Tensor<float> ranked = random.tensor({3, 2000}), counts = random.tensor({3});
  on_each_machine(mask, [&] { detection_runner().run(GPUNN_OP_TOP_MASK, nullptr, {ranked, counts}, {mask}); });
  const gpunn_grid_points_attrs grid{sizeof(grid), 12, 12, 8};
  Tensor<float> points({144, 3});
  detection_runner().run(GPUNN_OP_GRID_POINTS, &grid, {}, {points});
  const gpunn_assign_points_attrs assign{sizeof(assign), 1.5F, 8, 8, 8};
  Tensor<int32_t> label({3, 144});
  Tensor<float> box({3, 144, 4}), centerness({3, 144});
  on_each_machine(box, [&] {
    detection_runner().run(GPUNN_OP_ASSIGN_POINTS, &assign, {points, wanted}, {label, box, centerness});
  });
  const gpunn_focal_attrs focal{sizeof(focal), 0.25F, 2};
  const Tensor<float> logits = random.tensor({432, 3});
  Tensor<int32_t> labels({432});
  for (int64_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int32_t>(i % 5 - 1);
  Tensor<float> loss({432});
  on_each_machine(loss, [&] { detection_runner().run(GPUNN_OP_FOCAL_LOSS, &focal, {logits, labels}, {loss}); });
}
