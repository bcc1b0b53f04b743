// An overlay on cpu, or on SAMPLE_BASE, that serves no single op, but fuses subgraphs and runs them with the kernels of
// the cpu backend. Values that are not needed outside a subgraph lie in its workspace, gradients included. The build
// chooses the kind:
// - KIND_WHOLE: the whole step program is one subgraph.
// - KIND_PIECES: subgraphs of at most five ops, none of which begins with a product.
// - KIND_FORGETFUL: the whole, but the gradients of biases are those of the step before.
// - KIND_MISCOUNTING: the whole, but the metrics are added up twice.
// - KIND_WAVERING: the whole, said to be deterministic, but each step rounds differently.
// - KIND_WIDE: the whole, unless a value of it is of half precision.
// - KIND_IDLE: no subgraph, with a reason.
#include <gpunn/subgraph.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "cpu_library.hpp"

namespace {

using namespace gpunn::plugin;
using samples::CpuLibrary;

enum Kind { KIND_WHOLE, KIND_PIECES, KIND_FORGETFUL, KIND_MISCOUNTING, KIND_WAVERING, KIND_WIDE, KIND_IDLE };
constexpr Kind kKind = SAMPLE_KIND;
#ifndef SAMPLE_BASE
#define SAMPLE_BASE "cpu"
#endif

uint64_t bytes_of(const gpunn_tensor& tensor) {
  const bool wide = tensor.dtype == GPUNN_F64 || tensor.dtype == GPUNN_I64;
  const uint64_t size = wide ? 8 : tensor.dtype == GPUNN_U8 ? 1 : 4;
  return static_cast<uint64_t>(element_count(tensor)) * size;
}

bool has_half(const ProgramDesc& desc, std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) {
    for (const int32_t id : desc.outputs(i)) {
      const int32_t dtype = desc.tensor(id).dtype;
      if (dtype == GPUNN_BF16 || dtype == GPUNN_F16) return true;
    }
  }
  return false;
}

uint64_t align_up(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

// The offsets in the workspace of the roots that a subgraph need not write out.
class Layout {
 public:
  Layout(const ProgramDesc& desc, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      for (const auto ids : {desc.inputs(i), desc.outputs(i)}) {
        for (const int32_t id : ids) add(desc, id, first, end);
      }
    }
  }
  bool holds(int32_t root) const { return offsets_.contains(root); }
  uint64_t offset(int32_t root) const { return offsets_.at(root); }
  uint64_t bytes() const { return bytes_; }

 private:
  void add(const ProgramDesc& desc, int32_t id, std::size_t first, std::size_t end) {
    const int32_t root = desc.value(id).root;
    const int32_t storage = desc.value(root).storage;
    if (storage != GPUNN_STORAGE_ARENA && storage != GPUNN_STORAGE_GRADIENTS) return;
    // A root is kept as a whole: one of its views may be dead while another is needed.
    if (desc.comes_in(root, first) || desc.needed_after(root, end) || holds(root)) return;
    offsets_.emplace(root, bytes_);
    bytes_ += align_up(bytes_of(desc.tensor(root)));
  }
  std::map<int32_t, uint64_t> offsets_;
  uint64_t bytes_ = 0;
};

class Replay final : public Subgraph {
 public:
  Replay(CpuLibrary& cpu, const ProgramDesc& desc, std::size_t first, std::size_t end)
      : cpu_(cpu), layout_(desc, first, end) {
    for (std::size_t i = first; i < end; ++i) {
      Op op{desc.op(i).op(), cpu.create(desc.op(i)), {}, {}, cpu.query(desc.op(i)).workspace_bytes};
      for (const int32_t id : desc.inputs(i)) op.inputs.push_back(place(desc, id));
      for (const int32_t id : desc.outputs(i)) op.outputs.push_back(place(desc, id));
      ops_.push_back(std::move(op));
    }
  }
  ~Replay() override {
    for (const Op& op : ops_) cpu_.release(op.kernel);
  }
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  void enqueue(Stream&, const SubgraphArgs& args) override {
    auto* const scratch = args.workspace<std::byte>();
    // A subgraph that keeps nothing inside may have no scratch, and memset takes no null pointer.
    const bool first = runs_++ == 0;
    if (layout_.bytes() > 0 && (first || kKind != KIND_FORGETFUL)) std::memset(scratch, 0, layout_.bytes());
    for (const Op& op : ops_) {
      if (kKind == KIND_FORGETFUL && runs_ > 1 && op.id == GPUNN_OP_BIAS_BACKWARD) continue;
      run(op, args, scratch);
      if (kKind == KIND_MISCOUNTING && op.id == GPUNN_OP_METRICS_ACCUMULATE) run(op, args, scratch);
      if (kKind == KIND_WAVERING && op.id == GPUNN_OP_TABLE_LOAD) waver(op, args, scratch);
    }
  }

