// A detector whose last layer gives the boxes that are found, as those from ONNX do.
#include <gpunn/error.hpp>

#include <limits>
#include <memory>
#include <string>

#include "graph/expressions.hpp"
#include "tasks/detection/head.hpp"

namespace gpunn::tasks {

using graph::Graph;
using graph::ValueId;

namespace {

class FoundHead : public DetectionHead {
 public:
  explicit FoundHead(const HeadInputs& inputs) : DetectionHead(inputs.rule, inputs.maps.at(1).at(2)) {}

  ValueId add_boxes(Graph&, ValueId) const override { refuse(); }
  ValueId add_scores(Graph&, ValueId) const override { refuse(); }
  // An evaluation goes by the boxes alone: its loss is NaN.
  ValueId add_loss(Graph& g, const TaskContext&, ValueId output, ValueId, bool by_row) const override {
    if (!by_row) refuse();
    graph::Expressions e(g, "loss");
    return e.constant(std::numeric_limits<double>::quiet_NaN(), {e.shape(output)[0]});
  }
  ValueId add_detections(Graph& g, ValueId output) const override {
    graph::Expressions e(g, "detections");
    const Shape shape = e.shape(output);
    return e.view(output, {shape[0], shape[1] * shape[2]});
  }

 private:
  [[noreturn]] static void refuse() {
    throw Error(
        "the model ends in non_maximum_suppression, of which only the boxes that are found come out: it has no loss, "
        "so it predicts and is evaluated, but not trained. Train the run that it was exported from",
        ExitCode::usage);
  }
};

std::unique_ptr<DetectionHead> make_found(const HeadInputs& inputs) { return std::make_unique<FoundHead>(inputs); }

std::string refuse_none(const LossConfig&, const config::LayerArguments&) { return {}; }

}  // namespace

HeadKind found_kind() {
  return {.layer = "non_maximum_suppression", .example = {}, .make = make_found, .refuse = refuse_none};
}

}  // namespace gpunn::tasks
