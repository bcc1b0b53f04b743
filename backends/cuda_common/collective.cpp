#include "cuda_common/collective.hpp"

#include <atomic>
#include <cstddef>
#include <string>

#include <dlfcn.h>

#include "cuda_common/check.hpp"
#include "cuda_common/peer_sums.hpp"
#include "cuda_common/stream.hpp"

#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

namespace gpunn::cuda {

namespace {

using plugin::Failure;

// 2.18 records collectives in graphs of several streams.
constexpr int kOldest = 21800;

// What is used of NCCL's interface, which is the same from 2.18 on.
struct UniqueId {
  char bytes[128];
};
using Comm = void*;
using Result = int;  // 0: success
constexpr int kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9;
constexpr int kSum = 0;

#if defined(NCCL_VERSION_CODE)
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId) && int{ncclSuccess} == 0 && int{ncclSum} == kSum);
static_assert(int{ncclFloat16} == kFloat16 && int{ncclFloat32} == kFloat32);
static_assert(int{ncclFloat64} == kFloat64 && int{ncclBfloat16} == kBfloat16);
#endif

class Nccl {
 public:
  // Empty `trouble`: it can be used.
  static const Nccl& loaded() {
    static const Nccl library;
    return library;
  }

  std::string trouble;
  Result (*get_unique_id)(UniqueId*) = nullptr;
  Result (*init_rank)(Comm*, int, UniqueId, int) = nullptr;
  Result (*destroy)(Comm) = nullptr;
  Result (*abort)(Comm) = nullptr;
  Result (*all_reduce)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
  Result (*broadcast)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
  Result (*all_gather)(const void*, void*, std::size_t, int, Comm, cudaStream_t) = nullptr;
  Result (*reduce_scatter)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t) = nullptr;
  const char* (*error_text)(Result) = nullptr;

  void check(Result result, const char* what) const {
    if (result != 0) throw Failure(GPUNN_INTERNAL, std::string("NCCL: ") + what + ": " + error_text(result));
  }

 private:
  Nccl() {
    void* const library = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      trouble = std::string("NCCL can't be loaded: ") + ::dlerror();
      return;
    }
    Result (*get_version)(int*) = nullptr;
    load(library, "ncclGetVersion", get_version);
    load(library, "ncclGetUniqueId", get_unique_id);
    load(library, "ncclCommInitRank", init_rank);
    load(library, "ncclCommDestroy", destroy);
    load(library, "ncclCommAbort", abort);
    load(library, "ncclAllReduce", all_reduce);
    load(library, "ncclBroadcast", broadcast);
    load(library, "ncclAllGather", all_gather);
    load(library, "ncclReduceScatter", reduce_scatter);
    load(library, "ncclGetErrorString", error_text);
    int version = 0;
    if (trouble.empty() && (get_version(&version) != 0 || version < kOldest)) {
      trouble = "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) +
                " is too old; 2.18 or later is needed";
    }
  }

  template <class F>
  void load(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(::dlsym(library, name));
    if (function == nullptr && trouble.empty()) trouble = std::string("NCCL has no ") + name;
  }
};

int type_of(int32_t dtype) {
  switch (dtype) {
    case GPUNN_F32:
      return kFloat32;
    case GPUNN_F64:
      return kFloat64;
    case GPUNN_BF16:
      return kBfloat16;
    case GPUNN_F16:
      return kFloat16;
    default:
      return -1;
  }
}

class NcclCommunicator final : public plugin::Communicator {
 public:
  NcclCommunicator(const CudaDevice& device, const plugin::CommunicatorOptions& options) : nccl_(Nccl::loaded()) {
    for (const int ready : options.exchange(nccl_.trouble.empty() ? 1 : 0)) {
      if (ready == 0) {
        throw Failure(GPUNN_UNSUPPORTED, nccl_.trouble.empty() ? "another rank has no NCCL" : nccl_.trouble);
      }
    }
    check(cudaSetDevice(device.index()), "choosing the device");
    UniqueId id{};
    if (options.rank() == 0) nccl_.check(nccl_.get_unique_id(&id), "making an id of the ranks");
    id = options.exchange(id).front();
    nccl_.check(nccl_.init_rank(&comm_, options.world(), id, options.rank()), "joining the ranks");
  }
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  ~NcclCommunicator() override {
    if (comm_ != nullptr && !aborted_.exchange(true)) nccl_.destroy(comm_);
  }

