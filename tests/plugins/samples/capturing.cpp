// A host backend that captures: between begin and end it only notes its kernels, and a launch runs the notes. It serves
// ADD, RELU and SCALE of f32. RELU says that it can't be captured if control.op_flags lacks GPUNN_OP_CAPTURABLE. If
// control.subgraphs says so it fuses subgraphs, with values that have no memory in the workspace.
#include <gpunn/rank_subgraph.hpp>
#include <gpunn/subgraph.hpp>

#include <map>
#include <vector>

#include "control.hpp"

namespace {

using namespace gpunn::plugin;

Control control;

struct Work {
  int32_t op;
  float factor;
  const float* a;
  const float* b;
  float* y;
  int64_t count;

  void run() const {
    for (int64_t i = 0; i < count; ++i) {
      if (op == GPUNN_OP_ADD) y[i] = a[i] + b[i];
      if (op == GPUNN_OP_SCALE) y[i] = factor * a[i];
      if (op == GPUNN_OP_RELU) y[i] = a[i] > 0 ? a[i] : 0;
    }
  }
};

void fail_if_told(const char* function) {
  if (std::strcmp(control.fail_in, function) == 0)
    throw Failure(GPUNN_INTERNAL, std::string(function) + " was told to");
}

class Tape final : public CapturedGraph {
 public:
  explicit Tape(std::vector<Work> work) : work_(std::move(work)) { ++control.open_graphs; }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;
  ~Tape() override { --control.open_graphs; }
  void launch(Stream&) override {
    fail_if_told("graph_launch");
    ++control.launches;
    for (const Work& work : work_) work.run();
  }

 private:
  std::vector<Work> work_;
};

class RecordingStream final : public Stream {
 public:
  void* native() override { return nullptr; }
  void synchronize() override {
    if (recording_) throw Failure(GPUNN_INTERNAL, "a stream can't be synchronised while it captures");
  }
  void copy(void* to, const void* from, uint64_t bytes, int32_t) override { std::memmove(to, from, bytes); }
  void fill(void* to, uint8_t value, uint64_t bytes) override { std::memset(to, value, bytes); }
  void begin_capture() override {
    fail_if_told("capture_begin");
    recording_ = true;
  }
  std::unique_ptr<CapturedGraph> end_capture() override {
    recording_ = false;
    auto tape = std::make_unique<Tape>(std::exchange(notes_, {}));
    fail_if_told("capture_end");
    return tape;
  }
  void take(const Work& work) {
    if (recording_) {
      fail_if_told("op_enqueue");
      ++control.recorded;
      notes_.push_back(work);
    } else {
      ++control.enqueues;
      work.run();
    }
  }

 private:
  bool recording_ = false;
  std::vector<Work> notes_;
};

float factor_of(const OpDesc& desc) {
  return desc.op() == GPUNN_OP_SCALE ? desc.attrs<gpunn_scale_attrs>().factor : 1.0F;
}

class FusedOps final : public Subgraph {
 public:
  FusedOps(const ProgramDesc& desc, std::size_t first, std::size_t count) {
    ++control.open_subgraphs;
    for (std::size_t i = first; i < first + count; ++i) {
      const auto in = desc.inputs(i);
      const int32_t out = desc.outputs(i)[0];
      ops_.push_back({desc.op(i).op(), factor_of(desc.op(i)), in[0], in.size() > 1 ? in[1] : -1, out,
                      element_count(desc.tensor(out))});
      if (slots_.try_emplace(out, used_).second) used_ += element_count(desc.tensor(out));
    }
  }
  FusedOps(const FusedOps&) = delete;
  FusedOps& operator=(const FusedOps&) = delete;
  ~FusedOps() override { --control.open_subgraphs; }

  void enqueue(Stream& stream, const SubgraphArgs& args) override {
    fail_if_told("subgraph_enqueue");
    ++control.subgraph_enqueues;
    const auto at = [&](int32_t id) {
      if (id < 0) return static_cast<float*>(nullptr);
      return args.has(id) ? args.data<float>(id) : args.workspace<float>() + slots_.at(id);
    };
    for (const Op& op : ops_) {
      static_cast<RecordingStream&>(stream).take({op.id, op.factor, at(op.a), at(op.b), at(op.y), op.count});
    }
  }