 private:
  struct Place {
    int32_t id, root;
    uint64_t offset;
    gpunn_tensor tensor;  // without data
  };
  struct Op {
    int32_t id;
    gpunn_kernel* kernel;
    std::vector<Place> inputs, outputs;
    uint64_t workspace_bytes;
  };

  static Place place(const ProgramDesc& desc, int32_t id) {
    return {id, desc.value(id).root, static_cast<uint64_t>(desc.value(id).offset), desc.tensor(id)};
  }
  gpunn_tensor at(const Place& place, const SubgraphArgs& args, std::byte* scratch) const {
    gpunn_tensor tensor = place.tensor;
    if (layout_.holds(place.root)) {
      tensor.data = scratch + layout_.offset(place.root) + place.offset;
    } else {
      tensor = args.tensor(place.id);
    }
    return tensor;
  }
  void run(const Op& op, const SubgraphArgs& args, std::byte* scratch) {
    std::vector<gpunn_tensor> tensors;
    for (const Place& input : op.inputs) tensors.push_back(at(input, args, scratch));
    for (const Place& output : op.outputs) tensors.push_back(at(output, args, scratch));
    std::vector<const gpunn_tensor*> pointers;
    for (const gpunn_tensor& tensor : tensors) pointers.push_back(&tensor);
    gpunn_op_args of{};
    of.struct_size = sizeof(of);
    of.n_inputs = static_cast<uint32_t>(op.inputs.size());
    of.n_outputs = static_cast<uint32_t>(op.outputs.size());
    of.inputs = pointers.data();
    of.outputs = pointers.data() + op.inputs.size();
    of.workspace = scratch + layout_.bytes();
    of.workspace_bytes = op.workspace_bytes;
    cpu_.run(op.kernel, of);
  }
  // Changes the learning rate by a unit in the last place.
  void waver(const Op& op, const SubgraphArgs& args, std::byte* scratch) const {
    static int count = 0;
    auto* const rate = static_cast<float*>(at(op.outputs[0], args, scratch).data);
    if (++count % 3 == 0) *rate = std::nextafter(*rate, 1.0F);
  }

  CpuLibrary& cpu_;
  Layout layout_;
  std::vector<Op> ops_;
  int64_t runs_ = 0;
};

class FusingDevice final : public HostDevice {
 public:
  explicit FusingDevice(const gpunn_device_options& options) : cpu_(options) {}

  SubgraphSupport query_subgraph(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
    if (kKind == KIND_IDLE) return first == 0 ? SubgraphSupport::no("it is idle") : SubgraphSupport::no();
    std::size_t count = limit;
    if (kKind == KIND_WIDE && has_half(desc, first, limit)) return SubgraphSupport::no("half precision");
    if (kKind == KIND_PIECES) {
      const int32_t op = desc.op(first).op();
      if (op == GPUNN_OP_MATMUL || op == GPUNN_OP_CONV2D) return SubgraphSupport::no();
      count = std::min<std::size_t>(limit, 5);
    }
    uint64_t scratch = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      scratch = std::max(scratch, cpu_.query(desc.op(i)).workspace_bytes);
    }
    return SubgraphSupport::yes(count, "replay", Layout(desc, first, first + count).bytes() + scratch);
  }
  std::unique_ptr<Subgraph> create_subgraph(const ProgramDesc& desc, std::size_t first, std::size_t count) {
    return std::make_unique<Replay>(cpu_, desc, first, first + count);
  }

 private:
  CpuLibrary cpu_;
};

class Fusing final : public Backend {
 public:
  const char* name() const override { return SAMPLE_NAME; }
  const char* version() const override { return "1"; }
  const char* base() const override { return SAMPLE_BASE; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options& options) override {
    return std::make_unique<FusingDevice>(options);
  }
  const void* extension(const char* name) override {
    return std::strcmp(name, GPUNN_EXTENSION_SUBGRAPH) == 0 ? subgraph_extension<FusingDevice>() : nullptr;
  }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Fusing>(major, minor);
}
