#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda_common/alignment.hpp"
#include "cuda_common/check.hpp"
#include "cuda_common/launch.hpp"
#include "cuda_common/peer_sums.hpp"
#include "cuda_common/peer_wait.cuh"

namespace gpunn::cuda {

namespace {

constexpr int kMostRanks = 8;
// Of a sum in words: elements of 4 bytes, or pairs of 2.
constexpr int64_t kMostWords = int64_t{1} << 18;
constexpr int64_t kStaging = int64_t{32} << 20;  // bytes copied at once
constexpr std::size_t kMarkBytes = 256;          // two marks lie in lines of their own
constexpr int kArrived = 0, kAdded = 32;         // marks, in words

// Numbers that only this GPU has.
struct Counters {
  uint32_t sums;    // in words, that have ended
  uint32_t copies;  // that this rank has added
  uint32_t blocks;  // of the running kernel that have ended
  uint32_t stopped;
};

struct Peers {
  PeerSumMemory of[kMostRanks];
  PeerStop stop;
  Counters* counters;
  int rank, world;
};

std::size_t arena_bytes(int world) {
  const auto words = static_cast<std::size_t>(2 * world * kMostWords) * sizeof(uint64_t);
  return words + kMarkBytes + (world == 2 ? static_cast<std::size_t>(kStaging) : 0);
}

std::size_t size_of(int32_t dtype) { return dtype == GPUNN_F32 ? 4 : 2; }

int64_t words_of(const gpunn_collective_desc& desc) {
  return divide_up(static_cast<int64_t>(desc.count * size_of(desc.dtype)), 4);
}

__device__ __forceinline__ uint32_t load_mark(const uint32_t* mark) {
  uint32_t value = 0;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(mark) : "memory");
  return value;
}

__device__ __forceinline__ void store_mark(uint32_t* mark, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(mark), "r"(value) : "memory");
}

__device__ __forceinline__ void store_word(uint64_t* to, uint64_t word) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

__device__ __forceinline__ uint64_t load_word(const uint64_t* from) {
  uint64_t word = 0;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
  return word;
}

// Whether this is the last block of the kernel to get here; all writes of the others are seen then.
__device__ __forceinline__ bool is_last_block(uint32_t& blocks) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(&blocks, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  return last;
}

// The elements of a word: one float, or two of 2 bytes.
template <class T>
struct WordElements {
  static constexpr int kCount = 4 / static_cast<int>(sizeof(T));
  T value[kCount];
};

// Words that a thread has at once: with few of them a sum would take many multiprocessors while it waits.
constexpr int kWordsOfThread = 8;
constexpr int64_t kWordsOfBlock = int64_t{kThreads} * kWordsOfThread;

template <class T>
__global__ void sum_words(const T* in, T* out, int64_t count, const __grid_constant__ Peers peers) {
  constexpr int kCount = WordElements<T>::kCount;
  const uint32_t number = *static_cast<volatile const uint32_t*>(&peers.counters->sums) + 1;
  const int64_t half = (number & 1U) != 0 ? peers.world * kMostWords : 0;
  const int64_t first = blockIdx.x * kWordsOfBlock + threadIdx.x;
  const int64_t words = (count + kCount - 1) / kCount;
  uint32_t own[kWordsOfThread] = {};
#pragma unroll
  for (int i = 0; i < kWordsOfThread; ++i) {
    const int64_t at = first + i * kThreads;
    if (at >= words) continue;
    WordElements<T> elements;
#pragma unroll
    for (int j = 0; j < kCount; ++j) elements.value[j] = at * kCount + j < count ? in[at * kCount + j] : T(0.0F);
    memcpy(&own[i], &elements, sizeof(own[i]));
  }
  for (int i = 1; i < peers.world; ++i) {
    // Not all ranks write to one of them first.
    const int other = peers.rank + i < peers.world ? peers.rank + i : peers.rank + i - peers.world;
    uint64_t* to = peers.of[other].words + half + peers.rank * kMostWords;
#pragma unroll
    for (int j = 0; j < kWordsOfThread; ++j) {
      const int64_t at = first + j * kThreads;
      if (at < words) store_word(to + at, uint64_t{number} << 32 | own[j]);
    }
  }
  PeerPatience patience(peers.stop);
#pragma unroll
  for (int i = 0; i < kWordsOfThread; ++i) {
    const int64_t at = first + i * kThreads;
    if (at >= words) continue;
    float sum[kCount] = {};
    for (int rank = 0; rank < peers.world; ++rank) {
      uint32_t bits = own[i];
      while (rank != peers.rank) {
        const uint64_t word = load_word(peers.of[peers.rank].words + half + rank * kMostWords + at);
        bits = static_cast<uint32_t>(word);
        if (word >> 32 == number || patience.exhausted()) break;
      }
      WordElements<T> elements;
      memcpy(&elements, &bits, sizeof(bits));
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const auto value = static_cast<float>(elements.value[j]);
        sum[j] = rank == 0 ? value : sum[j] + value;
      }
    }
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      if (at * kCount + j < count) out[at * kCount + j] = static_cast<T>(sum[j]);
    }
  }
  // All blocks have read the number.
  if (is_last_block(peers.counters->blocks) && threadIdx.x == 0) peers.counters->sums = number;
}

