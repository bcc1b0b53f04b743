#include <gpunn/error.hpp>

#include <exception>

#include "execution/backend_impl.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

namespace {

class CapturedGraph final : public Backend::Captured {
 public:
  CapturedGraph(const Level& level, gpunn_graph* graph) : level_(level), graph_(graph) {}
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  ~CapturedGraph() override {
    plugins::guarded_void([&] { level_.table().graph_free(graph_); });
  }
  void launch() override {
    plugins::call(*level_.plugin, "graph_launch",
                  [&](gpunn_error* error) { return level_.table().graph_launch(graph_, level_.stream, error); });
  }

 private:
  const Level& level_;
  gpunn_graph* graph_;
};

}  // namespace

void Backend::begin_capture() {
  const Level& level = impl_->bottom();
  if (!can_capture()) throw Error("plugin '" + level.plugin->name() + "' captures no graphs");
  plugins::call(*level.plugin, "capture_begin",
                [&](gpunn_error* error) { return level.table().capture_begin(level.stream, error); });
}

std::unique_ptr<Backend::Captured> Backend::end_capture() {
  const Level& level = impl_->bottom();
  if (!can_capture()) throw Error("plugin '" + level.plugin->name() + "' captures no graphs");
  gpunn_graph* graph = nullptr;
  plugins::call(*level.plugin, "capture_end",
                [&](gpunn_error* error) { return level.table().capture_end(level.stream, &graph, error); });
  if (graph == nullptr) throw Error("plugin '" + level.plugin->name() + "': capture_end said OK but gave no graph");
  return std::make_unique<CapturedGraph>(level, graph);
}

std::unique_ptr<Backend::Captured> capture(Backend& backend, const std::function<void()>& enqueue) {
  backend.begin_capture();
  try {
    enqueue();
  } catch (...) {
    try {
      backend.end_capture();
    } catch (const std::exception&) {  // the first error is the one to tell
    }
    throw;
  }
  return backend.end_capture();
}

}  // namespace gpunn::execution
