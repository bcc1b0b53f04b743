#include "conv/depthwise/depthwise_plan.hpp"

#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <array>

#include "cuda_common/divide_up.hpp"

namespace gpunn::cuda_tiled::depthwise {

using backends::ConvolutionPass;
using backends::ConvolutionShape;
using cuda::divide_up;

namespace {

constexpr int kBanks = 32;
constexpr int kBankBytes = 4;
constexpr int kPieceBytes = 16;
constexpr int kMostThreads = 256;
constexpr uint32_t kMostShared = 48 * 1024;
constexpr int kBlocksEach = 6;  // of a multiprocessor, that share out a weight gradient

// Rows of a chunk: few enough for many threads, many beside the rows that two chunks both read.
int rows_of_chunk(int64_t taps, int rows) { return std::min(static_cast<int>(4 * (taps - 1)), rows); }

// How many times a warp goes to the same bank to read one element a lane, lanes being `step` elements apart in a plane
// and planes `pitch`.
int conflicts(int pitch, int columns, int step, int element_bytes) {
  std::array<int, kBanks> words{};
  std::array<int, kBanks> last{};
  last.fill(-1);
  for (int lane = 0; lane < 32; ++lane) {
    const int word = (lane / columns * pitch + lane % columns * step) * element_bytes / kBankBytes;
    const auto bank = static_cast<std::size_t>(word % kBanks);
    if (last[bank] != word) ++words[bank];
    last[bank] = word;
  }
  return *std::max_element(words.begin(), words.end());
}

// The least pitch without conflicts between planes, or with the fewest.
int pitch_of(int plane, int columns, int step, int element_bytes) {
  if (plane * element_bytes % kPieceBytes != 0 || columns >= 32) return plane;
  const int piece = kPieceBytes / element_bytes;
  int best = plane;
  for (int pitch = plane; pitch < plane + 8 * piece; pitch += piece) {
    if (conflicts(pitch, columns, step, element_bytes) < conflicts(best, columns, step, element_bytes)) best = pitch;
  }
  return best;
}

// What both tensors of a pass are to the threads: the one whose rows they share out, and the one they read for it.
struct Sides {
  int rows, columns;  // shared out
  int read_rows, read_columns;
  int step;  // columns of the side read from one column shared out to the next
  // Rows that `rows` rows shared out need.
  int needed(int of_rows, int reach) const { return std::min(of_rows * step + reach, read_rows); }
};

Sides sides_of(const DepthwiseProblem& problem) {
  const Sizes z = sizes_of(problem.shape);
  const Extents extents = extents_of(problem);
  if (problem.pass == ConvolutionPass::backward_data) {
    return {extents.rows, extents.columns, z.y_rows, z.y_columns, 1};
  }
  return {extents.rows, extents.columns, z.x_rows, z.x_columns, static_cast<int>(problem.shape.rows.stride)};
}

int round_up(int64_t n, int64_t to) { return static_cast<int>(divide_up(n, to) * to); }

}  // namespace

Sizes sizes_of(const ConvolutionShape& s) {
  return {.batch = static_cast<int>(s.batch),
          .channels = static_cast<int>(s.groups),
          .x_rows = static_cast<int>(s.rows.inputs),
          .x_columns = static_cast<int>(s.columns.inputs),
          .y_rows = static_cast<int>(s.rows.outputs),
          .y_columns = static_cast<int>(s.columns.outputs),
          .pad_rows = static_cast<int>(s.rows.pad),
          .pad_columns = static_cast<int>(s.columns.pad)};
}

int shift_of(const ConvolutionShape& shape) { return static_cast<int>(shape.rows.pad % shape.rows.stride); }

std::string sliding_refuses(const DepthwiseProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  if (s.group_outputs != 1) return "takes one filter a channel";
  const int64_t taps = s.rows.taps, stride = s.rows.stride;
  if (taps != s.columns.taps || (taps != 3 && taps != 5 && taps != 7)) return "is for filters of 3x3, 5x5 and 7x7";
  if (stride != s.columns.stride || stride > 2) return "is for strides of 1 and 2";
  if (s.rows.dilation != 1 || s.columns.dilation != 1) return "takes no dilation";
  if (s.rows.pad % stride != s.columns.pad % stride) return "wants the padding of rows and columns both even or odd";
  return "";
}

Extents extents_of(const DepthwiseProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  if (problem.pass != ConvolutionPass::backward_data) {
    return {static_cast<int>(s.rows.outputs), static_cast<int>(s.columns.outputs)};
  }
  return {static_cast<int>(divide_up(s.rows.inputs, s.rows.stride)),
          static_cast<int>(divide_up(s.columns.inputs, s.columns.stride))};
}

PackedPlan packed_plan(const DepthwiseProblem& problem) {
  const ConvolutionShape& shape = problem.shape;
  const bool of_filter = problem.pass == ConvolutionPass::backward_filter;
  const int bytes = static_cast<int>(ops::dtype_bytes(problem.dtype));
  const int taps = static_cast<int>(shape.rows.taps);
  const int wanted = (of_filter ? 16 : 12) * 1024 / bytes;  // elements of a tile
  const int most = static_cast<int>(kMostShared) / bytes / (of_filter ? 2 : 1) - 2 * kPieceBytes;
  const Sides sides = sides_of(problem);
  const int plane = sides.read_rows * sides.read_columns;
  const int other = of_filter ? sides.rows * sides.columns : 0;  // elements of dy that a tile has too
  const int64_t planes = shape.batch * shape.groups;
  PackedPlan plan;
  plan.chunk = rows_of_chunk(taps, sides.rows);
  plan.rows = sides.rows;
  const auto elements = [&](int rows) {
    return sides.needed(rows, taps) * sides.read_columns + (of_filter ? rows * sides.columns : 0);
  };
  while (elements(plan.rows) > std::min(2 * wanted, most) && plan.rows > plan.chunk) {
    plan.rows = std::max(plan.chunk, round_up(divide_up(plan.rows, 2), plan.chunk));
  }
  while (elements(plan.rows) > most && plan.rows > 1) plan.chunk = plan.rows = (plan.rows + 1) / 2;
  const bool whole = plan.rows >= sides.rows;
  if (of_filter) {  // a thread keeps its column
    while (plan.chunk < plan.rows && divide_up(plan.rows, plan.chunk) * sides.columns > kMostThreads) ++plan.chunk;
  }
  plan.chunks = divide_up(plan.rows, plan.chunk);
  const int columns = plan.chunks * sides.columns;  // of threads, in a plane
  if (whole) {
    const int64_t most_planes =
        of_filter ? std::min<int64_t>(shape.groups, std::max(1, kMostThreads / columns)) : planes;
    plan.planes = static_cast<int>(std::clamp<int64_t>(wanted / std::max(plane + other, 1), 1, most_planes));
  }
  plan.pitch = plane;
  if (whole && !of_filter && plan.planes > 1) plan.pitch = pitch_of(plane, sides.columns, sides.step, bytes);
  const int piece = kPieceBytes / bytes;
  plan.x_stage = whole ? plan.planes * plan.pitch : sides.needed(plan.rows, taps) * sides.read_columns;
  plan.x_stage = round_up(plan.x_stage + piece, piece);
  plan.stage = plan.x_stage;
  const int64_t tasks = int64_t{plan.planes} * columns;
  plan.threads = round_up(divide_up(tasks, divide_up(tasks, kMostThreads)), 32);
  const int tiles_down = divide_up(sides.rows, plan.rows);
  plan.by_columns = Divider(sides.columns);
  plan.by_planes = Divider(plan.planes);
  plan.by_tiles = Divider(tiles_down);
  plan.by_channels = Divider(shape.groups);
  plan.pieces = Divider(plane / piece);
  if (!of_filter) {
    plan.blocks = divide_up(planes, int64_t{plan.planes}) * tiles_down;
    plan.shared_bytes = static_cast<uint32_t>(plan.stage * bytes);
    return plan;
  }
  plan.stage += round_up((whole ? plan.planes * other : plan.rows * sides.columns) + piece, piece);
  const int64_t channel_blocks = divide_up(shape.groups, int64_t{plan.planes});
  const int64_t items = shape.batch * tiles_down;
  const int64_t splits =
      std::clamp<int64_t>(divide_up(int64_t{problem.multiprocessors} * kBlocksEach, channel_blocks), 1, items);
  plan.splits = static_cast<int>(divide_up(items, divide_up(items, splits)));
  plan.by_channel_blocks = Divider(channel_blocks);
  plan.blocks = channel_blocks * plan.splits;
  plan.shared_bytes = static_cast<uint32_t>(std::max(2 * plan.stage * bytes, taps * plan.threads * kBankBytes));
  return plan;
}

ChannelsLastPlan channels_last_plan(const DepthwiseProblem& problem) {
  constexpr int kLeastLanes = 8, kMostLanes = 32;
  constexpr int64_t kThreadsEach = 2048;  // of a multiprocessor
  const ConvolutionShape& shape = problem.shape;
  const bool of_filter = problem.pass == ConvolutionPass::backward_filter;
  const int64_t packs = shape.groups / width_of(shape.rows.taps);
  const Extents extents = extents_of(problem);
  const int columns = divide_up(extents.columns, columns_of(problem.pass, shape.rows.stride));
  ChannelsLastPlan plan;
  plan.lanes = static_cast<int>(std::min<int64_t>(packs, kMostLanes));
  while (packs % plan.lanes != 0) --plan.lanes;
  if (plan.lanes < kLeastLanes) plan.lanes = static_cast<int>(std::min<int64_t>(packs, kMostLanes));
  const int64_t lane_blocks = divide_up(packs, int64_t{plan.lanes});
  const int64_t threads = lane_blocks * plan.lanes * columns * shape.batch;  // with all rows and one image each
  const int64_t enough = kThreadsEach * problem.multiprocessors;
  plan.chunk = extents.rows;
  const int least = static_cast<int>(2 * (shape.rows.taps - 1));
  while (plan.chunk > least && threads * divide_up(extents.rows, plan.chunk) < enough)
    plan.chunk = (plan.chunk + 1) / 2;
  const int chunks = divide_up(extents.rows, plan.chunk);
  plan.by_lanes = Divider(plan.lanes);
  plan.by_columns = Divider(columns);
  plan.by_chunks = Divider(chunks);
  if (of_filter) {
    plan.depth = std::max(1, kChannelsLastThreads / plan.lanes);
    plan.tasks = int64_t{columns} * chunks * shape.batch;
    const int64_t wanted = divide_up(enough / kChannelsLastThreads / 2, lane_blocks);
    const int64_t most = divide_up(plan.tasks, int64_t{plan.depth});
    plan.splits = static_cast<int>(std::clamp<int64_t>(wanted, 1, most));
    return plan;
  }
  // Images of few rows: several of them, so that their filter is worth loading.
  while (plan.images < shape.batch && plan.images * plan.chunk < 8 && threads * chunks / (2 * plan.images) >= enough) {
    plan.images *= 2;
  }
  const int image_blocks = static_cast<int>(divide_up(shape.batch, int64_t{plan.images}));
  plan.by_images = Divider(image_blocks);
  plan.tasks = lane_blocks * plan.lanes * columns * chunks * image_blocks;
  return plan;
}

}  // namespace gpunn::cuda_tiled::depthwise