// Before a copy: the other rank has added the one before, which lies where this one goes.
__global__ void await_room(const __grid_constant__ Peers peers) {
  const uint32_t copies = peers.counters->copies;
  PeerPatience patience(peers.stop);
  while (load_mark(peers.of[peers.rank].marks + kAdded) != copies && !patience.exhausted()) {
  }
}

// Behind a copy: tells the other rank of it, and waits for the other rank's.
__global__ void await_copy(const __grid_constant__ Peers peers) {
  const uint32_t number = peers.counters->copies + 1;
  store_mark(peers.of[1 - peers.rank].marks + kArrived, number);
  PeerPatience patience(peers.stop);
  // The other rank may be one copy ahead once this rank has told it that there is room, and not before.
  while (load_mark(peers.of[peers.rank].marks + kArrived) != number && !patience.exhausted()) {
  }
}

template <class T, int COUNT>
struct alignas(sizeof(T) * COUNT) Elements {
  T value[COUNT];
};

// out = in + what the other rank has copied here. A sum of two has one result in either order.
template <class T, int COUNT>
__global__ void add_copy(const T* in, T* out, int64_t count, const __grid_constant__ Peers peers) {
  using Piece = Elements<T, COUNT>;
  const auto* own = reinterpret_cast<const Piece*>(in);
  const auto* other = reinterpret_cast<const Piece*>(peers.of[peers.rank].staging);
  const int64_t pieces = count / COUNT;
  const int64_t threads = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = thread_index(); i < pieces; i += threads) {
    Piece a = own[i];
    const Piece b = other[i];
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
      a.value[j] = static_cast<T>(static_cast<float>(a.value[j]) + static_cast<float>(b.value[j]));
    }
    reinterpret_cast<Piece*>(out)[i] = a;
  }
  const int64_t rest = pieces * COUNT + thread_index();
  if (rest < count) {
    const T b = reinterpret_cast<const T*>(other)[rest];
    out[rest] = static_cast<T>(static_cast<float>(in[rest]) + static_cast<float>(b));
  }
  if (is_last_block(peers.counters->blocks) && threadIdx.x == 0) {
    const uint32_t copies = peers.counters->copies + 1;
    peers.counters->copies = copies;
    store_mark(peers.of[1 - peers.rank].marks + kAdded, copies);
  }
}

template <class T>
void enqueue_words(cudaStream_t stream, const T* in, T* out, int64_t count, const Peers& peers) {
  const unsigned blocks = grid_size(divide_up(count, int64_t{WordElements<T>::kCount}), kWordsOfBlock);
  launch(sum_words<T>, {dim3(blocks), dim3(kThreads)}, stream, in, out, count, peers);
}

