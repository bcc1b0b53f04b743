#include "program/recomputed_stages.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "compiler/recompute.hpp"
#include "config/layer_names.hpp"

namespace gpunn::training {

namespace {

// The ends of the pieces into which a run of layers is cut, each within half a piece of where equal pieces would end.
std::vector<std::size_t> ends_of_pieces(const std::vector<std::string>& layers,
                                        const std::map<std::string, uint64_t>& bytes) {
  const std::size_t count = layers.size();
  const auto pieces = static_cast<std::size_t>(std::sqrt(static_cast<double>(count)));
  const std::size_t reach = count / pieces / 2;
  const auto bytes_of_end = [&](std::size_t end) { return bytes.at(layers[end - 1]); };
  std::vector<std::size_t> ends;
  for (std::size_t piece = 1; piece < pieces; ++piece) {
    const std::size_t middle = piece * count / pieces;
    std::size_t best = middle;
    const std::size_t first = std::max(ends.empty() ? 1 : ends.back() + 1, middle - reach);
    for (std::size_t end = first; end <= middle + reach && end < count; ++end) {
      if (bytes_of_end(end) < bytes_of_end(best)) best = end;
    }
    if (ends.empty() || best > ends.back()) ends.push_back(best);
  }
  ends.push_back(count);
  return ends;
}

void append_pieces(std::vector<RecomputedStage>& stages, const std::vector<std::string>& run,
                   const std::map<std::string, uint64_t>& bytes) {
  if (run.empty()) return;
  std::size_t begin = 0;
  for (const std::size_t end : ends_of_pieces(run, bytes)) {
    RecomputedStage stage;
    stage.layers.assign(run.begin() + static_cast<std::ptrdiff_t>(begin),
                        run.begin() + static_cast<std::ptrdiff_t>(end));
    stage.name = stage.layers.front();
    if (stage.layers.size() > 1) stage.name += " to " + stage.layers.back();
    stages.push_back(std::move(stage));
    begin = end;
  }
}

}  // namespace

std::vector<RecomputedStage> recomputed_stages(const Experiment& experiment,
                                               const std::map<std::string, uint64_t>& bytes) {
  std::vector<RecomputedStage> stages;
  std::map<std::string, std::size_t, std::less<>> blocks;  // places in `stages`
  std::vector<std::string> run;                            // neighbours that are matched by their own names
  for (const LayerSpec& layer : experiment.model.layers) {
    const std::string_view match = config::outermost_match(experiment.recompute, layer.name);
    if (match == layer.name) {
      run.push_back(layer.name);
      continue;
    }
    append_pieces(stages, std::exchange(run, {}), bytes);
    if (match.empty()) continue;
    const auto [block, first] = blocks.try_emplace(std::string(match), stages.size());
    if (first) stages.push_back({.name = std::string(match), .layers = {}});
    stages[block->second].layers.push_back(layer.name);
  }
  append_pieces(stages, run, bytes);
  if (experiment.model.layers.empty()) return stages;
  const std::string& last = experiment.model.output_layer().name;
  std::erase_if(stages, [&](const RecomputedStage& stage) { return stage.layers.back() == last; });
  return stages;
}

std::map<std::string, int> stage_numbers(const Experiment& experiment, const std::vector<RecomputedStage>& stages) {
  std::map<std::string, int> numbers;
  for (const LayerSpec& layer : experiment.model.layers) numbers.emplace(layer.name, compiler::kKept);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    for (const std::string& layer : stages[i].layers) numbers.at(layer) = static_cast<int>(i);
  }
  return numbers;
}

}  // namespace gpunn::training