  // NCCL chooses the order of a sum by sizes and links.
  plugin::CollectiveSupport query(const gpunn_collective_desc& desc) override {
    if (type_of(desc.dtype) < 0) return plugin::CollectiveSupport::no("of floating-point numbers only");
    const bool sums = desc.kind == GPUNN_ALL_REDUCE || desc.kind == GPUNN_REDUCE_SCATTER;
    if (sums && (desc.flags & GPUNN_OP_REQUIRE_DETERMINISTIC) != 0) {
      return plugin::CollectiveSupport::no("NCCL promises no order of a sum");
    }
    return plugin::CollectiveSupport::yes(GPUNN_OP_CAPTURABLE | (sums ? 0U : uint32_t{GPUNN_OP_DETERMINISTIC}));
  }

  void enqueue(plugin::Stream& on, const gpunn_collective_desc& desc, const void* in, void* out) override {
    if (aborted_) throw Failure(GPUNN_INTERNAL, "another rank is lost");
    const int type = type_of(desc.dtype);
    cudaStream_t const stream = native(on);
    switch (desc.kind) {
      case GPUNN_ALL_REDUCE:
        return nccl_.check(nccl_.all_reduce(in, out, desc.count, type, kSum, comm_, stream), "an all-reduce");
      case GPUNN_BROADCAST:
        return nccl_.check(nccl_.broadcast(in, out, desc.count, type, desc.root, comm_, stream), "a broadcast");
      case GPUNN_ALL_GATHER:
        return nccl_.check(nccl_.all_gather(in, out, desc.count, type, comm_, stream), "an all-gather");
      default:
        return nccl_.check(nccl_.reduce_scatter(in, out, desc.count, type, kSum, comm_, stream), "a reduce-scatter");
    }
  }

  // Its kernels end, which would wait for a lost rank for ever.
  void abort() noexcept override {
    if (!aborted_.exchange(true)) nccl_.abort(comm_);
  }

 private:
  const Nccl& nccl_;
  Comm comm_ = nullptr;
  std::atomic<bool> aborted_{false};
};

// nullptr on every rank, and the reason, where made() throws that there is no way.
template <class T, class... Arguments>
std::unique_ptr<T> made_if_possible(std::string& trouble, const Arguments&... arguments) {
  try {
    return std::make_unique<T>(arguments...);
  } catch (const Failure& failure) {
    if (failure.status() != GPUNN_UNSUPPORTED) throw;
    trouble = failure.what();
    return nullptr;
  }
}

// By NCCL, but sums through the memory of the GPUs where NCCL is missing or its order will not do.
class CudaCommunicator final : public plugin::Communicator {
 public:
  CudaCommunicator(const CudaDevice& device, const plugin::CommunicatorOptions& options)
      : peers_(made_if_possible<PeerSums>(trouble_, device, options)),
        nccl_(made_if_possible<NcclCommunicator>(trouble_, device, options)) {
    if (peers_ == nullptr && nccl_ == nullptr) throw Failure(GPUNN_UNSUPPORTED, trouble_);
  }

  plugin::CollectiveSupport query(const gpunn_collective_desc& desc) override {
    if (goes_through_memory(desc)) {
      return plugin::CollectiveSupport::yes(GPUNN_OP_CAPTURABLE | GPUNN_OP_DETERMINISTIC);
    }
    return nccl_ == nullptr ? plugin::CollectiveSupport::no(trouble_) : nccl_->query(desc);
  }
  void enqueue(plugin::Stream& on, const gpunn_collective_desc& desc, const void* in, void* out) override {
    if (goes_through_memory(desc)) return peers_->enqueue(native(on), desc, in, out);
    nccl_->enqueue(on, desc, in, out);
  }
  // NCCL's abort waits for its kernels, which may be behind one that waits for a peer.
  void abort() noexcept override {
    if (peers_ != nullptr) peers_->abort();
    if (nccl_ != nullptr) nccl_->abort();
  }

 private:
  bool goes_through_memory(const gpunn_collective_desc& desc) const {
    const bool wanted = nccl_ == nullptr || (desc.flags & GPUNN_OP_REQUIRE_DETERMINISTIC) != 0;
    return wanted && peers_ != nullptr && peers_->serves(desc);
  }

  std::string trouble_;
  std::unique_ptr<PeerSums> peers_;
  std::unique_ptr<NcclCommunicator> nccl_;
};

}  // namespace

std::unique_ptr<plugin::Communicator> create_communicator(const CudaDevice& device,
                                                          const plugin::CommunicatorOptions& options) {
  return std::make_unique<CudaCommunicator>(device, options);
}

}  // namespace gpunn::cuda