template <class T>
void enqueue_copies(cudaStream_t stream, const T* in, T* out, int64_t count, const Peers& peers) {
  constexpr int kPiece = 16 / static_cast<int>(sizeof(T));
  constexpr int64_t kAtOnce = kStaging / static_cast<int64_t>(sizeof(T));
  constexpr unsigned kBlocks = 264;  // two on each multiprocessor of an H100
  const bool aligned = are_aligned({in, out}, 16);
  const Launch single{dim3(1), dim3(1)};
  for (int64_t from = 0; from < count; from += kAtOnce) {
    const int64_t part = std::min(kAtOnce, count - from);
    launch(await_room, single, stream, peers);
    check(cudaMemcpyAsync(peers.of[1 - peers.rank].staging, in + from, static_cast<std::size_t>(part) * sizeof(T),
                          cudaMemcpyDeviceToDevice, stream),
          "copying to another GPU");
    launch(await_copy, single, stream, peers);
    const Launch many{dim3(std::min(kBlocks, grid_size(part, int64_t{kThreads} * kPiece))), dim3(kThreads)};
    launch(aligned ? add_copy<T, kPiece> : add_copy<T, 1>, many, stream, in + from, out + from, part, peers);
  }
}

}  // namespace

PeerSums::PeerSums(const CudaDevice& device, const plugin::CommunicatorOptions& options)
    : group_(device, options), arena_(group_, arena_bytes(options.world())) {
  check(cudaMalloc(&counters_, sizeof(Counters)), "cudaMalloc of counters");
  check(cudaMemset(counters_, 0, sizeof(Counters)), "clearing counters");
  check(cudaStreamSynchronize(cudaStreamLegacy), "waiting for the counters");
}

PeerSums::~PeerSums() {
  if (group_.world() == 2) await_last_mark();
  cudaFree(counters_);
}

// The other rank's last write here: before it, this memory has to stay.
void PeerSums::await_last_mark() const noexcept {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  while (!group_.is_lost() && Clock::now() < deadline) {
    Counters counters{};
    uint32_t added = 0;
    const bool read =
        cudaMemcpy(&counters, counters_, sizeof(counters), cudaMemcpyDeviceToHost) == cudaSuccess &&
        cudaMemcpy(&added, of(group_.rank()).marks + kAdded, sizeof(added), cudaMemcpyDeviceToHost) == cudaSuccess;
    if (!read || added == counters.copies) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

PeerSumMemory PeerSums::of(int rank) const {
  char* const memory = static_cast<char*>(arena_.of(rank));
  const auto words = static_cast<std::size_t>(2 * group_.world() * kMostWords) * sizeof(uint64_t);
  return {.words = reinterpret_cast<uint64_t*>(memory),
          .marks = reinterpret_cast<uint32_t*>(memory + words),
          .staging = memory + words + kMarkBytes};
}

bool PeerSums::serves(const gpunn_collective_desc& desc) const {
  if (desc.kind != GPUNN_ALL_REDUCE || group_.world() > kMostRanks) return false;
  if (desc.dtype != GPUNN_F32 && desc.dtype != GPUNN_BF16 && desc.dtype != GPUNN_F16) return false;
  return group_.world() == 2 || words_of(desc) <= kMostWords;
}

void PeerSums::enqueue(cudaStream_t stream, const gpunn_collective_desc& desc, const void* in, void* out) {
  group_.throw_if_lost();
  const auto count = static_cast<int64_t>(desc.count);
  if (count == 0) return;
  auto* const counters = static_cast<Counters*>(counters_);
  Peers peers{.of = {},
              .stop = {.host = group_.stop(), .gpu = &counters->stopped},
              .counters = counters,
              .rank = group_.rank(),
              .world = group_.world()};
  for (int rank = 0; rank < group_.world(); ++rank) peers.of[rank] = of(rank);
  const auto run = [&]<class T>(const T* from, T* to) {
    if (words_of(desc) <= kMostWords) {
      enqueue_words(stream, from, to, count, peers);
    } else {
      enqueue_copies(stream, from, to, count, peers);
    }
  };
  switch (desc.dtype) {
    case GPUNN_BF16:
      return run(static_cast<const __nv_bfloat16*>(in), static_cast<__nv_bfloat16*>(out));
    case GPUNN_F16:
      return run(static_cast<const __half*>(in), static_cast<__half*>(out));
    default:
      return run(static_cast<const float*>(in), static_cast<float*>(out));
  }
}

}  // namespace gpunn::cuda