 private:
  struct Op {
    int32_t id;
    float factor;
    int32_t a, b, y;  // values
    int64_t count;
  };
  std::vector<Op> ops_;
  std::map<int32_t, int64_t> slots_;  // by value, floats into the workspace
  int64_t used_ = 0;
};

class CapturingDevice final : public HostDevice {
 public:
  SubgraphSupport query_subgraph(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
    ++control.subgraph_queries;
    fail_if_told("subgraph_query");
    if (control.subgraphs == 0) return SubgraphSupport::no("it was told to fuse nothing");
    const std::size_t count =
        std::min(limit, static_cast<std::size_t>(control.subgraphs)) + static_cast<std::size_t>(control.fuses_beyond);
    uint64_t bytes = control.subgraph_workspace;
    for (std::size_t i = first; i < std::min(first + count, desc.ops()); ++i) {
      bytes += static_cast<uint64_t>(element_count(desc.tensor(desc.outputs(i)[0]))) * sizeof(float);
    }
    SubgraphSupport subgraph = SubgraphSupport::yes(count, "ops in a row", bytes);
    const auto& out = control.leaves_out;
    for (std::size_t i = 0; i < count && out[0] >= 0; ++i) {
      const auto op = static_cast<int32_t>(i);
      if (op != out[0] && op != out[1]) subgraph.chosen.push_back(static_cast<uint32_t>(first + i));
    }
    if (out[0] >= 0) subgraph.ops = subgraph.chosen.size();
    subgraph.flags = control.subgraph_flags;
    return subgraph;
  }
  void join_ranks(const CommunicatorOptions& options) {
    fail_if_told("join_ranks");
    control.ranks = options.world();
  }
  void abort_ranks() noexcept {}
  void leave_ranks() noexcept { control.ranks = 1; }
  std::unique_ptr<Subgraph> create_subgraph(const ProgramDesc& desc, std::size_t first, std::size_t count) {
    fail_if_told("subgraph_create");
    if (std::strcmp(control.null_in, "subgraph_create") == 0) return nullptr;
    return std::make_unique<FusedOps>(desc, first, count);
  }
  CapturingDevice() {
    for (const int32_t op : {GPUNN_OP_ADD, GPUNN_OP_SCALE, GPUNN_OP_RELU}) {
      add(op, {.query =
                   [op](const OpDesc&) {
                     Support support = Support::yes();
                     if (op == GPUNN_OP_RELU) support.flags = control.op_flags;
                     return support;
                   },
               .create =
                   [op](const OpDesc& desc) {
                     const float factor = factor_of(desc);
                     return make_kernel([op, factor](Stream& stream, const OpArgs& args) {
                       const float* b = args.inputs() > 1 ? args.in<float>(1) : nullptr;
                       static_cast<RecordingStream&>(stream).take(
                           {op, factor, args.in<float>(0), b, args.out<float>(0), element_count(args.output(0))});
                     });
                   }});
    }
  }
  std::unique_ptr<Stream> create_stream() override { return std::make_unique<RecordingStream>(); }
};

// Not whole where it is told so.
const void* extension_table() {
  static gpunn_subgraph_extension incomplete = *subgraph_extension<CapturingDevice>();
  incomplete.enqueue = nullptr;
  return std::strcmp(control.null_in, "subgraph_enqueue") == 0 ? &incomplete : subgraph_extension<CapturingDevice>();
}

class Capturing final : public Backend {
 public:
  const char* name() const override { return "capturing"; }
  const char* version() const override { return "1"; }
  bool can_capture() const override { return true; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options&) override { return std::make_unique<CapturingDevice>(); }
  const void* extension(const char* name) override {
    if (std::strcmp(name, GPUNN_EXTENSION_SUBGRAPH) == 0) return extension_table();
    if (std::strcmp(name, GPUNN_EXTENSION_RANK_SUBGRAPH) == 0 && control.joins_ranks) {
      return rank_subgraph_extension<CapturingDevice>();
    }
    return std::strcmp(name, "test.control") == 0 ? &control : nullptr;
  }
};

}  // namespace

extern "C" const gpunn_plugin* gpunn_plugin_query_v1(uint16_t major, uint16_t minor) {
  return gpunn::plugin::export_backend<Capturing>(major, minor);
}
