#include "plan/ranks_report.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "execution/ranks/collective.hpp"
#include "ops/op.hpp"

namespace gpunn::training {

namespace {

// Floating-point operations that take as long as a byte of memory traffic: of an H200 in bf16, and about of others.
constexpr double kFlopsOfByte = 186;

using graph::Graph;
using graph::Node;

bool touch(const Graph& g, const Node& a, const Node& b) {
  const auto overlaps = [&](graph::ValueId x, graph::ValueId y) {
    if (g.root(x) != g.root(y)) return false;
    const int64_t x_begin = g.root_offset(x), y_begin = g.root_offset(y);
    return x_begin < y_begin + static_cast<int64_t>(g.value(y).type.bytes()) &&
           y_begin < x_begin + static_cast<int64_t>(g.value(x).type.bytes());
  };
  const auto any = [&](const std::vector<graph::ValueId>& xs, const std::vector<graph::ValueId>& ys) {
    return std::ranges::any_of(xs, [&](graph::ValueId x) {
      return std::ranges::any_of(ys, [&](graph::ValueId y) { return overlaps(x, y); });
    });
  };
  return any(a.inputs, b.outputs) || any(a.outputs, b.inputs) || any(a.outputs, b.outputs);
}

// Behind each node the work that is done, the last one's being all: a fused subgraph is done as a whole.
std::vector<double> work_done(const execution::CompiledProgram& program) {
  const std::vector<Node>& nodes = program.graph.nodes();
  std::vector<double> done;
  double sum = 0;
  for (const Node& node : nodes) {
    const graph::OpSignature signature = program.graph.signature(node);
    if (!execution::is_collective(node.op)) {
      sum += std::max(ops::flops_of(signature) / kFlopsOfByte, ops::bytes_of(signature));
    }
    done.push_back(sum);
  }
  for (const execution::Subgraph& subgraph : program.subgraphs.taken) {
    for (std::size_t n = subgraph.nodes.first; n < subgraph.nodes.end(); ++n) {
      done[n] = done[subgraph.nodes.end() - 1];
    }
  }
  for (double& one : done) one /= std::max(sum, 1.0);
  return done;
}

}  // namespace

PlannedRanks describe_ranks(const execution::CompiledProgram& program, const Division& division) {
  PlannedRanks ranks;
  ranks.devices = division.world;
  ranks.rows = division.my_rows().count();
  const Graph& g = program.graph;
  const std::vector<double> done = work_done(program);
  for (std::size_t n = 0; n < g.nodes().size(); ++n) {
    const Node& node = g.nodes()[n];
    if (!execution::is_collective(node.op)) continue;
    PlannedCollective one;
    one.op = ops::op_info(node.op).name;
    one.name = node.name;
    one.index = static_cast<int64_t>(n);
    one.starts_after = -1;
    const bool gathers = node.op == GPUNN_OP_ALL_GATHER;
    one.bytes = g.value(gathers ? node.outputs[0] : node.inputs[0]).type.bytes();
    const auto devices = static_cast<uint64_t>(division.world);
    one.fused = std::ranges::any_of(program.subgraphs.taken, [&](const execution::Subgraph& subgraph) {
      return n >= subgraph.nodes.first && n < subgraph.nodes.end();
    });
    one.sent_bytes = one.fused ? one.bytes * (devices - 1)
                               : (node.op == GPUNN_OP_ALL_REDUCE ? 2 : 1) * one.bytes * (devices - 1) / devices;
    for (std::size_t earlier = n; earlier-- > 0 && one.starts_after < 0;) {
      if (touch(g, g.nodes()[earlier], node)) one.starts_after = static_cast<int64_t>(earlier);
    }
    if (one.starts_after >= 0) one.begins_at = done[static_cast<std::size_t>(one.starts_after)];
    for (std::size_t later = n + 1; later < g.nodes().size(); ++later) {
      if (!touch(g, node, g.nodes()[later])) continue;
      one.needed_at = later == 0 ? 0 : done[later - 1];
      break;
    }
    ranks.sent_bytes += one.sent_bytes;
    ranks.collectives.push_back(std::move(one));
  }
  return ranks;
}

}  // namespace gpunn::training
