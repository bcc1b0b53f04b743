#include "operation.hpp"

#include <memory>
#include <string_view>

#include <omp.h>

namespace gpunn::onednn {
namespace {

using plugin::Refusal;
using plugin::Support;

constexpr uint64_t kAlignment = 64;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void must_succeed(dnnl_status_t status, const char* what) {
  if (status != dnnl_success) throw dnnl::error(status, what);
}

// In place, of a tensor without gaps. NaN stays.
void apply_relu(const gpunn_tensor& tensor) {
  const int64_t count = plugin::element_count(tensor);
  if (tensor.dtype == GPUNN_F32) {
    auto* values = static_cast<float*>(tensor.data);
#pragma omp parallel for simd schedule(static)
    for (int64_t i = 0; i < count; ++i) values[i] = values[i] < 0.0F ? 0.0F : values[i];
    return;
  }
  // Of bf16 what is negative and no NaN lies between these two.
  constexpr uint16_t kMinusZero = 0x8000, kMinusInfinity = 0xFF80;
  auto* bits = static_cast<uint16_t*>(tensor.data);
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t value = bits[i];
    bits[i] = value >= kMinusZero && value <= kMinusInfinity ? uint16_t{0} : value;
  }
}

// A primitive with its arguments. Executing it allocates nothing.
class Call {
 public:
  Call(dnnl::primitive primitive, std::vector<dnnl_exec_arg_t> arguments)
      : primitive_(std::move(primitive)), arguments_(std::move(arguments)) {}

  void execute(const dnnl::stream& stream) const {
    must_succeed(
        dnnl_primitive_execute(primitive_.get(), stream.get(), static_cast<int>(arguments_.size()), arguments_.data()),
        "oneDNN could not execute a primitive");
  }

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

class OneDnnKernel final : public plugin::Kernel {
 public:
  OneDnnKernel(const Plan& plan, int threads) : threads_(threads), relu_(plan.relu), stream_(engine()) {
    const ThreadsInUse in_use(threads);
    std::vector<dnnl_exec_arg_t> arguments;
    uint64_t offset = 0;
    for (const Operand& operand : plan.operands) {
      Bound bound{.output = operand.output, .index = operand.index, .given = memory(operand.given)};
      if (operand.given != operand.wanted) {
        bound.offset = offset;
        bound.wanted = memory(operand.wanted);
        offset += aligned(operand.wanted.get_size());
        const dnnl::memory &from = operand.output ? bound.wanted : bound.given,
                           &to = operand.output ? bound.given : bound.wanted;
        (operand.output ? after_ : before_)
            .emplace_back(dnnl::reorder(from, to),
                          std::vector<dnnl_exec_arg_t>{{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}});
      }
      arguments.push_back({operand.argument, (bound.wanted ? bound.wanted : bound.given).get()});
      operands_.push_back(std::move(bound));
    }
    const dnnl::memory::desc scratchpad = plan.description.scratchpad_desc();
    if (scratchpad.get_size() != 0) {
      scratchpad_ = memory(scratchpad);
      scratchpad_offset_ = offset;
      arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad_.get()});
    }
    calls_.emplace_back(dnnl::primitive(plan.description.get()), std::move(arguments));
  }

  void enqueue(plugin::Stream& /*stream*/, const OpArgs& args) override {
    const ThreadsInUse in_use(threads_);
    auto* workspace = args.workspace<char>();
    for (Bound& operand : operands_) {
      const gpunn_tensor& tensor = operand.output ? args.output(operand.index) : args.input(operand.index);
      operand.given.set_data_handle(tensor.data);
      if (operand.wanted) operand.wanted.set_data_handle(workspace + operand.offset);
    }
    if (scratchpad_) scratchpad_.set_data_handle(workspace + scratchpad_offset_);
    for (const std::vector<Call>* calls : {&before_, &calls_, &after_}) {
      for (const Call& call : *calls) call.execute(stream_);
    }
    stream_.wait();
    if (relu_) apply_relu(args.output(0));
  }

 private:
  struct Bound {
    bool output;
    std::size_t index;
    dnnl::memory given;
    dnnl::memory wanted{};  // empty where `given` is
    uint64_t offset = 0;    // of `wanted` in the workspace
  };

  static dnnl::memory memory(const dnnl::memory::desc& layout) { return {layout, engine(), nullptr}; }

  int threads_;
  bool relu_;
  dnnl::stream stream_;
  std::vector<Bound> operands_;
  dnnl::memory scratchpad_;
  uint64_t scratchpad_offset_ = 0;
  std::vector<Call> before_;
  std::vector<Call> calls_;
  std::vector<Call> after_;
};

// What is to be raced is oneDNN's own code for this processor, not its plain loops.
Plan served_plan(const std::function<Plan(const OpDesc&)>& plan_of, const OpDesc& desc, int threads) {
  const ThreadsInUse in_use(threads);
  try {
    Plan plan = plan_of(desc);
    const std::string implementation = plan.description.impl_info_str();
    if (implementation.find("ref") != std::string::npos) {
      throw Refusal("oneDNN has nothing but its reference for this (" + implementation + ")");
    }
    return plan;
  } catch (const dnnl::error& error) {
    throw Refusal(std::string("oneDNN does not serve it: ") + error.what());
  }
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine processor(dnnl::engine::kind::cpu, 0);
  return processor;
}

ThreadsInUse::ThreadsInUse(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
ThreadsInUse::~ThreadsInUse() { omp_set_num_threads(before_); }

dnnl::memory::data_type data_type_of(const gpunn_tensor& tensor) {
  require(tensor.dtype == GPUNN_F32 || tensor.dtype == GPUNN_BF16, "oneDNN computes in f32 and bf16");
  return tensor.dtype == GPUNN_F32 ? dnnl::memory::data_type::f32 : dnnl::memory::data_type::bf16;
}

dnnl::primitive_attr attributes_of(const OpDesc& desc) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (desc.precision() == GPUNN_PRECISION_BF16) attributes.set_fpmath_mode(dnnl::fpmath_mode::bf16);
  return attributes;
}

uint64_t Plan::workspace_bytes() const {
  uint64_t bytes = 0;
  for (const Operand& operand : operands) {
    if (operand.given != operand.wanted) bytes += aligned(operand.wanted.get_size());
  }
  return bytes + description.scratchpad_desc().get_size();
}

void serve(plugin::Device& device, int32_t op, int threads, const std::function<Plan(const OpDesc&)>& plan_of,
           bool channels_last) {
  constexpr int kPackedScore = 1;
  constexpr int kChannelsLastScore = 2;  // what its convolutions read without a copy
  device.add(op, {.query =
                      [plan_of, threads](const OpDesc& desc) {
                        const Plan plan = served_plan(plan_of, desc, threads);
                        return Support::yes(plan.workspace_bytes(),
                                            plugin::has_channels_last(desc) ? kChannelsLastScore : kPackedScore);
                      },
                  .create = [plan_of, threads](const OpDesc& desc) -> std::unique_ptr<plugin::Kernel> {
                    return std::make_unique<OneDnnKernel>(served_plan(plan_of, desc, threads), threads);
                  },
                  .half = true,
                  .channels_last = channels_last});
}

}  // namespace gpunn::onednn
