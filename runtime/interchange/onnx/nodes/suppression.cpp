// Boxes that are found: what is left of them where several overlap.
#include <cstddef>

#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

// A node of fuse_suppression()'s, which a file may also have itself.
void suppress(Call& call) {
  const Shape boxes = call.sample(0), scores = call.sample(1);
  const int64_t count = call.integer("count", 0), classes = call.integer("classes", 0), most = call.integer("most", 0);
  const double overlap = call.number("overlap", -1), least_score = call.number("least_score", -1);
  if (boxes != Shape{count, 4} || scores != Shape{count, classes}) {
    throw Unsupported("takes boxes of " + to_string(call.data(0).shape) + " and scores of " +
                      to_string(call.data(1).shape) + ", expected " + std::to_string(count) + " boxes and " +
                      std::to_string(classes) + " classes");
  }
  constexpr int64_t kMost = 10000, kNumbers = 6;
  if (most < 1 || most > kMost || !(overlap >= 0 && overlap <= 1) || !(least_score >= 0 && least_score <= 1)) {
    throw Unsupported("keeps " + std::to_string(most) + " boxes of an overlap of " + text(overlap) +
                      " and scores above " + text(least_score) + "; expected 1 to 10000 boxes, and shares");
  }
  call.give(
      call.layer("non_maximum_suppression", {&call.data(0), &call.data(1)},
                 {{"overlap", {text(overlap)}}, {"least_score", {text(least_score)}}, {"most", {std::to_string(most)}}},
                 {most, kNumbers}));
}

void refuse(Call&) {
  throw Unsupported(
      "gives as many boxes as there are, and layers give fixed sizes; it is read with the nodes behind it that pick "
      "the "
      "best boxes, as `gpunn export` writes them. End the network in front of it");
}

}  // namespace

std::vector<OpRow> suppression_rows() { return {{"NonMaxSuppression", 10, refuse}}; }

const OpRow& fused_suppression() {
  static constexpr OpRow row = {"NonMaximumSuppression", 1, suppress};
  return row;
}

}  // namespace gpunn::interchange
