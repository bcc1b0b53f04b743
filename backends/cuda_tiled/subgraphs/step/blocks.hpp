// The thread blocks of a step's kernels, and the parts of a step that each instance of a kernel knows. Kernels and plan
// agree on these numbers.
#pragma once

namespace gpunn::cuda_tiled {

// The first kernel's blocks: how many are a cluster, which is also the images of a cluster, one a block; their threads;
// and how many should fit a multiprocessor. GPUs have multiprocessors in groups that a cluster can't leave, and 16
// clusters of 8 blocks don't fit the 132 of an H200 unless two blocks share some; but most dense layers don't fit 2.
template <int IMAGES, int THREADS, int BLOCKS, int BOUND>
struct StepBlock {
  static constexpr int kImages = IMAGES;
  static constexpr int kThreads = THREADS;
  static constexpr int kBlocks = BLOCKS;
  // The number of threads that bounds its registers: more than it has, so that a block of the second kernel fits beside
  // it.
  static constexpr int kBound = BOUND;
  static constexpr bool kRounds = false;
};
using PairBlock = StepBlock<2, 512, 1, 768>;
using OctetBlock = StepBlock<8, 384, 2, 384>;
// The blocks of the kernels for large batches (rounds.cuh): a block processes one image after another.
template <int THREADS, int BLOCKS>
struct RoundBlock : StepBlock<1, THREADS, BLOCKS, THREADS> {
  static constexpr bool kRounds = true;
};
using ForwardRounds = RoundBlock<128, 5>;
using BackwardRounds = RoundBlock<128, 4>;
// Threads of the block of dense layers, and the images that it may have.
inline constexpr int kDenseRoundThreads = 512;
inline constexpr int kDenseRoundImages[] = {4, 8, 16};
// In shared memory the gradients of a dense layer lie so far apart besides, so that neighbours meet in few banks.
inline constexpr int kDenseRoundPad = 4;
// The threads that run the forward convolutions. The last warp issues the loads of the dense layers' weights meanwhile,
// and waits while the memory is busy with earlier loads.
template <class B>
struct WithoutLastWarp : B {
  static constexpr int kThreads = B::kThreads - 32;
};
// The parts of a step that the plain kernels lack: these know ReLU, maxima of windows, cross-entropy of labels, SGD and
// Adam alone. Each instance of a kernel knows a set of parts, so that little code lies between what it runs.
inline constexpr unsigned kNoParts = 0;
inline constexpr unsigned kNormPart = 1;    // batch norm with ReLU or no activation
inline constexpr unsigned kFinishPart = 2;  // other activations, means of windows, dropout
inline constexpr unsigned kLossPart = 4;    // other losses; logits and losses that are read outside the step
inline constexpr unsigned kBatchPart = 8;   // batches that are ready, and images that are shifted
inline constexpr unsigned kAllParts = 15;
// All but batch norm, whose images must be there at the same time.
inline constexpr unsigned kRoundParts = kFinishPart | kLossPart | kBatchPart;
// The second kernel has batch norm's part and this one: other optimizers, bounds, averages, a counter that stays.
inline constexpr unsigned kUpdatePart = 2;
inline constexpr unsigned kAllUpdateParts = 3;
inline constexpr unsigned kRankPart = 4;  // likewise, besides them: gradients and losses are added over ranks

// The kernel for a kind of network: columns of all its filters, and its parts.
inline constexpr int kAnyColumns = 0;
inline constexpr int kNoFilters = -1;
template <class B, int COLUMNS, unsigned PARTS = kNoParts>
struct StepCode : B {
  static constexpr int kColumns = COLUMNS;
  static constexpr bool kGeneral = PARTS != kNoParts;
  static constexpr bool kNorms = (PARTS & kNormPart) != 0;
  static constexpr bool kFinishes = (PARTS & kFinishPart) != 0;
  static constexpr bool kLosses = (PARTS & kLossPart) != 0;
  static constexpr bool kBatches = (PARTS & kBatchPart) != 0;
};
inline constexpr int kMostStepImages = 8;
// Sums that a cluster makes of each gradient that it exchanges.
inline constexpr int kStepShares = 8;

// Rows of a dense layer's w that a warp takes at once.
constexpr int dense_tile(int images) { return 4 * (32 / images); }

inline constexpr int kUpdateThreads = 256;
// How often a batch norm's result is written, so that not all blocks read it from the same place.
inline constexpr int kResultCopies = 8;
// The tile of a dense layer's weight gradient: outputs x inputs.
inline constexpr int kUpdateRows = 16;
inline constexpr int kUpdateColumns = 64;
// Columns of the convolutions' sums an image that a block adds.
inline constexpr int kUpdateSums = 64;

// Static shared memory of the first kernel, at most: the limit of the other part is less by it.
inline constexpr int kStepStaticBytes = 512;

// For the data gradient by rows (sparse.cuh): the channels of a lane, the lanes that share the filters, and the
// distance between the sums of two elements, which keeps neighbours in different banks.
inline constexpr int kRowChannels = 3;
inline constexpr int kRowLanes = 16;
inline constexpr int kRowPitch = 33;

}  // namespace gpunn::cuda_tiled
